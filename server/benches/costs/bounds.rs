//! The table of bounds: it is read, compared with, and rewritten on demand.

use std::{collections::BTreeMap, fmt::Write as _, fs};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/costs/bounds.tsv");
/// Factor between a figure and the bound made of it. The compiler divides the code of each build differently, which
/// moves a figure by some hundredths; a new compiler moves it by more, and should not need a change here.
const SLACK: f64 = 1.25;

/// The bounds, and the figures that were compared with them.
pub(crate) struct Bounds {
    known: BTreeMap<String, f64>,
    counted: Vec<(String, f64)>,
    is_blessing: bool,
    above: Vec<String>,
}

impl Bounds {
    pub(crate) fn read() -> Self {
        let known = fs::read_to_string(FILE).unwrap_or_default();
        let known = known.lines().filter(|line| !line.starts_with('#')).map(|line| {
            let columns: Vec<_> = line.split('\t').collect();
            (columns[0].to_owned(), columns[2].parse().unwrap())
        });
        let is_blessing = std::env::var_os("PARCELO_BLESS").is_some();
        Self { known: known.collect(), counted: Vec::new(), is_blessing, above: Vec::new() }
    }

    /// Prints a figure beside its bound.
    pub(crate) fn compare(&mut self, what: &str, counted: f64) {
        let bound =
            if self.is_blessing { Some(counted * SLACK) } else { self.known.get(what).copied() };
        let shown = bound.map_or("no bound".to_owned(), written);
        println!("| {what} | {} | {shown} |", written(counted));
        if bound.is_none_or(|bound| counted > bound) {
            self.above.push(what.to_owned());
        }
        self.counted.push((what.to_owned(), counted));
    }

    /// Returns whether all figures were within their bounds. Writes the new table if one is wanted.
    pub(crate) fn finish(self) -> bool {
        if self.is_blessing {
            let mut table =
                String::from("# what\tcounted\tat most; made by PARCELO_BLESS=1, see main.rs\n");
            for (what, counted) in self.counted {
                let (counted, bound) = (written(counted), written(counted * SLACK));
                writeln!(table, "{what}\t{counted}\t{bound}").unwrap();
            }
            fs::write(FILE, table).unwrap();
        }
        for what in &self.above {
            eprintln!("above its bound in {FILE}: {what}");
        }
        self.above.is_empty()
    }
}

/// Formats a figure: whole instructions, hundredths of a page.
fn written(figure: f64) -> String {
    if figure < 1000.0 { format!("{figure:.2}") } else { format!("{figure:.0}") }
}
