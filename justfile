# `just` lists these; each is one line that also works without just.

default:
    @just --list

# The tests that need Rust and a C compiler only.
test:
    cargo test

# Format, lints, and the vocabulary without its client.
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings
    cargo clippy -p parcelo --lib --no-default-features -- -D warnings
    cargo clippy -p parcelo --lib --no-default-features --features blocking -- -D warnings

# The API documentation of the crates.
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --features parcelo/blocking,parcelo/gzip,parcelo/http2

# The mock server, webhooks, resets, a call of the SDK, each beside its peers.
bench:
    cargo bench -p parcelo-server --bench mock --bench webhooks --bench erasing
    cargo bench -p parcelo --bench calls
    cargo run --release --manifest-path server/benches/labels/Cargo.toml --target-dir target/labels-bench

# Answers a second, CPU, memory and growth to a million parcels, beside a static handler and prism; half an hour.
load:
    cargo bench -p parcelo-server --bench load -- --plots docs/benchmarks

# What an answer costs in instructions, allocations and pages of the log, against its bounds; needs valgrind.
costs:
    cargo bench --profile costs -p parcelo-server --bench costs

# The same, and today's figures become the bounds, with a tenth of slack: look at the diff afterwards.
bless-costs:
    PARCELO_BLESS=1 cargo bench --profile costs -p parcelo-server --bench costs

# Whether the SDK's public API breaks a promise since a revision; needs cargo-semver-checks.
semver revision:
    cargo semver-checks -p parcelo --baseline-rev {{revision}}

# Crates and cold builds of the SDK and the mock server, beside their peers; needs a quiet machine.
weight:
    server/benches/weight.sh counts
    server/benches/weight.sh seconds

# Every state in which a crash can leave the files of the SQLite store; `just crash --brief` is CI's minute of it.
crash *arguments:
    cargo build -p parcelo-server
    cargo run --release --manifest-path tests/crash/Cargo.toml --target-dir target/crash -- {{arguments}}

# The tests that take long, and labels through readers that are not ours (.ci/run installs them).
oracles:
    PARCELO_LABELS=$PWD/target/labels cargo test --workspace --lib --bins --tests -- --ignored
    python3 tests/oracles/labels.py target/labels

# Licences, banned crates and sources of the whole tree.
deny:
    cargo deny --all-features check licenses bans sources

# Accept changed snapshots: look at the diff afterwards.
bless:
    PARCELO_BLESS=1 cargo test -p parcelo-server --lib document
    PARCELO_BLESS=1 cargo test -p parcelo-cli --test it public_items -- --ignored
    INSTA_UPDATE=always PARCELO_BLESS=1 cargo test

# Everything that must pass, in the order in which it fails soonest.
ci:
    .ci/run
