//! What a field may hold before its own rule sees it: texts and numbers with their bounds.

use rust_decimal::Decimal;

use super::{
    ListQuery, printable,
    texts::{Wrong, faults},
};

/// What a text field may hold.
#[derive(Clone, Copy)]
pub(crate) struct Text {
    most: usize,
    form: Form,
}

/// How a text is treated before its own rule sees it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A code that counts as given, spaces and all.
    Code,
    /// One trimmed line.
    Data,
    /// One trimmed line, every character of which is seen.
    Name,
    /// A name that the label shows: one trimmed line without hidden characters, but for those that
    /// its letters need.
    Person,
    /// One trimmed line that the label shows.
    Line,
    /// Trimmed lines that the label shows; line breaks and tabs are fine.
    Note,
}

impl Text {
    /// A code that counts as given; its own rule bounds its length.
    pub(crate) const CODE: Self = Self { most: usize::MAX, form: Form::Code };
    /// One line that the label does not show.
    pub(crate) const DATA: Self = Self { most: 255, form: Form::Data };
    /// What people tell something apart by.
    #[cfg(feature = "server")]
    pub(crate) const NAME: Self = Self { most: 100, form: Form::Name };
    /// Who sends or receives a parcel.
    pub(crate) const PERSON: Self = Self { most: 255, form: Form::Person };
    /// One line that the label shows.
    pub(crate) const LINE: Self = Self { most: 255, form: Form::Line };
    /// Lines that the label shows.
    pub(crate) const NOTE: Self = Self { most: 255, form: Form::Note };
    /// A name in the caller's system, which the label shows.
    pub(crate) const REFERENCE: Self = Self { most: ListQuery::MAX_ORDER_ID, ..Self::LINE };
    /// A tracking number that is looked up: a malformed one is one that nobody has.
    pub(crate) const SOUGHT_NUMBER: Self = Self { most: 255, ..Self::CODE };

    /// The most characters it may have.
    #[cfg(feature = "openapi")]
    pub(crate) const fn max_characters(self) -> usize {
        self.most
    }

    /// The same with another limit, in characters.
    pub(crate) const fn most(self, most: usize) -> Self {
        Self { most, ..self }
    }

    pub(crate) fn read(self, text: &str) -> Result<&str, Wrong> {
        let text = if self.form == Form::Code { text } else { text.trim() };
        if text.len() > self.most && text.chars().count() > self.most {
            return Err(faults::too_long(self.most));
        }
        if self.form == Form::Name && text.chars().any(printable::is_hidden) {
            return Err(faults::hidden_character());
        }
        if self.form == Form::Person && printable::hides_needlessly(text) {
            return Err(faults::hidden_character());
        }
        let is_layout = |c| self.form == Form::Note && matches!(c, '\n' | '\r' | '\t');
        if text.chars().any(|c| c.is_control() && !is_layout(c)) {
            return Err(faults::control_character());
        }
        Ok(text)
    }

    pub(crate) fn is_drawn(self) -> bool {
        matches!(self.form, Form::Person | Form::Line | Form::Note)
    }

    pub(crate) fn is_person(self) -> bool {
        self.form == Form::Person
    }
}

/// True when nothing of the text can be seen.
pub(crate) fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || printable::is_invisible(c))
}

/// The bounds of a number.
#[derive(Clone, Copy)]
pub(crate) enum Bounds {
    /// Above 0, up to the bound.
    AboveZero(Decimal),
    /// From the first to the second.
    Between(Decimal, Decimal),
}

impl Bounds {
    pub(crate) fn hold(self, number: Decimal) -> Result<Decimal, Wrong> {
        match self {
            Self::AboveZero(most) if number > Decimal::ZERO && number <= most => Ok(number),
            Self::Between(least, most) if number >= least && number <= most => Ok(number),
            Self::AboveZero(_) | Self::Between(..) => Err(self.broken()),
        }
    }

    pub(crate) fn broken(self) -> Wrong {
        match self {
            Self::AboveZero(most) => faults::above_zero(most),
            Self::Between(least, most) => faults::between(least, most),
        }
    }
}
