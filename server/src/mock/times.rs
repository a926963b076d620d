//! How many requests a test expects.

use std::{
    fmt,
    ops::{Range, RangeFrom, RangeInclusive, RangeTo, RangeToInclusive},
};

/// How often something is expected: a number, or a range such as `1..`, `..=2`, `1..4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    least: u64,
    /// None for no limit.
    most: Option<u64>,
}

impl Times {
    pub(super) fn allows(self, count: u64) -> bool {
        self.least <= count && self.most.is_none_or(|most| count <= most)
    }

    /// Ends before `end`.
    fn before(least: u64, end: u64) -> Self {
        assert!(end > least, "no number is from {least} to before {end}");
        Self { least, most: Some(end - 1) }
    }

    fn between(least: u64, most: u64) -> Self {
        assert!(most >= least, "no number is from {least} to {most}");
        Self { least, most: Some(most) }
    }
}

impl From<u64> for Times {
    fn from(count: u64) -> Self {
        Self::between(count, count)
    }
}

impl From<RangeFrom<u64>> for Times {
    fn from(range: RangeFrom<u64>) -> Self {
        Self { least: range.start, most: None }
    }
}

impl From<Range<u64>> for Times {
    fn from(range: Range<u64>) -> Self {
        Self::before(range.start, range.end)
    }
}

impl From<RangeInclusive<u64>> for Times {
    fn from(range: RangeInclusive<u64>) -> Self {
        Self::between(*range.start(), *range.end())
    }
}

impl From<RangeTo<u64>> for Times {
    fn from(range: RangeTo<u64>) -> Self {
        Self::before(0, range.end)
    }
}

impl From<RangeToInclusive<u64>> for Times {
    fn from(range: RangeToInclusive<u64>) -> Self {
        Self::between(0, range.end)
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self { least: 1, most: Some(1) } => f.write_str("1 request"),
            Self { least, most: None } => write!(f, "at least {least} requests"),
            Self { least, most: Some(most) } if least == most => write!(f, "{least} requests"),
            Self { least: 0, most: Some(most) } => write!(f, "at most {most} requests"),
            Self { least, most: Some(most) } => write!(f, "{least} to {most} requests"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_each_range_allow_what_they_say() {
        let table: [(Times, &[u64], &str); 7] = [
            (0.into(), &[0], "0 requests"),
            (1.into(), &[1], "1 request"),
            (3.into(), &[3], "3 requests"),
            ((3..).into(), &[3, 4, 5], "at least 3 requests"),
            ((1..3).into(), &[1, 2], "1 to 2 requests"),
            ((..=2).into(), &[0, 1, 2], "at most 2 requests"),
            ((2..=4).into(), &[2, 3, 4], "2 to 4 requests"),
        ];
        for (times, allowed, said) in table {
            let all: Vec<u64> = (0..6).filter(|count| times.allows(*count)).collect();
            assert_eq!((all.as_slice(), times.to_string().as_str()), (allowed, said));
        }
        assert_eq!(Times::from(..2), Times::from(0..=1));
    }
}
