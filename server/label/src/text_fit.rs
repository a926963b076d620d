//! Fits text into lines: tries each size, wraps between words, and truncates with an ellipsis only as a last resort.

use super::font::{self, UNITS_PER_EM, Weight};

/// A font weight and the sizes to try, largest first.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextStyle {
    pub weight: Weight,
    pub sizes: &'static [u32],
}

/// A text as lines that fit their widths.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FittedText {
    pub size: u32,
    pub lines: Vec<String>,
}

/// Wraps `text` into lines of at most `widths` dots, with one width for each line, in the first size that fits.
pub(super) fn fit(text: &str, style: TextStyle, widths: &[u32]) -> FittedText {
    let whole = style.sizes.iter().find_map(|size| {
        let mut lines = Vec::new();
        let limits = widths.iter().map(|width| to_font_units(*width, *size));
        let fits = wrap(text, style.weight, limits, |line| lines.push(line.to_owned()));
        fits.then_some(FittedText { size: *size, lines })
    });
    whole.unwrap_or_else(|| {
        let size = style.sizes.last().copied().unwrap_or(1);
        FittedText { size, lines: wrap_with_ellipsis(text, style.weight, size, widths) }
    })
}

/// Returns `true` if [`fit`] shows the whole text without splitting a word. Does not allocate, because it is called for
/// every order.
pub(super) fn fits(
    text: &str,
    style: TextStyle,
    widths: &(impl Iterator<Item = u32> + Clone),
) -> bool {
    style.sizes.iter().any(|size| {
        let limits = widths.clone().map(|width| to_font_units(width, *size));
        wrap(text, style.weight, limits, |_| ())
    })
}

/// Returns `true` if [`fit`] shows the whole text, even if it has to split a word.
pub(super) fn shows_all(
    text: &str,
    style: TextStyle,
    widths: &(impl Iterator<Item = u32> + Clone),
) -> bool {
    let size = style.sizes.last().copied().unwrap_or(1);
    let line = |rest, width| take_line(rest, style.weight, to_font_units(width, size)).rest;
    fits(text, style, widths) || widths.clone().fold(text, line).is_empty()
}

/// Returns the number of bytes of `text` that [`fit`] shows.
pub(super) fn shown_bytes(
    text: &str,
    style: TextStyle,
    widths: &(impl Iterator<Item = u32> + Clone),
) -> usize {
    if shows_all(text, style, widths) {
        return text.len();
    }
    let size = style.sizes.last().copied().unwrap_or(1);
    let (mut shown, mut rest) = (0, text);
    for limit in widths.clone().map(|width| to_font_units(width, size)) {
        // In the last line, only the text before the ellipsis is shown.
        shown = text.len() - rest.len() + before_ellipsis(rest, style.weight, limit).len();
        rest = take_line(rest, style.weight, limit).rest;
    }
    shown
}

/// Wraps `text` between words and passes each line to `each`. Returns `false` if the text does not fit.
fn wrap<'a>(
    text: &'a str,
    weight: Weight,
    limits: impl Iterator<Item = u32>,
    mut each: impl FnMut(&'a str),
) -> bool {
    let mut rest = text;
    for limit in limits {
        if rest.is_empty() {
            break;
        }
        let line = take_line(rest, weight, limit);
        if line.splits_a_word {
            return false;
        }
        each(line.text);
        rest = line.rest;
    }
    rest.is_empty()
}

/// Wraps `text` into all lines. Words may be split, and the last line may end in an ellipsis.
fn wrap_with_ellipsis(text: &str, weight: Weight, size: u32, widths: &[u32]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = text;
    for (index, width) in widths.iter().enumerate() {
        if rest.is_empty() {
            break;
        }
        let limit = to_font_units(*width, size);
        let line = take_line(rest, weight, limit);
        let is_last = index + 1 == widths.len();
        if is_last && !line.rest.is_empty() {
            lines.push(with_ellipsis(rest, weight, limit));
        } else {
            lines.push(line.text.to_owned());
        }
        rest = line.rest;
    }
    lines
}

fn with_ellipsis(text: &str, weight: Weight, limit: u32) -> String {
    format!("{}…", before_ellipsis(text, weight, limit))
}

fn before_ellipsis(text: &str, weight: Weight, limit: u32) -> &str {
    let dots = u32::from(font::glyph(weight, '…').advance);
    let end = fitting_length(text, weight, limit.saturating_sub(dots));
    text.get(..end).unwrap_or_default().trim_end()
}

struct Line<'a> {
    text: &'a str,
    rest: &'a str,
    splits_a_word: bool,
}

/// Takes the longest beginning of `text` within `limit` font units, up to the end of a word if possible.
fn take_line(text: &str, weight: Weight, limit: u32) -> Line<'_> {
    let end = fitting_length(text, weight, limit);
    let (head, tail) = text.split_at_checked(end).unwrap_or((text, ""));
    if tail.is_empty() {
        return Line { text: head, rest: tail, splits_a_word: false };
    }
    if let Some(rest) = tail.strip_prefix(' ') {
        return Line { text: head, rest, splits_a_word: false };
    }
    match head.rfind(' ').and_then(|space| text.split_at_checked(space)) {
        Some((line, rest)) => Line { text: line, rest: rest.trim_start(), splits_a_word: false },
        None => Line { text: head, rest: tail, splits_a_word: true },
    }
}

/// Returns the length in bytes of the longest beginning of `text` within `limit` font units.
fn fitting_length(text: &str, weight: Weight, limit: u32) -> usize {
    let mut used = 0;
    for (index, character) in text.char_indices() {
        used += u32::from(font::glyph(weight, character).advance);
        if used > limit {
            return index;
        }
    }
    text.len()
}

/// Converts a width in dots to font units of a size.
fn to_font_units(width: u32, size: u32) -> u32 {
    width * UNITS_PER_EM / size.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: TextStyle = TextStyle { weight: Weight::Regular, sizes: &[36, 30, 26] };

    fn shown(text: &str, widths: &[u32]) -> (u32, String) {
        let fitted = fit(text, STYLE, widths);
        for (line, width) in fitted.lines.iter().zip(widths) {
            assert!(font::width(line, STYLE.weight, fitted.size) <= *width, "{line}");
        }
        (fitted.size, fitted.lines.join("|"))
    }

    #[test]
    fn text_is_shrunk_then_wrapped_then_truncated() {
        let street = "Av. Amazonas N34-451 y Atahualpa";
        let rows: [(&str, &[u32], u32, &str); 6] = [
            (street, &[600], 36, street),
            (street, &[400], 26, street),
            (street, &[300, 300], 36, "Av. Amazonas|N34-451 y Atahualpa"),
            (street, &[200], 26, "Av. Amazonas N3…"),
            ("Donaudampfschiff", &[120, 120], 26, "Donaudam|pfschiff"),
            ("", &[120], 36, ""),
        ];
        for (text, widths, size, lines) in rows {
            assert_eq!(shown(text, widths), (size, lines.to_owned()), "{text} in {widths:?}");
        }
    }
}
