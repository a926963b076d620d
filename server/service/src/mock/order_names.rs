//! The names of the orders that a request is about: tracking numbers, external order ids and idempotency keys from
//! the request's path, query, headers and body.

use std::fmt;

use serde::Deserialize;
use url::form_urlencoded;

/// The names of orders. `Debug` shows only their number, since an external order id may be personal data.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct OrderNames {
    /// Tracking numbers, compared without case.
    numbers: Vec<String>,
    /// External order ids and idempotency keys, compared exactly.
    ids: Vec<String>,
}

/// The members that name orders in the requests' bodies, and in the response to a creation.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct BodyFields {
    idempotency_key: Option<String>,
    external_order_id: Option<String>,
    tracking_number: Option<String>,
    tracking_numbers: Vec<String>,
    parcel: Option<Parcel>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Parcel {
    tracking_number: Option<String>,
}

impl OrderNames {
    pub(super) const EMPTY: Self = Self { numbers: Vec::new(), ids: Vec::new() };

    /// Returns the names for a text that may be a name of any kind.
    pub(super) fn from_name(name: &str) -> Self {
        Self { numbers: vec![name.to_owned()], ids: vec![name.to_owned()] }
    }

    /// Adds a path's parameter: a tracking number, or a label's file name that starts with one.
    pub(super) fn add_parameter(&mut self, parameter: Option<&str>) {
        let number = parameter.map(|text| text.split_once('.').map_or(text, |(number, _)| number));
        self.numbers.extend(number.map(str::to_owned));
    }

    /// Adds the external order ids of a query.
    pub(super) fn add_query(&mut self, query: Option<&str>) {
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        let ids = pairs.filter(|(name, _)| name == "externalOrderId");
        self.ids.extend(ids.map(|(_, id)| id.into_owned()));
    }

    /// Adds an idempotency key.
    pub(super) fn add_key(&mut self, key: Option<&str>) {
        self.ids.extend(key.map(str::to_owned));
    }

    /// Adds the names in a body, if it is JSON, and returns its idempotency key.
    pub(super) fn add_body(&mut self, body: &[u8]) -> Option<String> {
        let fields: BodyFields = serde_json::from_slice(body).unwrap_or_default();
        self.add_key(fields.idempotency_key.as_deref());
        self.ids.extend(fields.external_order_id.map(|id| id.trim().to_owned()));
        let created = fields.parcel.and_then(|parcel| parcel.tracking_number);
        self.numbers.extend(fields.tracking_number.into_iter().chain(created));
        self.numbers.extend(fields.tracking_numbers);
        fields.idempotency_key
    }

    /// Returns `true` if this is one of the names.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.ids.iter().any(|id| id == name)
            || self.numbers.iter().any(|number| number.eq_ignore_ascii_case(name))
    }

    /// Returns `true` if both have an order in common.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let same = |one: &String| other.numbers.iter().any(|two| one.eq_ignore_ascii_case(two));
        self.ids.iter().any(|id| other.ids.contains(id)) || self.numbers.iter().any(same)
    }

    pub(super) fn extend(&mut self, other: &Self) {
        self.ids.extend(other.ids.iter().cloned());
        self.numbers.extend(other.numbers.iter().cloned());
    }
}

impl fmt::Debug for OrderNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OrderNames({})", self.numbers.len() + self.ids.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_named_in_paths_queries_headers_and_bodies() {
        let mut names = OrderNames::EMPTY;
        names.add_parameter(Some("SB-SUCCESS-0001.pdf"));
        names.add_query(Some("page=1&externalOrderId=A%2017"));
        names.add_key(Some("order-0001"));
        names.add_body(
            br#"{"trackingNumbers":["SB-FAIL-0001","SB-FAIL-0002"],"externalOrderId":" B-1 "}"#,
        );
        names.add_body(br#"{"parcel":{"trackingNumber":"SB-RTS-0001"},"success":true}"#);
        names.add_body(b"%PDF");
        for name in ["SB-SUCCESS-0001", "sb-fail-0002", "A 17", "order-0001", "B-1", "SB-RTS-0001"]
        {
            assert!(names.contains(name), "{name}");
        }
        for name in ["a 17", "SB-SUCCESS-0001.pdf", "", "1", "ORDER-0001"] {
            assert!(!names.contains(name), "{name}");
        }
        assert!(
            names.overlaps(&OrderNames::from_name("B-1"))
                && !names.overlaps(&OrderNames::from_name("B-2"))
        );
    }
}
