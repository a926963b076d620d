//! Looking for parcels: what was typed, and the address that stands for it. An address holds tracking
//! numbers, statuses and dates only, whatever was typed.

use chrono::{NaiveDate, TimeDelta};
use parcelo::{Environment, Language, ParcelStatus, TrackingNumber, rules::ListQuery};
use url::form_urlencoded;

use super::{auth::Fields, pagination};

/// Parcels on a page.
const PARCELS_PER_PAGE: u32 = 25;

/// What parcels are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Search {
    pub(super) environment: Environment,
    pub(super) status: Option<ParcelStatus>,
    pub(super) from: Option<NaiveDate>,
    pub(super) to: Option<NaiveDate>,
    pub(super) page: u32,
}

/// A search that means nothing.
pub(super) type Fault = (&'static str, &'static str);

const NO_NUMBER: Fault = (
    "Not a valid tracking number: it has 10 to 30 letters, digits and hyphens.",
    "No es un número de rastreo válido: tiene de 10 a 30 letras, dígitos y guiones.",
);
const NO_DATE: Fault = ("Enter dates as 2026-01-31.", "Escriba la fecha como 2026-01-31.");
const BACKWARDS: Fault =
    ("The end date is before the start date.", "La fecha final es anterior a la inicial.");

impl Search {
    /// Reads a search; an empty field does not restrict it.
    pub(super) fn from_fields(fields: &Fields) -> Result<Self, Fault> {
        let (from, to) = (date(fields.text("from"))?, date(fields.text("to"))?);
        if matches!((from, to), (Some(from), Some(to)) if to < from) {
            return Err(BACKWARDS);
        }
        let status = ParcelStatus::KNOWN.iter().find(|one| one.code() == fields.text("status"));
        let is_sandbox = fields.text("environment") == Environment::Sandbox.code();
        Ok(Self {
            environment: if is_sandbox { Environment::Sandbox } else { Environment::Production },
            status: status.cloned(),
            from,
            to,
            page: pagination::requested_page(fields),
        })
    }

    /// The page that shows the search.
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

    pub(super) fn at_page(&self, page: u32) -> Self {
        Self { page, ..self.clone() }
    }

    /// The same as the list of the API takes it.
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

/// The number that is looked for, if one is.
pub(super) fn number(fields: &Fields) -> Result<Option<TrackingNumber>, Fault> {
    match fields.text("number").trim() {
        "" => Ok(None),
        text => TrackingNumber::parse(text).map(Some).map_err(|_| NO_NUMBER),
    }
}

pub(super) fn text(fault: Fault, language: Language) -> &'static str {
    language.pick(fault.0, fault.1)
}

fn date(text: &str) -> Result<Option<NaiveDate>, Fault> {
    match text.trim() {
        "" => Ok(None),
        text => NaiveDate::parse_from_str(text, "%Y-%m-%d").map(Some).map_err(|_| NO_DATE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(text: &str) -> Result<Search, Fault> {
        Search::from_fields(&Fields::parse(text.as_bytes()))
    }

    #[test]
    fn an_address_means_what_was_looked_for_and_holds_nothing_else() {
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
    fn what_means_nothing_is_said() {
        assert_eq!(search("from=Maria"), Err(NO_DATE));
        assert_eq!(search("to=2026-02-30"), Err(NO_DATE));
        assert_eq!(search("from=2026-02-02&to=2026-02-01"), Err(BACKWARDS));
        assert_eq!(search("page=-1").unwrap().page, 1);
        let number = |text: &str| number(&Fields::parse(text.as_bytes()));
        assert_eq!(number("number=+"), Ok(None));
        assert!(number("number=+SB-SUCCESS-0001+").unwrap().is_some());
        assert_eq!(number("number=Maria"), Err(NO_NUMBER));
    }
}
