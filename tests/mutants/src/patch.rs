//! Builds the mutants into a file's text: all of them at once, each behind a look at which one is chosen. Pure.

use std::{collections::BTreeMap, fmt};

use crate::table::{Edit, Mutant};

/// In a replacement: whether the mutant is chosen.
const CHOSEN: &str = "MUTANT";

/// A mutant that does not fit the sources any more: change its row of the table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stale {
    mutant: &'static str,
    file: &'static str,
    why: &'static str,
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is stale: in {} {}", self.mutant, self.file, self.why)
    }
}

/// The faults that take the place of one piece of text, each with the name of its mutant.
type Faults = Vec<(&'static str, &'static Edit)>;

/// A file's text with the faults of all mutants that change it; the text itself when none does.
pub(crate) fn patched(
    file: &str,
    text: &str,
    mutants: &'static [Mutant],
) -> Result<String, Vec<Stale>> {
    let (mut sites, mut stale) = (BTreeMap::<(usize, usize), Faults>::new(), Vec::new());
    for (name, edit) in edits(mutants).filter(|(_, edit)| edit.file == file) {
        match site(text, edit.find) {
            Ok(site) => sites.entry(site).or_default().push((name, edit)),
            Err(why) => stale.push(Stale { mutant: name, file: edit.file, why }),
        }
    }
    let (mut written, mut done) = (String::with_capacity(text.len() + 4_096), 0);
    for ((start, end), faults) in sites {
        match (text.get(done..start), text.get(start..end), choice(&faults)) {
            (Some(before), Some(original), Some(choice)) => {
                written.extend([before, &choice(original)]);
                done = end;
            }
            _ => stale.extend(faults.iter().map(|(mutant, edit)| Stale {
                mutant,
                file: edit.file,
                why: "its text is another mutant's too",
            })),
        }
    }
    written.push_str(text.get(done..).unwrap_or_default());
    if stale.is_empty() { Ok(written) } else { Err(stale) }
}

/// Each change, with the name of its mutant.
pub(crate) fn edits(
    mutants: &'static [Mutant],
) -> impl Iterator<Item = (&'static str, &'static Edit)> {
    mutants.iter().flat_map(|mutant| mutant.edits.iter().map(|edit| (mutant.name, edit)))
}

/// From where to where the text stands that is replaced: what `find` has between `«` and `»`, or all of it.
fn site(text: &str, find: &str) -> Result<(usize, usize), &'static str> {
    let marked = find.split_once('«').and_then(|(before, rest)| {
        let (marked, after) = rest.split_once('»')?;
        Some((before, marked, after))
    });
    let (before, marked, after) = marked.unwrap_or(("", find, ""));
    let whole = [before, marked, after].concat();
    let mut places = text.match_indices(&whole).map(|(at, _)| at + before.len());
    match (places.next(), places.next()) {
        (Some(start), None) => Ok((start, start + marked.len())),
        (None, _) => Err("its text is not there"),
        (Some(_), Some(_)) => Err("its text is there more than once"),
    }
}

/// Makes of the original what is compiled. None when the replacement of one mutant leaves no place for another's.
fn choice(faults: &Faults) -> Option<impl Fn(&str) -> String> {
    let whole = faults.iter().find(|(_, edit)| edit.broken.contains(CHOSEN));
    if whole.is_some() && faults.len() > 1 {
        return None;
    }
    let mut branches = String::new();
    for (name, edit) in faults {
        branches.extend(["if ", &is_chosen(name), " { ", edit.broken, " } else "]);
    }
    let whole = whole.map(|(name, edit)| edit.broken.replace(CHOSEN, &is_chosen(name)));
    Some(move |original: &str| match &whole {
        Some(whole) => whole.clone(),
        None => format!("({branches}{{ {original} }})"),
    })
}

fn is_chosen(name: &str) -> String {
    format!("crate::mutant::is_chosen({name:?})")
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn one(name: &'static str, edits: &'static [Edit]) -> Mutant {
        Mutant { name, promise: "", edits }
    }

    const fn edit(find: &'static str, broken: &'static str) -> Edit {
        Edit { file: "a.rs", find, broken }
    }

    const LATE: Mutant = one("late", &[edit("now < «end»", "end + 1")]);

    #[test]
    fn the_marked_text_becomes_a_choice_and_all_else_stays() {
        const MUTANTS: &[Mutant] = &[
            LATE,
            one("never", &[edit("now < «end»", "0")]),
            one("early", &[edit("start();", "if !MUTANT { start(); }")]),
        ];
        let text = "start(); while now < end {}";
        let late = r#"if crate::mutant::is_chosen("late") { end + 1 }"#;
        let never = r#"if crate::mutant::is_chosen("never") { 0 }"#;
        let early = r#"if !crate::mutant::is_chosen("early") { start(); }"#;
        let expected = format!("{early} while now < ({late} else {never} else {{ end }}) {{}}");
        assert_eq!(patched("a.rs", text, MUTANTS), Ok(expected));
        assert_eq!(patched("b.rs", text, MUTANTS), Ok(text.to_owned()));
    }

    #[test]
    fn a_mutant_that_does_not_fit_is_named() {
        const OVERLAPPING: &[Mutant] =
            &[one("one", &[edit("a + b", "1")]), one("two", &[edit("b + c", "2")])];
        const SAME: &[Mutant] = &[LATE, one("raw", &[edit("now < «end»", "MUTANT as u8")])];
        let table: [(&[Mutant], &str, &str); 4] = [
            (&[LATE], "now <= end", "`late` is stale: in a.rs its text is not there"),
            (
                &[LATE],
                "now < end, now < end",
                "`late` is stale: in a.rs its text is there more than once",
            ),
            (OVERLAPPING, "a + b + c", "`two` is stale: in a.rs its text is another mutant's too"),
            (SAME, "now < end", "`late` is stale: in a.rs its text is another mutant's too"),
        ];
        for (mutants, text, expected) in table {
            let stale = patched("a.rs", text, mutants).unwrap_err();
            assert_eq!(stale[0].to_string(), expected);
        }
    }
}
