#!/bin/sh
# Searches for inputs that break a target, guided by coverage: tests/fuzz/run.sh TARGET [SECONDS] [LIBFUZZER'S OPTIONS]
# Stable Rust is enough: the flags are those of `cargo fuzz --sanitizer none`. New inputs go to target/fuzz/corpus. An
# input that fails goes to tests/fuzz/artifacts; add it to tests/fuzz/corpus when the defect is fixed. The check of
# csv_import is part of a program and cannot be linked to libFuzzer: its own test runs by time instead, without coverage.
set -eu
cd "$(dirname "$0")/../.."
target=$1
seconds=${2:-60}
shift $(($# < 2 ? $# : 2))
if [ "$target" = csv_import ]; then
    PARCELO_SEED=${PARCELO_SEED:-$(date +%s)} PARCELO_FUZZ_SECONDS=$seconds \
        exec cargo test -p parcelo-cli --bins the_rows_of_a_file_are_read_as_written -- --show-output
fi
flags="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
flags="$flags -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
flags="$flags -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
RUSTFLAGS="$flags" cargo build --release --manifest-path tests/fuzz/libfuzzer/Cargo.toml --target-dir target/fuzz \
    --target "$(rustc -vV | sed -n 's/^host: //p')"
PARCELO_FUZZ_TARGET=$target
export PARCELO_FUZZ_TARGET
mkdir -p "target/fuzz/corpus/$target" tests/fuzz/artifacts
exec target/fuzz/*/release/parcelo-libfuzzer -max_total_time="$seconds" -max_len=8192 -timeout=30 \
    -print_final_stats=1 -dict="tests/fuzz/words/$target.dict" -artifact_prefix="tests/fuzz/artifacts/$target-" "$@" \
    "target/fuzz/corpus/$target" "tests/fuzz/corpus/$target"
