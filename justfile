# `just` lists these; each is one line that also works without just.

default:
    @just --list

# The tests that need Rust and a C compiler only.
test:
    cargo test

# Which tests fail by chance, of so many runs beside a busy loop on every core; their output stays in target/flaky.
flaky runs="10":
    .ci/flaky {{runs}}

# Format, lints, and the vocabulary without its client.
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings
    cargo clippy -p parcelo-types --lib -- -D warnings
    cargo clippy -p parcelo --lib --no-default-features --features blocking -- -D warnings

# The API documentation of the crates.
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --features parcelo/blocking,parcelo/gzip,parcelo/http2,parcelo/proptest

# The mock server, webhooks, a call of the SDK, labels, each beside its peers.
bench:
    cargo bench -p parcelo-server --bench mock --bench webhooks
    cargo bench -p parcelo --bench calls
    cargo run --release --manifest-path server/benches/labels/Cargo.toml --target-dir target/labels-bench

# Answers a second, CPU, memory and growth to a million parcels, beside a static handler and prism; `just load --help`.
load *arguments:
    cargo bench -p parcelo-server --bench load -- {{arguments}}

# What an answer costs in instructions, allocations and pages of the log, against its bounds; needs valgrind.
costs:
    cargo bench --profile costs -p parcelo-server --bench costs

# The same, and today's figures become the bounds, with a quarter of slack: look at the diff afterwards.
bless-costs:
    PARCELO_BLESS=1 cargo bench --profile costs -p parcelo-server --bench costs

# Whether the SDK's public API breaks a promise since a revision; needs cargo-semver-checks.
semver revision:
    cargo semver-checks -p parcelo -p parcelo-types --baseline-rev {{revision}}

# Crates and cold builds of the SDK and the mock server, beside their peers; needs a quiet machine.
weight:
    server/benches/weight.sh counts
    server/benches/weight.sh seconds

# Three servers on PostgreSQL under faults for a minute, or as `just torture --help` says; needs root and libfaketime.
torture *arguments:
    cargo build --profile costs -p parcelo-server -p torture
    target/costs/torture --server target/costs/parcelo-server {{arguments}}

# A million acknowledged writes under faults, and 200 killed servers, on each store; 20 to 40 minutes.
torture-long:
    just torture --store sqlite --seconds 1800 --writes 750000 --kills 200 --orders 256 --calm 2000
    just torture --store postgres --seconds 3600 --writes 260000 --kills 200 --orders 256 --calm 800

# Five minutes of `just torture`, whose figures become a line of docs/torture.tsv; slices 1 to 4 of a seed are 20 minutes.
torture-slice seed slice *options:
    cargo build --profile costs -p parcelo-server -p torture
    tests/torture/slice.sh {{seed}} {{slice}} {{options}}

# Whether the checker of `just torture` agrees with stateright's on 50,000 histories.
torture-checker:
    cargo test --manifest-path tests/torture/stateright/Cargo.toml --target-dir target/stateright

# Every state in which a crash can leave the files of the SQLite store; `just crash --images 200` is CI's part of it.
crash *arguments:
    cargo run --profile costs -p parcelo-crash -- {{arguments}}

# Ten deliberate defects, each of which the tests must catch: all of `tests/breakages/`, or some by name.
breakages *names:
    tests/breakages/run.sh {{names}}

# Small changes to a crate, or a part of it such as 0/8, each of which one of its tests must notice; needs cargo-mutants.
mutants crate shard="0/1":
    tests/mutants.sh {{crate}} {{shard}}

# Looks for an input that breaks a target, guided by coverage; `ls tests/fuzz/corpus` lists the targets.
fuzz target seconds="60" *options:
    tests/fuzz/run.sh {{target}} {{seconds}} {{options}}

# Licences, banned crates and sources of the whole tree.
deny:
    cargo deny --all-features check licenses bans sources

# PostgreSQL, two servers and nginx on this machine, for trying; Ctrl-C stops them all.
servers *folder:
    examples/servers/run.sh {{folder}}

# A rolling upgrade of two servers under load, from another program, such as the version before, to this one.
upgrade previous:
    PARCELO_PREVIOUS={{absolute_path(previous)}} cargo test -p parcelo-server --test it rolling_upgrade

# Accept changed snapshots: look at the diff afterwards.
bless:
    PARCELO_BLESS=1 cargo test -p parcelo-service -p parcelo-process --lib document
    PARCELO_BLESS=1 cargo test -p parcelo-tidy the_public_api -- --ignored
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

# Everything on PostgreSQL: the process tests, the store's promises, other versions, nginx.
postgres:
    .ci/prove postgres versions nginx

# Pages in a browser, completions in shells, manual pages, metrics.
browser:
    .ci/prove browser

# The OpenAPI documents through other programs, and clients made of them.
openapi:
    .ci/prove openapi clients

# E-mails through a relay that is not ours, with kills and refusals.
mails:
    .ci/prove mails

# Labels through readers that are not ours, also in Chinese.
labels:
    .ci/prove labels

# Each set of features alone.
features:
    .ci/prove features

# What would be published, built from its own files; the SDK's public items.
packages:
    .ci/prove packages
