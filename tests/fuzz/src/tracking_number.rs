//! Tracking numbers as people type them: a number finds its parcel in upper and lower case, any other text finds
//! nothing, and no text becomes markup or leaves its path segment.

use std::{collections::HashSet, fmt::Write as _};

use axum::body::Body;
use http::Request;
use parcelo::{Operation, TrackingNumber};
use parcelo_server::mock::sample;

use crate::{
    Target,
    service::{HttpResponse, Service, with_service},
};

pub(crate) const TARGET: Target = Target { name: "tracking_number", check, cases: 600 };

const TRACKING_NUMBER: &str = "SB-FUZZED-0001";

fn check(input: &[u8]) {
    // An empty text would make the path of another operation.
    let Some(typed_text) =
        std::str::from_utf8(input).ok().filter(|typed_text| !typed_text.is_empty())
    else {
        return;
    };
    let number = TrackingNumber::parse(typed_text);
    if let Ok(number) = &number {
        let folded = TrackingNumber::parse(&number.folded()).unwrap();
        assert_eq!((number.as_str(), &folded), (typed_text, number));
        assert_eq!(folded.cmp(number), std::cmp::Ordering::Equal);
        assert!(HashSet::from([folded]).contains(number));
    }
    let path = Operation::GetTracking.path_of(typed_text);
    let rest = path.strip_prefix("/api/v1/tracking/").unwrap();
    assert!(!rest.contains(['/', '?', '#', '<', '"', ' ']), "{path}");
    with_service(|service| assert_lookups(service, typed_text, number.ok().as_ref()));
}

/// Checks that the API and the tracking page find the parcel only by its number, and that the typed text does not
/// become markup.
fn assert_lookups(service: &Service, typed_text: &str, number: Option<&TrackingNumber>) {
    let key = service.key("default");
    let mut order = sample::order();
    order["trackingNumber"] = TRACKING_NUMBER.into();
    // The number exists already if an earlier input has created it.
    let created = service.post(&key, "/api/v1/orders/create", order.to_string().as_bytes());
    assert!(created.status == 201 || created.code() == "PARCEL_DUPLICATE_TRACKING");
    let is_this_number =
        number.is_some_and(|number| *number == TrackingNumber::parse(TRACKING_NUMBER).unwrap());
    // For the API, a text of another length is not a tracking number (docs/api.md, Tracking).
    let has_valid_length = (10..=30).contains(&typed_text.chars().count());
    let (status, page_status) = match (is_this_number, has_valid_length) {
        (true, _) => (200, 200),
        (false, true) => (404, 404),
        (false, false) => (400, 404),
    };
    for path in [
        format!("/api/v1/tracking/{}", percent_encode(typed_text)),
        Operation::GetTracking.path_of(typed_text),
    ] {
        let response = service.get(&key, &path);
        assert!(response.status == status, "{typed_text:?}: {response:?}");
    }
    let (html, json) = (
        get_page(service, typed_text, "text/html"),
        get_page(service, typed_text, "application/json"),
    );
    assert_eq!(json.status, page_status, "{typed_text:?}");
    // The page tolerates small mistakes, and redirects to the tracking number.
    if html.status == 303 {
        let to = html.headers["location"].to_str().unwrap();
        let number = to.strip_prefix("/track/").and_then(|rest| rest.split('?').next()).unwrap();
        assert!(
            TrackingNumber::parse(number).is_ok_and(|parsed| parsed.as_str() == number),
            "{typed_text:?}: {to}"
        );
    } else {
        assert_eq!(html.status, page_status, "{typed_text:?}");
    }
    assert!(json.headers["content-type"].to_str().unwrap().starts_with("application/json"));
    // A page may contain the typed text by chance (`"S` is in its style sheet), but must not have more tags and
    // quotation marks than the page of a text without any.
    let plain =
        get_page(service, &typed_text.replace(['<', '>', '"', '\'', '&'], "!"), "text/html");
    if html.status != 303 {
        assert_eq!(count_markup(&html), count_markup(&plain), "{typed_text:?} in {}", html.text());
    }
}

fn get_page(service: &Service, typed_text: &str, accept: &str) -> HttpResponse {
    let request =
        Request::get(format!("/track/{}", percent_encode(typed_text))).header("accept", accept);
    service.call(request.body(Body::empty()).unwrap())
}

/// Percent-encodes every byte, including those that a path may contain.
fn percent_encode(typed_text: &str) -> String {
    typed_text.bytes().fold(String::new(), |mut escaped, byte| {
        write!(escaped, "%{byte:02X}").unwrap();
        escaped
    })
}

/// Returns the number of tags and quotation marks.
fn count_markup(page: &HttpResponse) -> (usize, usize) {
    let text = page.text();
    (text.matches('<').count(), text.matches('"').count())
}
