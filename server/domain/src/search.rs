//! Searches for parcels by the beginning, or the last four or more characters, of a tracking number, a reference or an
//! air waybill, and by the beginnings of words in the receiver's name.
//!
//! The store keeps a few *terms* for each parcel, sorted, so that a prefix is a range of terms. A suffix is a prefix of
//! the reversed text. Terms depend only on the parcel's number and order, which never change, so they can be computed
//! again to delete them. The code must not change them either: a different folding needs a migration that rebuilds
//! them. Air waybills are assigned later and have no terms; the store finds them through the manifest.

use std::{cmp::Reverse, collections::BTreeSet};

use parcelo_types::internal::ListQuery;
use serde::Deserialize;

use fold::{fold, fold_code};

mod fold;

/// Minimum length of a suffix that is searched for, in characters.
const MIN_SUFFIX_CHARS: usize = 4;
/// Maximum length of a term in characters, without the letter of its kind: the same as for a reference.
const MAX_TERM_CHARS: usize = ListQuery::MAX_SEARCH;
/// Number of digits in an air waybill.
const AWB_DIGITS: usize = 11;
/// Maximum number of words in a name that are indexed.
const MAX_INDEXED_WORDS: usize = 16;
/// A terminator for terms that are searched for as a whole. No term contains it; the store appends it to its entries.
pub const TERM_END: &str = "\0";

/// The kind of a term: the field that it comes from. The first letter of a term encodes its kind.
#[derive(Debug, Clone, Copy)]
enum TermKind {
    Number,
    NumberSuffix,
    Reference,
    ReferenceSuffix,
    Name,
}

impl TermKind {
    const fn tag(self) -> char {
        match self {
            Self::Number => 'n',
            Self::NumberSuffix => 'o',
            Self::Reference => 'r',
            Self::ReferenceSuffix => 's',
            Self::Name => 'w',
        }
    }

    fn term(self, text: impl Iterator<Item = char>) -> String {
        std::iter::once(self.tag()).chain(text.take(MAX_TERM_CHARS)).collect()
    }
}

/// The fields of a parcel that are searched.
#[derive(Debug, Clone, Copy)]
pub struct SearchableFields<'a> {
    /// Its tracking number.
    pub number: &'a str,
    /// The customer's reference, and the order's id in the caller's system.
    pub references: [Option<&'a str>; 2],
    /// The receiver's name.
    pub receiver: &'a str,
}

/// The fields of a stored order that are searched.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SearchableOrder {
    customer_reference: Option<String>,
    external_order_id: Option<String>,
    receiver: SearchableReceiver,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SearchableReceiver {
    full_name: String,
}

impl SearchableOrder {
    /// Adds the tracking number of the order's parcel.
    pub fn searchable_fields<'a>(&'a self, number: &'a str) -> SearchableFields<'a> {
        let references = [self.customer_reference.as_deref(), self.external_order_id.as_deref()];
        SearchableFields { number, references, receiver: &self.receiver.full_name }
    }
}

impl SearchableFields<'_> {
    /// Returns the terms under which the store keeps the parcel, sorted and without duplicates.
    pub fn terms(&self) -> Vec<String> {
        let mut terms = BTreeSet::new();
        let number = fold_code(self.number);
        push_code(&mut terms, &number, [TermKind::Number, TermKind::NumberSuffix]);
        for reference in self.references.iter().flatten() {
            push_code(
                &mut terms,
                &fold_code(reference),
                [TermKind::Reference, TermKind::ReferenceSuffix],
            );
        }
        let name = fold(self.receiver);
        terms.extend(
            name.split(' ')
                .take(MAX_INDEXED_WORDS)
                .filter(|word| !word.is_empty())
                .map(|word| TermKind::Name.term(word.chars())),
        );
        terms.into_iter().collect()
    }
}

fn push_code(terms: &mut BTreeSet<String>, code: &str, [prefix, suffix]: [TermKind; 2]) {
    if code.is_empty() {
        return;
    }
    terms.insert(prefix.term(code.chars()));
    if code.chars().count() >= MIN_SUFFIX_CHARS {
        terms.insert(suffix.term(code.chars().rev()));
    }
}

/// A search. It matches a parcel that has all words of one of the alternatives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    /// The words of each alternative.
    pub alternatives: Vec<Vec<SearchWord>>,
}

/// One word of a search. A parcel has it if a term or the air waybill matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchWord {
    /// Prefixes of terms.
    pub terms: Vec<String>,
    /// Digits at the beginning of an air waybill or, if there are at least four, at its end.
    pub awb: Option<String>,
}

/// Air waybills that begin or end with some digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwbBounds {
    /// The lower bound of air waybills that begin with the digits, inclusive.
    pub from: String,
    /// The upper bound of air waybills that begin with the digits, exclusive.
    pub to: String,
    /// The last four digits of air waybills that end with the digits; `None` if there are too few for a suffix.
    pub last: Option<String>,
    /// The digits.
    pub digits: String,
}

