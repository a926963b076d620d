//! Searches for parcels: the fields of the form, and the address of the results. The address contains only statuses,
//! dates and tracking numbers, and never what the user typed.

use chrono::{NaiveDate, TimeDelta};
use parcelo_types::{
    Environment, ParcelStatus,
    internal::{ListQuery, check_list},
};
use url::form_urlencoded;

use super::{fields::FormFields, pagination};

/// Number of parcels on a page.
const PARCELS_PER_PAGE: u32 = 25;

/// The parcels that a list shows: the values of the form above the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ParcelListFilter {
    pub(super) environment: Environment,
    pub(super) status: Option<ParcelStatus>,
    pub(super) from: Option<NaiveDate>,
    pub(super) to: Option<NaiveDate>,
    pub(super) page: u32,
}

/// A text in English and Spanish: the reason why a search is invalid.
pub(super) type BilingualText = (&'static str, &'static str);

const NOTHING_TO_SEARCH: BilingualText = (
    "Type letters or digits to search for, 100 characters at most.",
    "Escriba las letras o los dígitos que busca, 100 caracteres como máximo.",
);
const INVALID_DATE: BilingualText =
    ("Enter dates as 2026-01-31.", "Escriba las fechas como 2026-01-31.");
const END_BEFORE_START: BilingualText =
    ("The end date is before the start date.", "La fecha final es anterior a la inicial.");

impl ParcelListFilter {
    /// Reads a search; an empty field does not restrict it.
    pub(super) fn from_fields(fields: &FormFields) -> Result<Self, BilingualText> {
        let (from, to) = (parse_date(fields.text("from"))?, parse_date(fields.text("to"))?);
        if matches!((from, to), (Some(from), Some(to)) if to < from) {
            return Err(END_BEFORE_START);
        }
        let status =
            ParcelStatus::KNOWN.iter().find(|status| status.code() == fields.text("status"));
        let is_sandbox = fields.text("environment") == Environment::Sandbox.code();
        Ok(Self {
            environment: if is_sandbox { Environment::Sandbox } else { Environment::Production },
            status: status.cloned(),
            from,
            to,
            page: pagination::requested_page(fields),
        })
    }

    /// Returns the address of the results.
    pub(super) fn address(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("environment", self.environment.code());
        if let Some(status) = &self.status {
            query.append_pair("status", status.code());
        }
        for (name, date) in [("from", self.from), ("to", self.to)] {
            if let Some(date) = date {
                query.append_pair(name, &date.to_string());
            }
        }
        if self.page > 1 {
            query.append_pair("page", &self.page.to_string());
        }
        format!("/dashboard/parcels?{}", query.finish())
    }

    /// Returns the same search with another page.
    pub(super) fn with_page(&self, page: u32) -> Self {
        Self { page, ..self.clone() }
    }

    /// Returns the URL of the file with the labels of this page.
    pub(super) fn labels_url(&self, extension: &str) -> String {
        self.address().replacen("/parcels?", &format!("/parcels/labels.{extension}?"), 1)
    }

    /// Returns the URL of the CSV file with all results.
    pub(super) fn csv_url(&self) -> String {
        self.with_page(1).address().replacen("/parcels?", "/parcels.csv?", 1)
    }

    /// Returns the query for the same parcels, in pages of the maximum size.
    pub(super) fn full_list_query(&self) -> ListQuery {
        let mut query = self.query();
        query.limit = ListQuery::MAX_LIMIT;
        query
    }

    /// Returns the query for a typed text, newest parcels first. No address contains the text, so there is only one
    /// page.
    pub(super) fn text_query(&self, text: &str) -> ListQuery {
        let mut query = self.with_page(1).full_list_query();
        query.search = Some(text.to_owned());
        query
    }

    /// Returns the search as a query of the API's list.
    pub(super) fn query(&self) -> ListQuery {
        let begin = |date: NaiveDate| date.and_time(chrono::NaiveTime::MIN).and_utc();
        let mut query = ListQuery::default();
        (query.page, query.limit) = (self.page, PARCELS_PER_PAGE);
        query.status.clone_from(&self.status);
        query.created_from = self.from.map(begin);
        query.created_to = self.to.and_then(|to| begin(to).checked_add_signed(TimeDelta::days(1)));
        query
    }
}

/// Returns the text to search for, if there is one: all or part of a number, a reference or a name.
pub(super) fn search_text(fields: &FormFields) -> Result<Option<String>, BilingualText> {
    match fields.text("number").trim() {
        "" => Ok(None),
        text => {
            let checked = check_list([("search".into(), text.into())]);
            checked.map(|query| query.search).map_err(|_| NOTHING_TO_SEARCH)
        }
    }
}

/// Parses a date; `None` for an empty field.
fn parse_date(text: &str) -> Result<Option<NaiveDate>, BilingualText> {
    match text.trim() {
        "" => Ok(None),
        text => NaiveDate::parse_from_str(text, "%Y-%m-%d").map(Some).map_err(|_| INVALID_DATE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(text: &str) -> Result<ParcelListFilter, BilingualText> {
        ParcelListFilter::from_fields(&FormFields::parse(text.as_bytes()))
    }

    #[test]
    fn a_search_url_round_trips_without_the_typed_text() {
        let typed =
            "environment=sandbox&status=DELIVERED&from=2026-01-01&to=2026-01-31&page=3&q=Maria";
        let found = search(typed).unwrap();
        let address = found.address();
        assert_eq!(
            address,
            "/dashboard/parcels?environment=sandbox&status=DELIVERED&from=2026-01-01&to=2026-01-31&page=3"
        );
        assert_eq!(search(address.split_once('?').unwrap().1), Ok(found.clone()));
        let query = found.query();
        assert_eq!(query.created_from.unwrap().to_string(), "2026-01-01 00:00:00 UTC");
        assert_eq!(query.created_to.unwrap().to_string(), "2026-02-01 00:00:00 UTC");
        assert_eq!(
            search("status=Maria+Perez").unwrap().address(),
            "/dashboard/parcels?environment=production"
        );
    }

    #[test]
    fn an_invalid_search_is_refused_with_a_reason() {
        assert_eq!(search("from=Maria"), Err(INVALID_DATE));
        assert_eq!(search("to=2026-02-30"), Err(INVALID_DATE));
        assert_eq!(search("from=2026-02-02&to=2026-02-01"), Err(END_BEFORE_START));
        assert_eq!(search("page=-1").unwrap().page, 1);
        let search_text = |text: &str| search_text(&FormFields::parse(text.as_bytes()));
        assert_eq!(search_text("number=+"), Ok(None));
        assert_eq!(search_text("number=+SB-SUCCESS-0001+"), Ok(Some("SB-SUCCESS-0001".to_owned())));
        assert_eq!(search_text("number=Maria"), Ok(Some("Maria".to_owned())));
        let long = format!("number={}", "x".repeat(101));
        for nothing in ["number=%25_", "number=-", "number=a%00b", &long] {
            assert_eq!(search_text(nothing), Err(NOTHING_TO_SEARCH), "{nothing}");
        }
    }
}
