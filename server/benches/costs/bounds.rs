//! The bounds in bounds.tsv: read, compared with the figures of this run, and rewritten on request.

use std::{collections::BTreeMap, fmt::Write as _, fs};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/costs/bounds.tsv");
/// Factor from a figure to its bound. The compiler inlines differently in each build, which changes a figure by a few
/// percent. A new compiler changes it by more, and should not need a new table.
const SLACK: f64 = 1.25;

/// The bounds, and the figures that were compared with them.
pub(crate) struct Bounds {
    by_name: BTreeMap<String, f64>,
    counted: Vec<(String, f64)>,
    is_blessing: bool,
    exceeded: Vec<String>,
}

impl Bounds {
    pub(crate) fn read() -> Self {
        let table = fs::read_to_string(FILE).unwrap_or_default();
        let bounds = table.lines().filter(|line| !line.starts_with('#')).map(|line| {
            let columns: Vec<_> = line.split('\t').collect();
            (columns[0].to_owned(), columns[2].parse().unwrap())
        });
        let is_blessing = std::env::var_os("PARCELO_BLESS").is_some();
        Self { by_name: bounds.collect(), counted: Vec::new(), is_blessing, exceeded: Vec::new() }
    }

    /// Prints a figure beside its bound.
    pub(crate) fn compare(&mut self, name: &str, counted: f64) {
        let bound =
            if self.is_blessing { Some(counted * SLACK) } else { self.by_name.get(name).copied() };
        let shown = bound.map_or("no bound".to_owned(), format_figure);
        println!("| {name} | {} | {shown} |", format_figure(counted));
        if bound.is_none_or(|bound| counted > bound) {
            self.exceeded.push(name.to_owned());
        }
        self.counted.push((name.to_owned(), counted));
    }

    /// Returns `true` if all figures were within their bounds. Writes the new table if `PARCELO_BLESS` is set.
    pub(crate) fn finish(self) -> bool {
        if self.is_blessing {
            let mut table =
                String::from("# what\tcounted\tat most; made by PARCELO_BLESS=1, see main.rs\n");
            for (name, counted) in self.counted {
                let (counted, bound) = (format_figure(counted), format_figure(counted * SLACK));
                writeln!(table, "{name}\t{counted}\t{bound}").unwrap();
            }
            fs::write(FILE, table).unwrap();
        }
        for name in &self.exceeded {
            eprintln!("above its bound in {FILE}: {name}");
        }
        self.exceeded.is_empty()
    }
}

/// Formats a figure: whole instructions, hundredths of a page.
fn format_figure(figure: f64) -> String {
    if figure < 1000.0 { format!("{figure:.2}") } else { format!("{figure:.0}") }
}
