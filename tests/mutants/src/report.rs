//! The table of the mutants: what each breaks, how many seeds it takes to be seen, and by which check.

use std::collections::BTreeMap;

use crate::{run::Verdict, table::Mutant};

/// A mutant, and what the simulation said of it from each start.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) mutant: &'static Mutant,
    pub(crate) verdicts: Vec<Verdict>,
}

impl Row {
    /// How many seeds it takes, of the middle of the runs; none when that one saw nothing.
    pub(crate) fn median(&self) -> Option<u64> {
        let mut seeds: Vec<_> = self.verdicts.iter().map(seeds_of).collect();
        seeds.sort_unstable();
        seeds.get(seeds.len() / 2).copied().filter(|seeds| *seeds < u64::MAX)
    }

    /// The checks that saw it, the most frequent first.
    fn checks(&self) -> String {
        let mut checks = BTreeMap::<&str, usize>::new();
        for verdict in &self.verdicts {
            match verdict {
                Verdict::Violated { check, .. } => *checks.entry(check).or_default() += 1,
                Verdict::Unclear(output) => *checks.entry(output).or_default() += 1,
                Verdict::Clean => {}
            }
        }
        let mut checks: Vec<_> = checks.into_iter().collect();
        checks.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        checks.into_iter().map(|(check, _)| check).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn line(&self) -> String {
        let seeds = self.median().map_or("not seen".to_owned(), |seeds| seeds.to_string());
        let Mutant { name, promise, .. } = self.mutant;
        format!("| {name} | {promise} | {seeds} | {} |", self.checks())
    }
}

fn seeds_of(verdict: &Verdict) -> u64 {
    match verdict {
        Verdict::Violated { seeds, .. } => *seeds,
        Verdict::Clean | Verdict::Unclear(_) => u64::MAX,
    }
}

/// All rows, and how many were seen.
pub(crate) fn table(rows: &[Row], most: u64) -> String {
    let mut lines = vec![
        "| fault | promise that it breaks | seeds | seen by |".to_owned(),
        "|---|---|---|---|".to_owned(),
    ];
    lines.extend(rows.iter().map(Row::line));
    let seen = rows.iter().filter(|row| row.median().is_some()).count();
    lines.push(format!("\n{seen} of {} faults seen within {most} seeds", rows.len()));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::MUTANTS;

    #[test]
    fn the_figure_is_that_of_the_run_in_the_middle() {
        let seen = |seeds| Verdict::Violated { check: "event-lost".to_owned(), seeds };
        let row = |verdicts| Row { mutant: &MUTANTS[0], verdicts };
        assert_eq!(row(vec![seen(9), Verdict::Clean, seen(2)]).median(), Some(9));
        assert_eq!(row(vec![seen(9), Verdict::Clean, Verdict::Clean]).median(), None);
        assert!(row(vec![seen(1)]).line().ends_with("| 1 | event-lost |"));
    }
}
