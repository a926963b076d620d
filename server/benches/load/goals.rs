//! The goals of goals.tsv, with the measured figures and whether they are met.

use crate::row::{COLUMNS, POSTGRES_CPU, Row, SERVER_CPU};

const GOALS: &str = include_str!("goals.tsv");

/// Prints the goals whose rows were measured.
pub(crate) fn print(rows: &[Row]) {
    println!("\n| goal | wanted | measured | |\n|---|---|---|---|");
    for line in GOALS.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let find = |name: &&str| figure(rows.iter().find(|row| row_name(row) == *name)?, cells[2]);
        let whole = cells.get(4).map_or(Some(1.0), find);
        if let Some((part, whole)) = find(&cells[3]).zip(whole) {
            let measured = part / whole;
            let bound = |text: &str| text.parse::<f64>().unwrap();
            let verdict = match cells[1].rsplit_once(' ') {
                Some(("at least", least)) if measured < bound(least) => "missed",
                Some(("at most", most)) if measured > bound(most) => "missed",
                Some(_) => "met",
                None => "",
            };
            println!("| {} | {} | {measured:.2} | {verdict} |", cells[0], cells[1]);
        }
    }
}

fn row_name(row: &Row) -> String {
    let parcels = row.parcels.map_or("-".to_owned(), |parcels| parcels.to_string());
    format!("{}, {parcels}, {}", row.name, row.connections)
}

fn figure(row: &Row, name: &str) -> Option<f64> {
    if name == "CPU" {
        return Some(row.figures[SERVER_CPU]? + row.figures[POSTGRES_CPU].unwrap_or_default());
    }
    row.figures[COLUMNS.iter().position(|(column, _)| *column == name).unwrap()]
}
