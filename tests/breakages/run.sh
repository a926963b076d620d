#!/usr/bin/env bash
# Applies deliberate defects to a copy of the last commit, one at a time, and runs what must find each. The patch names
# that: `crash`, a sample of what `just crash` examines, or a package and one of its tests. A defect is caught if the
# test fails or a violation is printed; what does not build catches nothing. Without a defect each of them must pass.
#
#   tests/breakages/run.sh             all
#   tests/breakages/run.sh NAME ...    these, such as no_sync
set -euo pipefail
cd "$(dirname "$0")/../.."
patches=$PWD/tests/breakages output=$PWD/target/breakages/output tree=$PWD/target/breakages/tree
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target/breakages/build} CARGO_TERM_COLOR=never CARGO_INCREMENTAL=0
export CARGO_PROFILE_DEV_DEBUG=none PARCELO_SEED=${PARCELO_SEED:-1} PARCELO_POSTGRES_REQUIRED=1
# A lint would find some of the defects, too.
unset RUSTC_WORKSPACE_WRAPPER

# Builds and runs what a patch names. `verdict` is then passed, caught, or nothing if it says neither.
look() {
    read -r suite test < <(sed -n '1s/^# caught by: //p' "$patches/$1.patch")
    if [ "$suite" = crash ]; then
        cargo build --quiet --locked -p parcelo-crash
        "$CARGO_TARGET_DIR/debug/parcelo-crash" --images 60 --only 'a first start' >"$output" 2>&1 || true
        found='every guarantee was kept|GUARANTEES WERE BROKEN'
    else
        cargo test --quiet --locked -p "$suite" --tests --no-run
        cargo test --locked -p "$suite" --tests "$test" >"$output" 2>&1 || true
        found="test .*\b$test \.\.\. (ok|FAILED)"
    fi
    found=$(grep -oE "^($found)$" "$output" || true)
    case $found in
    *BROKEN* | *FAILED*) verdict=caught ;;
    ?*) verdict=passed ;;
    *) verdict= ;;
    esac
}

names=("$@")
[ $# -gt 0 ] || mapfile -t names < <(basename -as .patch "$patches"/*.patch)
rm -rf "$tree"
mkdir -p "$tree"
# With the time of now: cargo would take a file of the commit's time for one that it has built.
git archive HEAD | tar -x -m -C "$tree"
cd "$tree"
for name in "${names[@]}"; do
    look "$name"
    [ "$verdict" = passed ] || {
        cat "$output"
        echo "without a defect, $suite $test does not pass" >&2
        exit 1
    }
done
missed=0
for name in "${names[@]}"; do
    patch --quiet --strip 1 --fuzz 0 <"$patches/$name.patch"
    look "$name"
    if [ "$verdict" = caught ]; then
        echo "$name: caught by $suite $test"
        grep '^| a first start' "$output" || true
    else
        echo "$name: MISSED by $suite $test"
        missed=1
    fi
    patch --quiet --strip 1 --fuzz 0 --reverse <"$patches/$name.patch"
done
exit "$missed"
