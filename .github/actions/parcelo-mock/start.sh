#!/usr/bin/env bash
# Downloads and starts the mock server of the release VERSION, with ARGUMENTS, and writes its address and key to
# GITHUB_OUTPUT. By hand: RELEASES=file:///FOLDER, where FOLDER/VERSION has the files of a release.
set -euo pipefail

case $(uname -sm) in
"Linux x86_64") target=x86_64-unknown-linux-gnu ;;
"Linux aarch64") target=aarch64-unknown-linux-gnu ;;
"Darwin x86_64") target=x86_64-apple-darwin ;;
"Darwin arm64") target=aarch64-apple-darwin ;;
*)
    echo "::error::The mock server runs on Linux and macOS, not on $(uname -sm)"
    exit 1
    ;;
esac
name=parcelo-$VERSION-$target
folder=$(mktemp -d "${RUNNER_TEMP:-/tmp}/parcelo.XXXXXX")
cd "$folder"
curl -fsSL --retry 3 -O "$RELEASES/$VERSION/$name.tar.gz" -O "$RELEASES/$VERSION/SHA256SUMS"
grep " $name.tar.gz\$" SHA256SUMS | shasum -a 256 --check
tar -xzf "$name.tar.gz"

# shellcheck disable=SC2086
nohup "$name/parcelo-server" mock --ready-file ready.json $ARGUMENTS >log 2>&1 &
until [ -s ready.json ]; do
    if ! kill -0 $! 2>/dev/null; then
        cat log
        exit 1
    fi
    sleep 0.1
done
value() {
    sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" ready.json
}
{
    echo "base-url=$(value sandbox)"
    echo "api-key=$(value apiKey)"
} >>"$GITHUB_OUTPUT"
