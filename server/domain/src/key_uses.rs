//! The day on which each API key was last used.

use std::collections::BTreeMap;

use crate::activity::day_start;

/// The day of each key's last use in UTC, in days since 1970-01-01, by the key's row id.
pub type LastUseDays = BTreeMap<i64, i64>;

/// Returns a day of [`LastUseDays`] as a date, such as `2026-01-30`.
pub fn date_text(day: i64) -> String {
    day_start(day).to_utc().date_naive().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_shown_as_its_date() {
        assert_eq!([0, 20_483].map(date_text), ["1970-01-01", "2026-01-30"]);
    }
}
