#!/usr/bin/env bash
# What an integrator's build takes on: the number of crates, and the seconds of a cold debug build, of the
# SDK beside reqwest alone and of the mock server beside wiremock. `counts` prints the crates, `seconds`
# builds each, or those that are named, from nothing: that takes minutes, a network and a quiet machine.
set -euo pipefail
cd "$(dirname "$0")/../.."

packages=$(mktemp -d)
trap 'rm -rf "$packages"' EXIT

# A package of an integrator's: its name, its dependencies, those of its tests.
package() {
    mkdir -p "$packages/$1/src"
    printf '[workspace]\n[package]\nname = "integrator"\nedition = "2024"\n[dependencies]\n%s\n[dev-dependencies]\n%s\n' \
        "$2" "$3" >"$packages/$1/Cargo.toml"
    touch "$packages/$1/src/lib.rs"
    # The versions that this repository is tested with.
    cp Cargo.lock "$packages/$1/Cargo.lock"
}

reqwest='reqwest = { version = "0.13", default-features = false, features = ["rustls", "stream"] }'
parcelo="parcelo = { path = '$PWD/sdk' }"
mock="parcelo-server = { path = '$PWD/server', default-features = false, features = ['sdk'] }"

package reqwest "$reqwest" ''
package sdk "$parcelo" ''
package wiremock "$reqwest" 'wiremock = "0.6"'
package mock "$parcelo" "$mock"
kinds="reqwest sdk wiremock mock"

# A crate counts once however often it is asked for; the integrator's own does not.
crates() {
    cargo tree --quiet --offline --manifest-path "$packages/$1/Cargo.toml" -e normal,dev --prefix none |
        awk '$1 != "integrator" { print $1, $2 }' | sort -u | wc -l
}

counts() {
    local kind
    local -A of
    for kind in $kinds; do of[$kind]=$(crates "$kind"); done
    echo "reqwest: ${of[reqwest]}"
    echo "sdk: ${of[sdk]}"
    echo "wiremock: ${of[wiremock]}, $((of[wiremock] - of[reqwest])) more than reqwest"
    echo "mock: ${of[mock]}, $((of[mock] - of[sdk])) more than the SDK"
}

# Wall clock, and the CPU's, which other load moves less.
seconds() {
    local kind TIMEFORMAT='%R s, %U s of CPU and %S s of the kernel'
    # What there is to download is downloaded before.
    for kind in $kinds; do cargo fetch --quiet --manifest-path "$packages/$kind/Cargo.toml"; done
    for kind in ${*:-$kinds}; do
        printf '%s: ' "$kind"
        time cargo test --quiet --offline --no-run --manifest-path "$packages/$kind/Cargo.toml" \
            --target-dir "$packages/target" 2>/dev/null
        rm -rf "$packages/target"
    done
}

"${1:-counts}" "${@:2}"
