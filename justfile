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

# Three servers on PostgreSQL under faults for a minute, or as `just torture --help` says; every order's calls are judged.
torture *arguments:
    cargo build --release -p parcelo-server
    cargo run --release --manifest-path tests/torture/Cargo.toml --target-dir target/torture -- --server target/release/parcelo-server {{arguments}}

# Every state in which a crash can leave the files of the SQLite store; `just crash --brief` is CI's minute of it.
crash *arguments:
    cargo build -p parcelo-server
    cargo run --release --manifest-path tests/crash/Cargo.toml --target-dir target/crash -- {{arguments}}

# Licences, banned crates and sources of the whole tree.
deny:
    cargo deny --all-features check licenses bans sources

# PostgreSQL, two servers and nginx on this machine, for trying; Ctrl-C stops them all.
servers *folder:
    examples/servers/run.sh {{folder}}

# Accept changed snapshots: look at the diff afterwards.
bless:
    PARCELO_BLESS=1 cargo test -p parcelo-server --lib document
    PARCELO_BLESS=1 cargo test -p parcelo-cli --test it public_items -- --ignored
    INSTA_UPDATE=always PARCELO_BLESS=1 cargo test

# The gate: what must pass before a change lands, or some of its stages; `.ci/run --list` names them.
ci *stages:
    .ci/run {{stages}}

# What is too long for the gate, by stage; `.ci/prove --list` names them.
prove *stages:
    .ci/prove {{stages}}

# The tests of the gate from other seeds, and those that take long.
proofs:
    .ci/prove proofs

# Everything on PostgreSQL: the process tests, the store's promises, other versions, PgBouncer, nginx.
postgres:
    .ci/prove postgres versions nginx

# Pages in a browser, completions in shells, manual pages, metrics.
browser:
    .ci/prove browser

# The OpenAPI documents through other programs, and clients made of them.
openapi:
    .ci/prove openapi clients

# Labels through readers that are not ours, also in Chinese.
labels:
    .ci/prove labels

# Each set of features alone.
features:
    .ci/prove features

# What would be published, built from its own files; the SDK's public items.
packages:
    .ci/prove packages
