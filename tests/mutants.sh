#!/usr/bin/env bash
# Changes a part of a crate as a careless author could, one change at a time, and sees that a test of that crate fails:
# `mutants.sh CRATE [SHARD]`, such as `mutants.sh parcelo-domain 0/8`. cargo-mutants makes the changes; .cargo/mutants.toml
# says which would show nothing. The figures become lines of docs/mutants.tsv, by folder; what no test noticed is printed.
set -euo pipefail
cd "$(dirname "$0")/.."
crate=$1 shard=${2:-0/1} output=target/mutants
export CARGO_PROFILE_DEV_DEBUG=none CARGO_TERM_COLOR=never PARCELO_POSTGRES_REQUIRED=1
mkdir -p "$output"
rm -rf "$output/mutants.out"
# It ends with 2 or 3 if a change was not noticed.
cargo mutants --package "$crate" --shard "$shard" --sharding round-robin --output "$output" --minimum-test-timeout 120 \
    --jobs "${PARCELO_MUTANTS_JOBS:-1}" --no-times --colors never || [ $? -le 3 ]
jq --raw-output --arg run "$(date -u +%F)"$'\t'"$(git rev-parse --short HEAD)"$'\t'"$crate $shard" '
    [.outcomes[] | select(.scenario != "Baseline") | {folder: (.scenario.Mutant.file | split("/")[:-1] | join("/")), summary}]
    | group_by(.folder)[]
    | (map(select(.summary != "Unviable")) | length) as $built
    | (map(select(.summary == "MissedMutant")) | length) as $missed
    | (map(select(.summary == "Timeout")) | length) as $endless
    | [$run, .[0].folder, $built, $built - $missed - $endless, $endless, $missed] | map(tostring) | join("\t")
' "$output/mutants.out/outcomes.json" >>docs/mutants.tsv
cat "$output/mutants.out/missed.txt"
