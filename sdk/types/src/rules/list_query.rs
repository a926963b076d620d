//! The query of the parcel list (docs/api.md, List parcels): the page and the filters. Unknown parameters are ignored,
//! and the last of a repeated one counts.

use std::{borrow::Cow, collections::HashMap};

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use rust_decimal::Decimal;

use super::{
    Rejected, contact,
    field_types::{MAX_REFERENCE_CHARS, Text},
    texts::{FaultText, faults},
};
use crate::model::{CountryCode, FieldFault, ParcelStatus};

/// A filter of parcels, and a page of the result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListQuery {
    /// The page, from 1.
    pub page: u32,
    /// The page size, at most [`ListQuery::MAX_LIMIT`].
    pub limit: u32,
    /// Only parcels in this status.
    pub status: Option<ParcelStatus>,
    /// Only parcels to this country.
    pub country: Option<CountryCode>,
    /// Only parcels with this id in the caller's system.
    pub external_order_id: Option<String>,
    /// Only parcels that match these words, each the beginning, or the last four or more characters, of the
    /// tracking number, a reference or the air waybill, or the beginning of a word of the receiver's name.
    pub search: Option<String>,
    /// Only parcels with this customer's reference or id in the caller's system: its beginning, or its last four or
    /// more characters.
    pub reference: Option<String>,
    /// Only parcels created at this time or later.
    pub created_from: Option<DateTime<Utc>>,
    /// Only parcels created before this time.
    pub created_to: Option<DateTime<Utc>>,
}

impl Default for ListQuery {
    /// Returns the first page of all parcels.
    fn default() -> Self {
        Self {
            page: 1,
            limit: Self::DEFAULT_LIMIT,
            status: None,
            country: None,
            external_order_id: None,
            search: None,
            reference: None,
            created_from: None,
            created_to: None,
        }
    }
}

impl ListQuery {
    /// Maximum page size.
    pub const MAX_LIMIT: u32 = 100;
    /// Page size without `limit`.
    pub const DEFAULT_LIMIT: u32 = 20;
    /// Maximum length of `externalOrderId`, in characters.
    pub const MAX_ORDER_ID: usize = MAX_REFERENCE_CHARS;
    /// Maximum length of `search` or `reference`, in characters, without the quotation marks around it.
    pub const MAX_SEARCH: usize = MAX_REFERENCE_CHARS;

    /// Returns the text between the quotation marks of a `search` or `reference`: it is searched for as a whole, not as
    /// a beginning or an ending.
    ///
    /// ```
    /// use parcelo_types::internal::ListQuery;
    /// assert_eq!(ListQuery::quoted("\"1001\""), Some("1001"));
    /// assert_eq!(ListQuery::quoted("1001"), None);
    /// ```
    pub fn quoted(search: &str) -> Option<&str> {
        search.trim().strip_prefix('"')?.strip_suffix('"')
    }
}

/// Checks the decoded pairs of a query; all faults at once, in the order of the documentation.
///
/// ```
/// use parcelo_types::internal::check_list;
/// let query = check_list([("limit".into(), "50".into())])?;
/// assert_eq!((query.page, query.limit), (1, 50));
/// let rejected = check_list([("page".into(), "0".into())]).unwrap_err();
/// assert_eq!(rejected.faults[0].field, "page");
/// # Ok::<(), parcelo::rules::Rejected>(())
/// ```
pub fn check_list<'q>(
    pairs: impl IntoIterator<Item = (Cow<'q, str>, Cow<'q, str>)>,
) -> Result<ListQuery, Rejected> {
    let mut params = Params { pairs: pairs.into_iter().collect(), faults: Vec::new() };
    let query = ListQuery {
        page: params.parse("page", |text| parse_whole_number(text, u32::MAX)).unwrap_or(1),
        limit: params
            .parse("limit", |text| parse_whole_number(text, ListQuery::MAX_LIMIT))
            .unwrap_or(ListQuery::DEFAULT_LIMIT),
        status: params.parse("status", parse_status),
        country: params.parse("country", contact::parse_country),
        external_order_id: params.parse("externalOrderId", parse_external_order_id),
        search: params.parse("search", parse_search),
        reference: params.parse("reference", parse_search),
        created_from: params.parse("createdFrom", parse_date_or_time),
        created_to: params.parse("createdTo", parse_date_or_time),
    };
    if let (Some(from), Some(to)) = (query.created_from, query.created_to)
        && from > to
    {
        params.fault("createdTo", faults::ENDS_BEFORE_START);
    }
    match params.faults {
        faults if faults.is_empty() => Ok(query),
        faults => Err(Rejected { faults, warnings: Vec::new() }),
    }
}

/// The parameters by name, and the faults found so far.
struct Params<'q> {
    pairs: HashMap<Cow<'q, str>, Cow<'q, str>>,
    faults: Vec<FieldFault>,
}

impl Params<'_> {
    /// Parses a parameter; `None` if it is absent or has a fault.
    fn parse<T>(&mut self, name: &str, parse: impl Fn(&str) -> Result<T, FaultText>) -> Option<T> {
        match parse(self.pairs.get(name)?) {
            Ok(value) => Some(value),
            Err(fault) => {
                self.fault(name, fault);
                None
            }
        }
    }

    fn fault(&mut self, name: &str, fault: FaultText) {
        self.faults.push(fault.at(name));
    }
}

/// Parses a whole number from 1 to `max`.
fn parse_whole_number(text: &str, max: u32) -> Result<u32, FaultText> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(faults::NOT_WHOLE);
    }
    let count = text.parse().ok().filter(|count| (1..=max).contains(count));
    count.ok_or_else(|| faults::between(Decimal::ONE, Decimal::from(max)))
}

