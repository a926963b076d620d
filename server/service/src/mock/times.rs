//! The number of requests that a test expects.

use std::{
    fmt,
    ops::{Range, RangeFrom, RangeInclusive, RangeTo, RangeToInclusive},
};

/// An expected count: a number, or a range such as `1..`, `..=2`, `1..4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    min: u64,
    /// `None` for no limit.
    max: Option<u64>,
}

impl Times {
    pub(super) fn allows(self, count: u64) -> bool {
        self.min <= count && self.max.is_none_or(|max| count <= max)
    }

    /// Returns the lowest count.
    pub(super) const fn min(self) -> u64 {
        self.min
    }

    /// Returns the range from `min` up to, but not including, `end`.
    fn half_open(min: u64, end: u64) -> Self {
        assert!(end > min, "the range {min}..{end} is empty");
        Self { min, max: Some(end - 1) }
    }

    fn inclusive(min: u64, max: u64) -> Self {
        assert!(max >= min, "the range {min}..={max} is empty");
        Self { min, max: Some(max) }
    }
}

impl From<u64> for Times {
    fn from(count: u64) -> Self {
        Self::inclusive(count, count)
    }
}

impl From<RangeFrom<u64>> for Times {
    fn from(range: RangeFrom<u64>) -> Self {
        Self { min: range.start, max: None }
    }
}

impl From<Range<u64>> for Times {
    fn from(range: Range<u64>) -> Self {
        Self::half_open(range.start, range.end)
    }
}

impl From<RangeInclusive<u64>> for Times {
    fn from(range: RangeInclusive<u64>) -> Self {
        Self::inclusive(*range.start(), *range.end())
    }
}

impl From<RangeTo<u64>> for Times {
    fn from(range: RangeTo<u64>) -> Self {
        Self::half_open(0, range.end)
    }
}

impl From<RangeToInclusive<u64>> for Times {
    fn from(range: RangeToInclusive<u64>) -> Self {
        Self::inclusive(0, range.end)
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self { min: 1, max: Some(1) } => f.write_str("1 request"),
            Self { min, max: None } => write!(f, "at least {min} requests"),
            Self { min, max: Some(max) } if min == max => write!(f, "{min} requests"),
            Self { min: 0, max: Some(max) } => write!(f, "at most {max} requests"),
            Self { min, max: Some(max) } => write!(f, "{min} to {max} requests"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_each_range_allow_their_counts() {
        let table: [(Times, &[u64], &str); 7] = [
            (0.into(), &[0], "0 requests"),
            (1.into(), &[1], "1 request"),
            (3.into(), &[3], "3 requests"),
            ((3..).into(), &[3, 4, 5], "at least 3 requests"),
            ((1..3).into(), &[1, 2], "1 to 2 requests"),
            ((..=2).into(), &[0, 1, 2], "at most 2 requests"),
            ((2..=4).into(), &[2, 3, 4], "2 to 4 requests"),
        ];
        for (times, allowed, text) in table {
            let all: Vec<u64> = (0..6).filter(|count| times.allows(*count)).collect();
            assert_eq!((all.as_slice(), times.to_string().as_str()), (allowed, text));
        }
        assert_eq!(Times::from(..2), Times::from(0..=1));
    }
}
