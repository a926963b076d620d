//! Idempotency keys: three API keys send requests, with idempotency keys in every supported place. A model remembers
//! the first request of each idempotency key and predicts the responses.

use std::collections::HashMap;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderValue, Request};
use parcelo::ApiKey;
use parcelo_server::mock::sample;
use serde_json::json;

use crate::{
    Target,
    service::{HttpResponse, Service, with_service},
};

pub(crate) const TARGET: Target = Target { name: "idempotency_keys", check, cases: 150 };

/// Maximum number of requests in one input.
const MAX_REQUESTS: usize = 24;
/// The accounts of the three API keys. Idempotency keys are separate for each API key, even within an account.
const ACCOUNTS: [&str; 3] = ["default", "default", "neighbour"];

/// Checks an input. Each line is a request: the API key, the place of the idempotency key, the order, and the
/// idempotency key.
fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    with_service(|service| {
        let keys = ACCOUNTS.map(|account| service.key(account));
        let mut first_requests = HashMap::<(usize, String), (usize, Bytes)>::new();
        for line in text.lines().take(MAX_REQUESTS) {
            let mut words = line.splitn(4, ' ');
            let mut word = || words.next().unwrap_or_default();
            let (key_index, placement, order_index, typed_key) = (word(), word(), word(), word());
            let parse_index = |text: &str, count: usize| text.parse::<usize>().unwrap_or(0) % count;
            let (key_index, order_index) = (parse_index(key_index, 3), parse_index(order_index, 2));
            let Some((request, idempotency_key)) =
                request(&keys[key_index], placement, order_index, typed_key)
            else {
                continue;
            };
            let response = service.call(request);
            let Some(idempotency_key) = idempotency_key else {
                assert_eq!(response.status, 400, "{line:?} {response:?}");
                continue;
            };
            match first_requests.get(&(key_index, idempotency_key.clone())) {
                None => {
                    assert_eq!(response.status, 201, "{line:?} {response:?}");
                    assert_seen_by_its_account(service, &keys, key_index, &response);
                    first_requests
                        .insert((key_index, idempotency_key), (order_index, response.body));
                }
                Some((first_order, body)) if *first_order == order_index => {
                    assert_eq!((response.status, &response.body), (200, body), "{line:?}");
                }
                Some(_) => assert_eq!(response.code(), "IDEMPOTENCY_CONFLICT", "{line:?}"),
            }
        }
    });
}

/// Returns the request and its idempotency key, which is `None` if it is invalid. Returns `None` if a header cannot
/// contain the key.
fn request(
    key: &ApiKey,
    placement: &str,
    order_index: usize,
    typed_key: &str,
) -> Option<(Request<Body>, Option<String>)> {
    let mut order = sample::order();
    let members = order.as_object_mut()?;
    members.remove("trackingNumber");
    members.remove("idempotencyKey");
    members.insert("customerReference".to_owned(), json!(format!("order {order_index}")));
    let (header, value) = match placement {
        "header" => ("x-idempotency-key", typed_key.to_owned()),
        "standard" => ("idempotency-key", typed_key.to_owned()),
        "quoted" => ("idempotency-key", format!("\"{typed_key}\"")),
        _ => ("", String::new()),
    };
    let idempotency_key = match header {
        // In the body, the key is not trimmed, so a key with spaces around it is invalid.
        "" => typed_key,
        "idempotency-key" => {
            let text = value.trim();
            text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
        }
        _ => typed_key.trim(),
    };
    let request = Request::post("/api/v1/orders/create")
        .header("x-api-key", key.secret())
        .header("content-type", "application/json");
    let request = if header.is_empty() {
        order["idempotencyKey"] = json!(typed_key);
        request
    } else {
        request.header(header, HeaderValue::from_str(&value).ok()?)
    };
    let is_valid = (8..=64).contains(&idempotency_key.len())
        && idempotency_key
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    let idempotency_key = is_valid.then(|| idempotency_key.to_owned());
    Some((request.body(Body::from(order.to_string())).unwrap(), idempotency_key))
}

/// Checks that the account's other API key sees the parcel and that another account does not.
fn assert_seen_by_its_account(
    service: &Service,
    keys: &[ApiKey; 3],
    key_index: usize,
    created: &HttpResponse,
) {
    let number = created.json()["parcel"]["trackingNumber"].as_str().unwrap().to_owned();
    for (other, account) in ACCOUNTS.iter().enumerate() {
        let status = service.get(&keys[other], &format!("/api/v1/tracking/{number}")).status;
        assert_eq!(status, if *account == ACCOUNTS[key_index] { 200 } else { 404 });
    }
}