/// Parses the code of a known status.
pub fn parse_status(code: &str) -> Result<ParcelStatus, FaultText> {
    match ParcelStatus::from(code) {
        ParcelStatus::Unknown(_) => Err(faults::PARCEL_STATUS),
        known => Ok(known),
    }
}

/// Parses an id in the caller's system, which must not be empty.
fn parse_external_order_id(text: &str) -> Result<String, FaultText> {
    match Text::CODE.with_max(ListQuery::MAX_ORDER_ID).parse(text)? {
        "" => Err(faults::too_short(1)),
        id => Ok(id.to_owned()),
    }
}

/// Parses a search text, which must have a letter or a digit, because only these are compared.
fn parse_search(text: &str) -> Result<String, FaultText> {
    let marks = if ListQuery::quoted(text).is_some() { 2 } else { 0 };
    let text = Text::DATA.with_max(ListQuery::MAX_SEARCH + marks).parse(text)?;
    if text.chars().any(char::is_alphanumeric) {
        Ok(text.to_owned())
    } else {
        Err(faults::NOTHING_TO_SEARCH)
    }
}

/// Parses a time with its offset from UTC, or a date, which means midnight UTC.
fn parse_date_or_time(text: &str) -> Result<DateTime<Utc>, FaultText> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Ok(time.to_utc());
    }
    let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().filter(|_| text.len() == 10);
    date.map(|date| date.and_time(NaiveTime::MIN).and_utc()).ok_or(faults::DATE_OR_TIME)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::tests::faults_of;

    fn check(query: &[(&str, &str)]) -> Result<ListQuery, Rejected> {
        check_list(query.iter().map(|(name, value)| ((*name).into(), (*value).into())))
    }

    #[test]
    fn an_empty_query_is_the_first_page_of_everything() {
        let query = check(&[("unknown", "x")]).unwrap();
        assert_eq!((query.page, query.limit), (1, 20));
        assert_eq!((query.status, query.country, query.external_order_id), (None, None, None));
    }

    #[test]
    fn every_parameter_is_parsed() {
        let query = check(&[
            ("page", "7"),
            ("page", "2"),
            ("limit", "100"),
            ("status", "DELIVERED"),
            ("country", "EC"),
            ("externalOrderId", "SHOP-1"),
            ("search", " Núñez 4711 "),
            ("reference", "PO-1"),
            ("createdFrom", "2026-01-10"),
            ("createdTo", "2026-01-10T15:05:00.000-05:00"),
        ])
        .unwrap();
        assert_eq!((query.page, query.limit), (2, 100));
        assert_eq!(
            (query.status, query.country),
            (Some(ParcelStatus::Delivered), Some(CountryCode::EC))
        );
        assert_eq!(query.external_order_id.as_deref(), Some("SHOP-1"));
        assert_eq!(query.search.as_deref().map(str::trim), Some("Núñez 4711"));
        assert_eq!(query.reference.as_deref(), Some("PO-1"));
        let longest = format!("\"{}\"", "x".repeat(100));
        assert_eq!(check(&[("search", &longest)]).unwrap().search, Some(longest));
        let times = [query.created_from, query.created_to].map(|time| time.unwrap().timestamp());
        assert_eq!(times, [1_768_003_200, 1_768_075_500]);
    }

    #[test]
    fn every_fault_has_its_name_and_code() {
        let long = "x".repeat(101);
        let quoted = format!("\"{long}\"");
        let table = [
            ("page", "0", "OUT_OF_RANGE"),
            ("page", "-1", "OUT_OF_RANGE"),
            ("page", "4294967296", "OUT_OF_RANGE"),
            ("page", "1.0", "INVALID_FORMAT"),
            ("page", "", "INVALID_FORMAT"),
            ("limit", "0", "OUT_OF_RANGE"),
            ("limit", "101", "OUT_OF_RANGE"),
            ("limit", "ten", "INVALID_FORMAT"),
            ("status", "delivered", "UNKNOWN_VALUE"),
            ("status", "", "UNKNOWN_VALUE"),
            ("country", "XX", "UNKNOWN_VALUE"),
            ("externalOrderId", &long, "TOO_LONG"),
            ("externalOrderId", "", "TOO_SHORT"),
            ("search", &long, "TOO_LONG"),
            ("search", &quoted, "TOO_LONG"),
            ("search", "\"\"", "TOO_SHORT"),
            ("search", "", "TOO_SHORT"),
            ("search", "   ", "TOO_SHORT"),
            ("search", "%_\\", "TOO_SHORT"),
            ("search", "a\0b", "INVALID_FORMAT"),
            ("search", "a\nb", "INVALID_FORMAT"),
            ("reference", "--", "TOO_SHORT"),
            ("createdFrom", "yesterday", "INVALID_FORMAT"),
            ("createdFrom", "2026-01-10T15:05:00", "INVALID_FORMAT"),
            ("createdTo", "2026-1-1", "INVALID_FORMAT"),
        ];
        for (name, value, code) in table {
            let found = faults_of(check(&[(name, value)]));
            assert_eq!(found, [format!("{name} {code}")], "{value}");
        }
    }

    #[test]
    fn all_faults_are_reported_at_once() {
        let query = [
            ("createdTo", "2026-01-10"),
            ("createdFrom", "2026-01-11"),
            ("limit", "0"),
            ("page", "0"),
        ];
        let expected = ["page OUT_OF_RANGE", "limit OUT_OF_RANGE", "createdTo MISMATCH"];
        assert_eq!(faults_of(check(&query)), expected);
    }
}
