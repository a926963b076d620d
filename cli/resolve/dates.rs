//! Dates on the command line.

use chrono::NaiveDate;

use crate::{failure::Failure, sanitize::without_keys, texts};

/// Parses a date such as 2026-01-31.
pub(super) fn parse_date(option: &str, text: &str) -> Result<NaiveDate, Failure> {
    let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
    date.filter(|date| text.len() == 10 && date.to_string() == text).ok_or_else(|| {
        let values = [("value", &*without_keys(text)), ("option", option)];
        Failure::usage(texts::INVALID_VALUE.with(&values), texts::DATE_FORM)
    })
}
