//! The command line as a process, whole journeys, and the statements of the documents about both.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::too_many_lines,
    reason = "a test fails by panicking, and a table of cases is as long as it is"
)]

mod checkups;
#[path = "../../server/tests/cluster/mod.rs"]
mod cluster;
mod day;
mod dry_runs;
mod embedded;
mod exits;
mod guides;
mod imports;
mod journey;
mod labels;
mod later;
#[cfg(unix)]
mod listening;
mod manifests;
mod manuals;
mod orders;
mod parcels;
mod peer;
mod pictures;
mod profiles;
mod reference;
mod shop;
mod speech;
mod tracking;
mod voids;
#[path = "../../server/tests/waiting/mod.rs"]
mod waiting;
#[cfg(unix)]
mod watches;
