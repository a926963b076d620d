//! The types of fields: texts with their longest length and allowed characters, numbers with their bounds.

use rust_decimal::Decimal;

use super::{
    text,
    texts::{FaultText, faults},
};

/// Maximum length of a text, in characters. The spec states it for `fullName` (spec: Limits). Every other text without
/// a limit in the spec gets the same one, so that no field can fill the database or the label.
const MAX_TEXT_CHARS: usize = 255;
/// Maximum length of the caller's ids and references, in characters (spec: Limits).
pub(crate) const MAX_REFERENCE_CHARS: usize = 100;
/// Maximum length of the name of a key, a carrier or an account, in characters: it fits on a line of the dashboard.
const MAX_NAME_CHARS: usize = 100;

/// The type of a text field: its maximum length and its permitted characters.
#[derive(Debug, Clone, Copy)]
pub struct Text {
    max_chars: usize,
    form: Form,
}

/// The trimming and the permitted characters of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A code, compared exactly: not trimmed.
    Code,
    /// One trimmed line.
    Data,
    /// One trimmed line of visible characters.
    Name,
    /// A person's or company's name on the label: one trimmed line, without hidden characters other
    /// than those that its script needs.
    Person,
    /// One trimmed line on the label.
    Line,
    /// Trimmed lines on the label; line breaks and tabs are allowed.
    Note,
}

impl Text {
    /// A code, compared exactly; a separate rule limits its length.
    pub const CODE: Self = Self { max_chars: usize::MAX, form: Form::Code };
    /// One line that is not printed on the label.
    pub const DATA: Self = Self { max_chars: MAX_TEXT_CHARS, form: Form::Data };
    /// The name of a key, a carrier or an account. Hidden characters are refused: with one, two names
    /// look the same in a list.
    pub const NAME: Self = Self { max_chars: MAX_NAME_CHARS, form: Form::Name };
    /// The sender's or the receiver's name.
    pub(crate) const PERSON: Self = Self { max_chars: MAX_TEXT_CHARS, form: Form::Person };
    /// One line of the label.
    pub(crate) const LINE: Self = Self { max_chars: MAX_TEXT_CHARS, form: Form::Line };
    /// Lines of the label.
    pub const NOTE: Self = Self { max_chars: MAX_TEXT_CHARS, form: Form::Note };
    /// An id or a reference of the caller's, which the label shows.
    pub(crate) const REFERENCE: Self = Self { max_chars: MAX_REFERENCE_CHARS, ..Self::LINE };
    /// A tracking number to look up. Its format is not checked: a malformed number counts as unknown, so
    /// that it does not reject a whole list.
    pub const LOOKUP_NUMBER: Self = Self { max_chars: MAX_TEXT_CHARS, ..Self::CODE };

    /// Returns the maximum length in characters.
    pub(crate) const fn max_characters(self) -> usize {
        self.max_chars
    }

    /// Returns the same type with another maximum length, in characters.
    #[must_use]
    pub const fn with_max(self, max_chars: usize) -> Self {
        Self { max_chars, ..self }
    }

    /// Parses a text of this type, trimmed unless it is a code.
    pub fn parse(self, given: &str) -> Result<&str, FaultText> {
        let given = if self.form == Form::Code { given } else { given.trim() };
        // Characters count, not bytes: a name in Cyrillic may be as long as one in Latin letters.
        if given.len() > self.max_chars && given.chars().count() > self.max_chars {
            return Err(faults::too_long(self.max_chars));
        }
        if text::is_plain(given) {
            return Ok(given);
        }
        if self.form == Form::Name && given.chars().any(text::is_hidden) {
            return Err(faults::HIDDEN_CHARACTER);
        }
        if self.form == Form::Person && text::has_suspicious_hidden_character(given) {
            return Err(faults::HIDDEN_CHARACTER);
        }
        let is_layout = |c| self.form == Form::Note && matches!(c, '\n' | '\r' | '\t');
        if given.chars().any(|c| c.is_control() && !is_layout(c)) {
            return Err(faults::CONTROL_CHARACTER);
        }
        Ok(given)
    }

    /// Returns as much of a trimmed text as the maximum length permits.
    pub(crate) fn cut(self, given: &str) -> &str {
        let end = given.char_indices().nth(self.max_chars).map_or(given.len(), |(end, _)| end);
        given.get(..end).unwrap_or(given).trim_end()
    }

    pub(crate) fn is_on_label(self) -> bool {
        matches!(self.form, Form::Person | Form::Line | Form::Note)
    }

    pub(crate) fn is_person(self) -> bool {
        self.form == Form::Person
    }
}

/// Returns `true` if no character of the text is visible: such a field counts as absent.
pub fn is_blank(given: &str) -> bool {
    given.chars().all(|c| c.is_whitespace() || text::is_invisible(c))
}

/// The bounds of a number.
#[derive(Debug, Clone, Copy)]
pub enum Bounds {
    /// More than 0, and at most this number in this unit.
    AboveZero(Decimal, &'static str),
    /// A range: at least the first and at most the second.
    Between(Decimal, Decimal),
}

impl Bounds {
    /// Returns the number, if it is within the bounds.
    pub(crate) fn check(self, number: Decimal) -> Result<Decimal, FaultText> {
        match self {
            Self::AboveZero(max, _) if number > Decimal::ZERO && number <= max => Ok(number),
            Self::Between(min, max) if number >= min && number <= max => Ok(number),
            Self::AboveZero(..) | Self::Between(..) => Err(self.out_of_range()),
        }
    }

    /// Returns the fault of a number outside the bounds.
    pub(crate) fn out_of_range(self) -> FaultText {
        match self {
            Self::AboveZero(max, unit) => faults::above_zero(max, unit),
            Self::Between(min, max) => faults::between(min, max),
        }
    }
}
