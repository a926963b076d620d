//! Bodies of `POST /api/v1/orders/create`: the service accepts and rejects them as the SDK's rules do offline, stores
//! them as given, and repeats its response byte for byte, however the same JSON is written.

use parcelo::{
    ApiKey, Environment, OrderRequest, TrackingNumber,
    rules::{Destinations, OrderContext, check_order},
};
use parcelo_types::internal::parse_body;
use serde_json::Value;
use url::form_urlencoded;

use crate::{
    Target,
    service::{HttpResponse, Service, with_service},
};

pub(crate) const TARGET: Target = Target { name: "order_json", check, cases: 500 };

const CREATE_PATH: &str = "/api/v1/orders/create";

fn check(input: &[u8]) {
    with_service(|service| check_body(service, input));
}

fn check_body(service: &Service, input: &[u8]) {
    // Idempotency keys belong to an API key, so with a new API key this request is the first one.
    let key = service.key("default");
    let response = service.post(&key, CREATE_PATH, input);
    let body = match parse_body(input) {
        Ok(body) => body,
        Err(fault) => return response.assert_faults(&[fault], String::from_utf8_lossy(input)),
    };
    let all = Destinations::All;
    let context = OrderContext::new(&all).with_environment(Environment::Sandbox);
    match check_order(&body, &context) {
        Err(rejected) => response.assert_faults(&rejected.faults, &body),
        Ok(accepted) if response.status == 201 => {
            assert_round_trips(&accepted.value);
            assert_stored(service, &key, &accepted.value, &response);
            assert_repeated(service, (&key, input, &body), &response);
        }
        Ok(accepted) => {
            assert_eq!(response.code(), "PARCEL_DUPLICATE_TRACKING", "{body}");
            assert!(accepted.value.tracking_number.is_some());
        }
    }
}

/// Checks that a serialized order is parsed as the same order.
fn assert_round_trips(order: &OrderRequest) {
    let serialized = serde_json::to_value(order).unwrap();
    let parsed: OrderRequest = serde_json::from_value(serialized.clone()).unwrap();
    assert_eq!(serde_json::to_value(&parsed).unwrap(), serialized);
    let checked = check_order(&serialized, &OrderContext::new(&Destinations::All));
    assert_eq!(serde_json::to_value(checked.unwrap().value).unwrap(), serialized);
}

/// Checks that the parcel is found by its tracking number and by its external order id.
fn assert_stored(service: &Service, key: &ApiKey, order: &OrderRequest, created: &HttpResponse) {
    let tracking_number = created.json()["parcel"]["trackingNumber"].as_str().unwrap().to_owned();
    let number = TrackingNumber::parse(&tracking_number).unwrap();
    assert!(
        order
            .tracking_number
            .as_ref()
            .is_none_or(|requested| requested.as_str() == tracking_number)
    );
    let record = service.get(key, &format!("/api/v1/tracking/{number}")).json();
    assert_eq!(record["trackingNumber"], tracking_number.as_str(), "{record}");
    let Some(id) = &order.external_order_id else { return };
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("externalOrderId", id);
    let page = service.get(key, &format!("/api/v1/parcels?limit=100&{}", query.finish())).json();
    let rows = page["data"].as_array().unwrap().iter();
    let found: Vec<&Value> =
        rows.filter(|row| row["trackingNumber"] == tracking_number.as_str()).collect();
    assert!(found.len() == 1 && found[0]["externalOrderId"] == id.as_str(), "{page}");
}

/// Checks that repeating the order returns the same body, however its JSON is spelled, and that another order under the
/// same idempotency key is a conflict.
fn assert_repeated(
    service: &Service,
    (key, input, body): (&ApiKey, &[u8], &Value),
    first: &HttpResponse,
) {
    let pretty = serde_json::to_vec_pretty(body).unwrap();
    for spelled in [input, &pretty] {
        let again = service.post(key, CREATE_PATH, spelled);
        assert_eq!((again.status, &again.body), (200, &first.body), "{body}");
    }
    let mut other = body.clone();
    other["customerReference"] = Value::from("another one");
    if other != *body {
        assert_eq!(
            service.post(key, CREATE_PATH, other.to_string().as_bytes()).code(),
            "IDEMPOTENCY_CONFLICT"
        );
    }
}
