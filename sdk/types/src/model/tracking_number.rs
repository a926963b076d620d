//! Tracking numbers (spec: Order request, `trackingNumber`).

use std::cmp::Ordering;

use super::{InvalidValue, macros::checked_text};

/// A tracking number: 10-30 letters, digits and hyphens, with no hyphen at either end.
///
/// It is kept and displayed as written, and compared without case: two spellings of one number are equal.
///
/// ```
/// # use parcelo::TrackingNumber;
/// let number = TrackingNumber::parse("SB-SUCCESS-0001")?;
/// assert_eq!(number, TrackingNumber::parse("sb-success-0001")?);
/// assert!(TrackingNumber::parse("too-short").is_err());
/// # Ok::<(), parcelo::InvalidValue>(())
/// ```
#[derive(Debug, Clone)]
pub struct TrackingNumber(Box<str>);

impl TrackingNumber {
    /// Minimum length of a tracking number, in characters.
    #[doc(hidden)]
    pub const MIN: usize = 10;
    /// Maximum length of a tracking number, in characters.
    #[doc(hidden)]
    pub const MAX: usize = 30;

    /// Parses a tracking number. The text is not trimmed.
    pub fn parse(text: &str) -> Result<Self, InvalidValue> {
        let fits = (Self::MIN..=Self::MAX).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !text.starts_with('-')
            && !text.ends_with('-');
        if fits { Ok(Self(text.into())) } else { Err(InvalidValue::TRACKING_NUMBER) }
    }

    /// Returns the number as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the form for comparing and indexing numbers: upper case.
    pub fn folded(&self) -> String {
        self.0.to_ascii_uppercase()
    }

    /// Returns `true` if the number starts with `SB`, which only sandbox numbers do.
    pub fn is_sandbox(&self) -> bool {
        self.starts_with("SB")
    }

    /// Returns `true` if the number starts with `prefix`, in any case.
    #[doc(hidden)]
    pub fn starts_with(&self, prefix: &str) -> bool {
        self.0.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix))
    }
}

impl PartialEq for TrackingNumber {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl Eq for TrackingNumber {}

/// Ordered by the folded form, consistently with equality.
impl Ord for TrackingNumber {
    fn cmp(&self, other: &Self) -> Ordering {
        let folded = |b: u8| b.to_ascii_uppercase();
        self.0.bytes().map(folded).cmp(other.0.bytes().map(folded))
    }
}

impl PartialOrd for TrackingNumber {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl std::hash::Hash for TrackingNumber {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.folded().hash(state);
    }
}

checked_text!(
    TrackingNumber,
    format!("^[A-Za-z0-9][A-Za-z0-9-]{{{},{}}}[A-Za-z0-9]$", Self::MIN - 2, Self::MAX - 2),
    "SB-SUCCESS-0001"
);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn numbers_are_ordered_and_compared_without_case() {
        let number = |text| TrackingNumber::parse(text).unwrap();
        let sorted =
            BTreeSet::from(["sb-success-0002", "SB-SUCCESS-0001", "SB-success-0002"].map(number));
        let sorted: Vec<_> = sorted.iter().map(TrackingNumber::folded).collect();
        assert_eq!(sorted, ["SB-SUCCESS-0001", "SB-SUCCESS-0002"]);
    }
}
