//! Idempotency keys: a model remembers the request of each key, and its predictions are compared with the responses to
//! keys that three API keys send in every possible way.

use std::collections::HashMap;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderValue, Request};
use parcelo::ApiKey;
use parcelo_server::mock::sample;
use serde_json::json;

use crate::{
    Target,
    service::{Answer, Service, with_service},
};

pub(crate) const TARGET: Target = Target { name: "idempotency_keys", check, cases: 150 };

/// Maximum number of requests in one input.
const MAX_REQUESTS: usize = 24;
/// Two API keys of one account, and one of another. Idempotency keys are separate for each API key.
const ACCOUNTS: [&str; 3] = ["default", "default", "neighbour"];

/// Checks an input. Each line is a request: the API key, the way in which the idempotency key is sent, the order, and
/// the key.
fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    with_service(|service| {
        let keys = ACCOUNTS.map(|account| service.key(account));
        let mut first = HashMap::<(usize, String), (usize, Bytes)>::new();
        for line in text.lines().take(MAX_REQUESTS) {
            let mut words = line.splitn(4, ' ');
            let mut word = || words.next().unwrap_or_default();
            let (who, way, which, typed) = (word(), word(), word(), word());
            let number = |text: &str, count: usize| text.parse::<usize>().unwrap_or(0) % count;
            let (who, which) = (number(who, 3), number(which, 2));
            let Some((request, name)) = request(&keys[who], way, which, typed) else { continue };
            let answer = service.call(request);
            let Some(name) = name else {
                assert_eq!(answer.status, 400, "{line:?} {answer:?}");
                continue;
            };
            match first.get(&(who, name.clone())) {
                None => {
                    assert_eq!(answer.status, 201, "{line:?} {answer:?}");
                    assert_seen_by_its_account(service, (&keys, who), &answer);
                    first.insert((who, name), (which, answer.body));
                }
                Some((same, body)) if *same == which => {
                    assert_eq!((answer.status, &answer.body), (200, body), "{line:?}");
                }
                Some(_) => assert_eq!(answer.code(), "IDEMPOTENCY_CONFLICT", "{line:?}"),
            }
        }
    });
}

/// Returns the request and the idempotency key in it; `None` if HTTP cannot carry the key.
fn request(
    key: &ApiKey,
    way: &str,
    which: usize,
    typed: &str,
) -> Option<(Request<Body>, Option<String>)> {
    let mut order = sample::order();
    let members = order.as_object_mut()?;
    members.remove("trackingNumber");
    members.remove("idempotencyKey");
    members.insert("customerReference".to_owned(), json!(format!("order {which}")));
    let (header, value) = match way {
        "header" => ("x-idempotency-key", typed.to_owned()),
        "standard" => ("idempotency-key", typed.to_owned()),
        "quoted" => ("idempotency-key", format!("\"{typed}\"")),
        _ => ("", String::new()),
    };
    let name = match header {
        // In the body the key is not trimmed, so spaces around it are a fault.
        "" => typed,
        "idempotency-key" => {
            let text = value.trim();
            text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
        }
        _ => typed.trim(),
    };
    let request = Request::post("/api/v1/orders/create")
        .header("x-api-key", key.secret())
        .header("content-type", "application/json");
    let request = if header.is_empty() {
        order["idempotencyKey"] = json!(typed);
        request
    } else {
        request.header(header, HeaderValue::from_str(&value).ok()?)
    };
    let is_key = (8..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    let name = is_key.then(|| name.to_owned());
    Some((request.body(Body::from(order.to_string())).unwrap(), name))
}

/// Checks that the account's other API key sees the parcel and that another account does not.
fn assert_seen_by_its_account(
    service: &Service,
    (keys, who): (&[ApiKey; 3], usize),
    made: &Answer,
) {
    let number = made.json()["parcel"]["trackingNumber"].as_str().unwrap().to_owned();
    for (other, account) in ACCOUNTS.iter().enumerate() {
        let status = service.get(&keys[other], &format!("/api/v1/tracking/{number}")).status;
        assert_eq!(status, if *account == ACCOUNTS[who] { 200 } else { 404 });
    }
}