impl Search {
    /// Returns the search in a query, or `None` if the query only lists parcels.
    pub fn new(query: &ListQuery) -> Option<Self> {
        if query.search.is_none() && query.reference.is_none() {
            return None;
        }
        let is_exact = query.search.as_deref().and_then(ListQuery::quoted).is_some();
        let is_exact_reference = query.reference.as_deref().and_then(ListQuery::quoted).is_some();
        let text = query.search.as_deref().map(fold);
        let reference = query.reference.as_deref().map(fold_code);
        if [&text, &reference].into_iter().flatten().any(String::is_empty) {
            // Only punctuation: no parcel matches.
            return Some(Self { alternatives: Vec::new() });
        }
        let text = text.unwrap_or_default();
        let mut words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
        // Longer words are rarer, so they are looked up first.
        words.sort_by_key(|word| (Reverse(word.len()), *word));
        words.dedup();
        let mut alternatives =
            vec![words.iter().copied().map(SearchWord::name_or_code).collect::<Vec<_>>()];
        if text.contains(' ') {
            // A number written with spaces between its parts.
            alternatives.push(vec![SearchWord::code(&fold_code(&text))]);
        }
        if is_exact {
            alternatives = alternatives.into_iter().map(exact_words).collect();
        }
        let reference = reference.as_deref().map(SearchWord::reference);
        let reference =
            if is_exact_reference { reference.map(SearchWord::exact) } else { reference };
        for words in &mut alternatives {
            words.extend(reference.clone());
        }
        Some(Self { alternatives })
    }
}

impl SearchWord {
    fn name_or_code(word: &str) -> Self {
        let mut either = Self::code(word);
        either.terms.push(TermKind::Name.term(word.chars()));
        either
    }

    fn code(code: &str) -> Self {
        let mut terms = code_terms(code, [TermKind::Number, TermKind::NumberSuffix]);
        terms.extend(code_terms(code, [TermKind::Reference, TermKind::ReferenceSuffix]));
        let is_awb = code.len() <= AWB_DIGITS && code.bytes().all(|b| b.is_ascii_digit());
        Self { terms, awb: is_awb.then(|| code.to_owned()) }
    }

    fn reference(code: &str) -> Self {
        Self {
            terms: code_terms(code, [TermKind::Reference, TermKind::ReferenceSuffix]),
            awb: None,
        }
    }

    /// Limits the word to whole terms and numbers, not their prefixes or suffixes.
    fn exact(self) -> Self {
        let terms = self.terms.into_iter().map(|term| term + TERM_END);
        Self { terms: terms.collect(), awb: self.awb.filter(|awb| awb.len() == AWB_DIGITS) }
    }

    /// Returns `true` if the word matches a parcel with these terms and this air waybill.
    pub fn matches(&self, terms: &[String], awb: Option<&str>) -> bool {
        let has = |wanted: &String| {
            if let Some(whole) = wanted.strip_suffix(TERM_END) {
                return terms.binary_search_by(|term| term.as_str().cmp(whole)).is_ok();
            }
            let first = terms.partition_point(|term| term < wanted);
            terms.get(first).is_some_and(|term| term.starts_with(wanted.as_str()))
        };
        self.terms.iter().any(has) || awb.is_some_and(|awb| self.matches_awb(awb))
    }

    fn matches_awb(&self, awb: &str) -> bool {
        let Some(wanted) = &self.awb else { return false };
        let digits = awb.replace('-', "");
        digits.starts_with(wanted.as_str())
            || (wanted.len() >= MIN_SUFFIX_CHARS && digits.ends_with(wanted.as_str()))
    }

    /// Returns the ranges that match it in the store's indexes of air waybills.
    pub fn awb_bounds(&self) -> Option<AwbBounds> {
        let digits = self.awb.clone()?;
        let from = match digits.split_at_checked(3) {
            Some((airline, serial)) if !serial.is_empty() => format!("{airline}-{serial}"),
            _ => digits.clone(),
        };
        // In ASCII, the colon follows the digit nine.
        let to = format!("{from}:");
        let last = digits.len().checked_sub(MIN_SUFFIX_CHARS).and_then(|at| digits.get(at..));
        let last = last.map(str::to_owned);
        Some(AwbBounds { from, to, last, digits })
    }
}

fn exact_words(words: Vec<SearchWord>) -> Vec<SearchWord> {
    words.into_iter().map(SearchWord::exact).collect()
}

