//! What the figures are to show: each goal, what was measured, and whether it is met.

use crate::{Row, figures::Figures};

/// What was measured beside the rows.
pub(crate) struct Beside {
    /// Of a bare write and its fdatasync, in ms.
    pub(crate) bare_p99: f64,
    /// Of a server on the largest database, in s.
    pub(crate) start: f64,
    /// Of a server with a new database, until its first order, in ms.
    pub(crate) cold_start: f64,
}

const CREATES: &str = "SQLite: creates";
const REPEATS: &str = "SQLite: repeats of a key";
const TRACKING: &str = "SQLite: tracking records";
const LIST: &str = "SQLite: lists, page 1";
const FILTERED: &str = "SQLite: lists by status, page 1";
const MOCK: &str = "the mock server, in memory";
const STATIC: &str = "a static axum handler";
const PRISM: &str = "prism";

/// Prints the goals; those whose rows were not measured are left out.
pub(crate) fn print(rows: &[Row], beside: &Beside) {
    println!("\n| goal | wanted | measured | |\n|---|---|---|---|");
    let sizes = || rows.iter().filter_map(|row| row.parcels).filter(|parcels| *parcels > 0);
    let (Some(small), Some(large)) = (sizes().min(), sizes().max()) else { return };
    let find = |what: &str, parcels: Option<usize>, connections: usize| -> Option<&Figures> {
        let row = rows.iter().find(|row| {
            (row.what.as_str(), row.parcels, row.connections) == (what, parcels, connections)
        })?;
        Some(&row.figures)
    };
    let rate = |what, parcels, connections| find(what, parcels, connections).map(|row| row.rate);
    let of = |part: Option<f64>, whole: Option<f64>| Some(part? / whole?);
    let beside_static = |what, parcels, connections| {
        of(rate(what, parcels, connections), rate(STATIC, None, connections))
    };
    let grown = |what| {
        let cpu = |parcels| find(what, Some(parcels), 32).map(|row| row.cpu_micros);
        of(cpu(large), cpu(small))
    };
    let p99 = |parcels| find(CREATES, Some(parcels), 32).map(|row| row.p99);
    let memory = find(CREATES, Some(large), 32).map(|row| row.resident_mib);
    // 64 bytes for each living key.
    let most_memory = 60.0 + 64.0 * large as f64 / 1024.0 / 1024.0;
    let at_least = [
        (
            "creates, 32 connections, of the static handler",
            beside_static(CREATES, Some(small), 32),
            0.22,
        ),
        (
            "creates, 256 connections, of the static handler",
            beside_static(CREATES, Some(small), 256),
            0.30,
        ),
        (
            "creates, 32 connections, times prism",
            of(rate(CREATES, Some(small), 32), rate(PRISM, None, 32)),
            4.5,
        ),
        ("repeats, of the static handler", beside_static(REPEATS, Some(small), 32), 0.55),
        ("tracking, of the static handler", beside_static(TRACKING, Some(small), 32), 0.60),
        ("creates in memory, of the static handler", beside_static(MOCK, Some(0), 32), 0.20),
    ];
    for (goal, figure, bound) in at_least {
        line(goal, ("at least", bound), figure, |figure| figure >= bound);
    }
    let at_most = [
        ("p99 of creates, times a bare write's", of(p99(small), Some(beside.bare_p99)), 8.0),
        ("the same in the largest database", of(p99(large), Some(beside.bare_p99)), 12.0),
        ("CPU of a create, from the smallest to the largest", grown(CREATES), 1.1),
        ("CPU of a tracking record, the same", grown(TRACKING), 1.1),
        ("CPU of a list, the same", grown(LIST), 1.1),
        ("CPU of a list by status, the same", grown(FILTERED), 1.1),
        ("MiB resident in the largest database", memory, most_memory),
        ("s to start with its keys", Some(beside.start), 2.0),
        ("ms to the first order in a new database", Some(beside.cold_start), 40.0),
    ];
    for (goal, figure, bound) in at_most {
        line(goal, ("at most", bound), figure, |figure| figure <= bound);
    }
}

fn line(goal: &str, (word, bound): (&str, f64), figure: Option<f64>, met: impl Fn(f64) -> bool) {
    if let Some(figure) = figure {
        let verdict = if met(figure) { "met" } else { "missed" };
        println!("| {goal} | {word} {bound:.2} | {figure:.2} | {verdict} |");
    }
}
