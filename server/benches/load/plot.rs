//! The plots of docs/benchmarks.md: plain SVG, readable on light and on dark pages.

use std::{fmt::Write as _, fs, path::Path};

use crate::Row;

const WIDTH: f64 = 720.0;
const BAR: f64 = 18.0;
const GAP: f64 = 6.0;
/// Where the bars begin: the names stand left of it, the figures right of the bars.
const LEFT: f64 = 330.0;
const RIGHT: f64 = 90.0;
const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#555}.title{font-weight:600;font-size:14px}\
    rect{fill:#2f6f9f}rect.peer{fill:#b0b0b0}\
    @media(prefers-color-scheme:dark){text{fill:#bbb}rect{fill:#5aa2d6}rect.peer{fill:#777}}";

struct Bar {
    name: String,
    value: f64,
    is_peer: bool,
}

/// Draws every plot into a folder.
pub(crate) fn draw(rows: &[Row], folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let mut connections: Vec<usize> = rows.iter().map(|row| row.connections).collect();
    connections.sort_unstable();
    connections.dedup();
    for connections in connections {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.connections == connections).collect();
        let file = |what: &str| folder.join(format!("{what}-{connections}.svg"));
        let title = format!("Answers a second, {connections} connections");
        fs::write(file("answers"), svg(&title, 0, &bars(&rows, |row| row.figures.rate))).unwrap();
        let rows: Vec<&Row> =
            rows.into_iter().filter(|row| row.parcels.is_some_and(|n| n > 0)).collect();
        let title = format!("CPU µs an answer as the database grows, {connections} connections");
        let cpu = bars(&rows, |row| row.figures.cpu_micros);
        fs::write(file("cpu"), svg(&title, 1, &cpu)).unwrap();
        let title = format!("p99 in ms as the database grows, {connections} connections");
        fs::write(file("p99"), svg(&title, 2, &bars(&rows, |row| row.figures.p99))).unwrap();
    }
}

/// One bar a row; the same question at several sizes stands together.
fn bars(rows: &[&Row], figure: impl Fn(&Row) -> f64) -> Vec<Bar> {
    let mut rows = rows.to_vec();
    rows.sort_by_key(|row| (row.parcels.is_some(), row.what.clone(), row.parcels));
    rows.into_iter()
        .map(|row| {
            let name = match row.parcels {
                None | Some(0) => row.what.clone(),
                Some(parcels) => format!("{}, {}", row.what, thousands(parcels)),
            };
            Bar { name, value: figure(row), is_peer: row.parcels.is_none() }
        })
        .collect()
}

fn thousands(parcels: usize) -> String {
    if parcels >= 1_000_000 {
        format!("{} M", parcels / 1_000_000)
    } else {
        format!("{} k", parcels / 1000)
    }
}

fn svg(title: &str, decimals: usize, bars: &[Bar]) -> String {
    let most = bars.iter().map(|bar| bar.value).fold(f64::MIN_POSITIVE, f64::max);
    let height = 34.0 + (BAR + GAP) * bars.len() as f64;
    let mut svg = format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' role='img'>\
         <title>{title}</title><style>{STYLE}</style><text class='title' x='0' y='16'>{title}</text>"
    );
    for (index, Bar { name, value, is_peer }) in bars.iter().enumerate() {
        let y = 28.0 + (BAR + GAP) * index as f64;
        let (width, text) = ((WIDTH - LEFT - RIGHT) * value / most, y + BAR * 0.72);
        let class = if *is_peer { " class='peer'" } else { "" };
        let (names, figures) = (LEFT - 8.0, LEFT + width + 6.0);
        write!(
            svg,
            "<text x='{names:.0}' y='{text:.1}' text-anchor='end'>{name}</text>\
             <rect{class} x='{LEFT}' y='{y:.0}' width='{width:.1}' height='{BAR}' rx='2'/>\
             <text x='{figures:.1}' y='{text:.1}'>{value:.decimals$}</text>"
        )
        .unwrap();
    }
    svg + "</svg>\n"
}
