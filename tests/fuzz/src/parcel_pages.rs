//! Queries of the parcel list: the service accepts and rejects them as the SDK's rules do offline, and their pages
//! contain every matching parcel once.

use std::borrow::Cow;

use chrono::Datelike as _;
use parcelo::{ApiKey, ParcelStatus};
use parcelo_server::mock::sample;
use parcelo_types::internal::{ListQuery, check_list};
use serde_json::{Value, json};
use url::form_urlencoded;

use crate::{
    Target,
    service::{Service, with_service},
};

pub(crate) const TARGET: Target = Target { name: "parcel_pages", check, cases: 500 };

const PARCEL_COUNT: u32 = 7;
/// The creation time of all parcels.
const CREATED_AT: &str = "2026-01-05T08:00:00Z";

fn check(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    // Other characters cannot be in a URL, so they never reach the service.
    let query: String = text.chars().filter(|c| c.is_ascii_graphic() && *c != '#').collect();
    let pairs = || form_urlencoded::parse(query.as_bytes());
    let parsed = check_list(pairs());
    // A time of the year 9999 with an offset may be in the year 10000 in UTC, which RFC 3339 cannot express.
    let has_rfc_3339_times = |query: &ListQuery| {
        [query.created_from, query.created_to]
            .into_iter()
            .flatten()
            .all(|time| time.year() < 10_000)
    };
    if let Some(parsed) = parsed.as_ref().ok().filter(|parsed| has_rfc_3339_times(parsed)) {
        assert_eq!(check_list(query_pairs(parsed)).as_ref().unwrap(), parsed, "{query}");
    }
    with_service(|service| {
        let key = key_with_parcels(service);
        let path = format!("/api/v1/parcels?{query}");
        if http::Uri::try_from(&path).is_err() {
            return;
        }
        let response = service.get(&key, &path);
        match parsed {
            Ok(parsed) => {
                let meta = &response.json()["meta"];
                assert_eq!((response.status, &meta["page"]), (200, &json!(parsed.page)), "{query}");
                assert_eq!(meta["limit"], json!(parsed.limit), "{query}");
                if has_rfc_3339_times(&parsed) {
                    assert_pages_are_complete(service, &key, &parsed);
                }
            }
            Err(rejected) => response.assert_faults(&rejected.faults, &query),
        }
    });
}

/// Returns an API key of the account whose parcels are listed. Creates the parcels if the account has none.
fn key_with_parcels(service: &Service) -> ApiKey {
    let key = service.key("pages");
    let listed = service.get(&key, "/api/v1/parcels").json();
    if listed["meta"]["total"] == 0 {
        for number in 0..PARCEL_COUNT {
            let mut order = sample::order();
            order["idempotencyKey"] = json!(format!("order-{number:04}"));
            order["externalOrderId"] = json!(format!("PAGE {number}"));
            order.as_object_mut().unwrap().remove("trackingNumber");
            let response =
                service.post(&key, "/api/v1/orders/create", order.to_string().as_bytes());
            assert_eq!(response.status, 201, "{response:?}");
        }
    }
    key
}

/// Checks that the pages of a query contain every matching parcel once.
fn assert_pages_are_complete(service: &Service, key: &ApiKey, query: &ListQuery) {
    let expected: Vec<_> =
        (0..PARCEL_COUNT).filter(|number| matches_query(query, *number)).collect();
    let mut found = Vec::new();
    for page in 1..=PARCEL_COUNT + 1 {
        let mut query = query.clone();
        query.page = page;
        let mut text = form_urlencoded::Serializer::new(String::new());
        text.extend_pairs(query_pairs(&query));
        let response = service.get(key, &format!("/api/v1/parcels?{}", text.finish())).json();
        let rows = response["data"].as_array().unwrap();
        assert_eq!(response["meta"]["total"], json!(expected.len()), "{query:?}");
        assert!(rows.len() <= query.limit as usize);
        found.extend(rows.iter().map(|row| row["externalOrderId"].clone()));
        if rows.is_empty() {
            break;
        }
    }
    // The last parcel created is listed first.
    found.reverse();
    let expected: Vec<Value> = expected.iter().map(|n| json!(format!("PAGE {n}"))).collect();
    assert_eq!(found, expected, "{query:?}");
}

fn matches_query(query: &ListQuery, number: u32) -> bool {
    let created_at: chrono::DateTime<chrono::Utc> = CREATED_AT.parse().unwrap();
    query.status.as_ref().is_none_or(|status| *status == ParcelStatus::LabelGenerated)
        && query.country.is_none_or(|country| country.as_str() == "EC")
        && query.external_order_id.as_ref().is_none_or(|id| *id == format!("PAGE {number}"))
        && query.created_from.is_none_or(|from| from <= created_at)
        && query.created_to.is_none_or(|to| created_at < to)
}

fn query_pairs(query: &ListQuery) -> Vec<(Cow<'static, str>, Cow<'static, str>)> {
    let time = |time: chrono::DateTime<chrono::Utc>| time.to_rfc3339();
    let pairs = [
        ("page", Some(query.page.to_string())),
        ("limit", Some(query.limit.to_string())),
        ("status", query.status.as_ref().map(ToString::to_string)),
        ("country", query.country.map(|country| country.to_string())),
        ("externalOrderId", query.external_order_id.clone()),
        ("createdFrom", query.created_from.map(time)),
        ("createdTo", query.created_to.map(time)),
    ];
    pairs.into_iter().filter_map(|(name, value)| Some((name.into(), value?.into()))).collect()
}