fn code_terms(code: &str, [prefix, suffix]: [TermKind; 2]) -> Vec<String> {
    let mut terms = vec![prefix.term(code.chars())];
    if code.chars().count() >= MIN_SUFFIX_CHARS {
        terms.push(suffix.term(code.chars().rev()));
    }
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parcel_has_few_terms_and_each_once() {
        let parcel = SearchableFields {
            number: "SB-AB12",
            references: [Some("PO 7"), Some("po-7")],
            receiver: "Ana de la Ana",
        };
        let terms = ["nsbab12", "o21babs", "rpo7", "wana", "wde", "wla"];
        assert_eq!(parcel.terms(), terms, "PO7 is too short to be found by its ending");
        let hostile = "é ".repeat(1_000) + &"x".repeat(1_000);
        let parcel =
            SearchableFields { number: "SB-AB12", references: [None; 2], receiver: &hostile };
        assert_eq!(parcel.terms(), ["nsbab12", "o21babs", "we"], "the first words");
        let parcel =
            SearchableFields { number: "SB-AB12", references: [Some("--"); 2], receiver: "-" };
        assert_eq!(parcel.terms(), ["nsbab12", "o21babs"]);
        let long = "x".repeat(1_000);
        let parcel = SearchableFields { number: "SB-AB12", references: [None; 2], receiver: &long };
        assert_eq!(parcel.terms()[2].len(), 1 + MAX_TERM_CHARS);
    }

    fn search(text: Option<&str>, reference: Option<&str>) -> Option<Search> {
        let mut query = ListQuery::default();
        query.search = text.map(str::to_owned);
        query.reference = reference.map(str::to_owned);
        Search::new(&query)
    }

    #[test]
    fn words_match_every_kind_of_term() {
        assert_eq!(search(None, None), None);
        let terms = |text| -> Vec<Vec<Vec<String>>> {
            let found = search(Some(text), None).unwrap().alternatives.into_iter();
            found.map(|words| words.into_iter().map(|word| word.terms).collect()).collect()
        };
        assert_eq!(terms("Ab"), [[["nab", "rab", "wab"]]]);
        assert_eq!(terms("Núñez"), [[["nnunez", "ozenun", "rnunez", "szenun", "wnunez"]]]);
        let word = |one: &str| ["n", "r", "w"].map(|kind| format!("{kind}{one}")).to_vec();
        let joined = ["ncabc", "ocbac", "rcabc", "scbac"].map(str::to_owned).to_vec();
        let both = vec![vec![word("ab"), word("c")], vec![joined]];
        assert_eq!(terms("c ab c"), both, "the longest first, each once, and the text in one");
    }

    #[test]
    fn a_quoted_text_matches_as_a_whole() {
        let parcel = SearchableFields {
            number: "EC7K2M9QX4T8WD0",
            references: [Some("PO-1001"), Some("1001 b")],
            receiver: "Ana Ruiz",
        };
        let terms = parcel.terms();
        let is_found = |search: Search| {
            let has_all = |words: &Vec<SearchWord>| {
                words.iter().all(|word| word.matches(&terms, Some("176-12345675")))
            };
            search.alternatives.iter().any(has_all)
        };
        for whole in ["ec7k2m9qx4t8wd0", "po1001", "1001-B", "ana", "Ruiz Ana", "176-1234 5675"] {
            let quoted = format!(" \"{whole}\" ");
            assert!(is_found(search(Some(&quoted), None).unwrap()), "{whole}");
        }
        for part in ["EC7K2M9", "8WD0", "PO-100", "1001", "Ru", "176-1234", "5675", "Ana R"] {
            let quoted = format!("\"{part}\"");
            assert!(is_found(search(Some(part), None).unwrap()), "{part}");
            assert!(!is_found(search(Some(&quoted), None).unwrap()), "{part}, in quotation marks");
        }
        assert!(is_found(search(None, Some("\"PO 1001\"")).unwrap()));
        assert!(
            is_found(search(Some("Rui"), Some("\"PO1001\"")).unwrap()),
            "each part is matched separately"
        );
        assert!(!is_found(search(None, Some("\"PO 100\"")).unwrap()));
        assert!(!is_found(search(None, Some("\"Ana\"")).unwrap()), "a name is not a reference");
        assert!(is_found(search(Some("\"PO-100"), None).unwrap()), "one mark alone is punctuation");
    }

    #[test]
    fn punctuation_alone_finds_nothing() {
        for (text, reference) in
            [(Some("\u{93e}"), None), (None, Some("\u{93e}")), (Some("a"), Some("\u{93e}"))]
        {
            assert_eq!(search(text, reference), Some(Search { alternatives: Vec::new() }));
        }
    }

    #[test]
    fn digits_also_match_air_waybills() {
        let word = |text| search(Some(text), None).unwrap().alternatives[0][0].clone();
        let table = [
            ("1", "1", None),
            ("176", "176", None),
            ("1761", "176-1", Some("1761")),
            ("17612345675", "176-12345675", Some("5675")),
        ];
        for (text, from, last) in table {
            let bounds = word(text).awb_bounds().unwrap();
            assert_eq!((bounds.from.as_str(), bounds.last.as_deref()), (from, last), "{text}");
            assert_eq!(bounds.to, format!("{from}:"));
        }
        for text in ["a176", "176123456751"] {
            assert_eq!(word(text).awb_bounds(), None, "{text}");
        }
        for (text, is_found) in [("176", true), ("1761234", true), ("5675", true), ("675", false)] {
            assert_eq!(word(text).matches(&[], Some("176-12345675")), is_found, "{text}");
        }
    }
}
