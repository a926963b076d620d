//! `Accept-Language`: a header that follows the grammar of RFC 9110 is read in the same way by a second, independent
//! parser.

use parcelo::Language;

use crate::Target;

pub(crate) const TARGET: Target = Target { name: "accept_language", check, cases: 20_000 };

fn check(input: &[u8]) {
    let Ok(header) = std::str::from_utf8(input) else { return };
    let language = Language::from_header(header);
    let is_not_blank = |text: &&str| !text.trim_matches([' ', '\t']).is_empty();
    if let Some(entries) =
        header.split(',').filter(is_not_blank).map(parse_entry).collect::<Option<Vec<_>>>()
    {
        assert_eq!(language, preferred_language(&entries), "{header:?}");
    }
}

/// Returns the language with the higher weight, the first one if the weights are equal, and English if neither is
/// acceptable.
fn preferred_language(entries: &[(&str, u32)]) -> Language {
    let wildcard_weight =
        entries.iter().filter(|(tag, _)| *tag == "*").map(|(_, weight)| *weight).max();
    let rank = |code: &str| {
        let has_code = |tag: &str| tag.split('-').next().unwrap().eq_ignore_ascii_case(code);
        let named = entries.iter().enumerate().filter(|(_, (tag, _))| has_code(tag));
        let best = named.map(|(index, (_, weight))| (*weight, usize::MAX - index)).max();
        // A language that matches only `*` comes after those that are named.
        best.unwrap_or((wildcard_weight.unwrap_or(0), 0))
    };
    if rank("es") > rank("en") && rank("es").0 > 0 { Language::Es } else { Language::En }
}

/// Returns an entry's tag and its weight in thousandths; `None` if it breaks the grammar.
fn parse_entry(text: &str) -> Option<(&str, u32)> {
    let is_blank = |c| matches!(c, ' ' | '\t');
    let text = text.trim_matches(is_blank);
    let (tag, weight) = match text.split_once(';') {
        None => (text, 1000),
        Some((tag, weight)) => {
            let weight = weight.trim_matches(is_blank);
            let digits = weight.strip_prefix("q=").or_else(|| weight.strip_prefix("Q="))?;
            (tag.trim_end_matches(is_blank), parse_weight(digits)?)
        }
    };
    let is_subtag = |(index, part): (usize, &str)| {
        let is_subtag_byte =
            |byte: u8| byte.is_ascii_alphabetic() || index > 0 && byte.is_ascii_digit();
        (1..=8).contains(&part.len()) && part.bytes().all(is_subtag_byte)
    };
    let is_tag = tag == "*" || tag.split('-').enumerate().all(is_subtag);
    is_tag.then_some((tag, weight))
}

fn parse_weight(text: &str) -> Option<u32> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let is_number = decimals.len() <= 3 && decimals.bytes().all(|byte| byte.is_ascii_digit());
    let decimals = format!("{decimals:0<3}").parse::<u32>().ok().filter(|_| is_number)?;
    match whole {
        "0" => Some(decimals),
        "1" if decimals == 0 => Some(1000),
        _ => None,
    }
}
