//! The clients' requests, and what the responses say about the order.

use std::hash::{DefaultHasher, Hash, Hasher};

use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};

use crate::model::{Answer, Call, Status};

/// An account of the service, with the keys of its clients and its carrier.
pub(crate) struct Account {
    pub(crate) key: String,
    pub(crate) carrier_key: String,
}

/// A call to send. A call without an answer is sent again under the same idempotency key.
pub(crate) struct Request<'a> {
    pub(crate) call: Call,
    /// The order's idempotency key.
    pub(crate) order: &'a str,
    /// The parcel's tracking number; empty until a client knows it.
    pub(crate) number: &'a str,
    /// The number from which this call's idempotency key is made.
    pub(crate) serial: u64,
    /// The time at which a carrier scanned the parcel, in milliseconds since 1970.
    pub(crate) scanned_at: u64,
}

/// The part of a response that is about the order.
pub(crate) struct Reply {
    pub(crate) answer: Answer,
    /// The tracking number, if the answer has one.
    pub(crate) number: Option<String>,
}

impl Request<'_> {
    /// Builds the HTTP request to the server at `address`.
    pub(crate) fn build(&self, http: &Client, address: &str, account: &Account) -> RequestBuilder {
        let Self { call, number, serial, .. } = *self;
        let (path, body) = match call {
            Call::Track => {
                let url = format!("{address}/api/v1/tracking/{number}?includeHistory=true");
                return http.get(url).header("X-API-Key", &account.key);
            }
            Call::Create => ("api/v1/orders/create".to_owned(), order_body(self.order)),
            Call::Void => {
                let body = json!({ "idempotencyKey": idempotency_key(serial), "trackingNumbers": [number] });
                ("api/v1/orders/void".to_owned(), body)
            }
            Call::Reprint => {
                let body = json!({ "idempotencyKey": idempotency_key(serial) });
                (format!("api/v1/labels/{number}/reprint"), body)
            }
            Call::Manifest => {
                let body = json!({ "awbNumber": air_waybill(serial), "trackingNumbers": [number] });
                ("api/v1/manifests/submit".to_owned(), body)
            }
            Call::Scan { reported, .. } => {
                let at = chrono::DateTime::from_timestamp_millis(self.scanned_at as i64);
                let event = json!({
                    "eventId": idempotency_key(serial), "trackingNumber": number, "status": reported.name(),
                    "occurredAt": at.unwrap_or_default().to_rfc3339(), "location": "Quito, EC"
                });
                ("carrier/v1/events".to_owned(), json!({ "events": [event] }))
            }
        };
        let request = http.post(format!("{address}/{path}")).body(body.to_string());
        let request = request.header("content-type", "application/json");
        match call {
            Call::Scan { .. } => request.header("X-Carrier-Key", &account.carrier_key),
            _ => request.header("X-API-Key", &account.key),
        }
    }

    /// Reads the answer in a response; `None` if the response leaves open whether the call took effect.
    pub(crate) fn parse_reply(&self, status: u16, bytes: &[u8]) -> Option<Reply> {
        if status >= 500 {
            return None;
        }
        let body: Value = serde_json::from_slice(bytes).expect("the service answers JSON");
        if body["error"]["code"] == "IDEMPOTENCY_IN_PROGRESS" {
            return None;
        }
        let answer = match (self.call, status) {
            (Call::Create, 201) => Some(Answer::Created(hash(bytes))),
            (Call::Create, 200) => Some(Answer::Repeated(hash(bytes))),
            (Call::Void, 200) if body["data"]["results"][0]["alreadyVoided"] == true => {
                Some(Answer::AlreadyVoided)
            }
            (Call::Void, 200) => Some(Answer::Voided),
            (Call::Reprint, 200) => {
                let version = body["data"]["version"].as_u64();
                version.and_then(|version| version.try_into().ok()).map(Answer::Reprinted)
            }
            (Call::Manifest, 200 | 201) => Some(Answer::Submitted),
            (Call::Track, 200) => {
                body["status"].as_str().and_then(Status::parse).map(Answer::HasStatus)
            }
            (Call::Scan { .. }, 200) => match scan_answer(&body["data"]["results"][0]) {
                // The event was rejected because it could not be written.
                Some(Answer::Refused) if is_unwritten_event(&body) => return None,
                answer => answer,
            },
            (Call::Scan { at: None, .. }, 400) => Some(Answer::TooEarly),
            (Call::Void | Call::Reprint | Call::Manifest, 409) => Some(Answer::Refused),
            _ => None,
        };
        let answer = answer.unwrap_or_else(|| {
            println!("{:?} of {}: {status} {body}", self.call, self.order);
            Answer::Unexpected
        });
        let number = body["parcel"]["trackingNumber"].as_str().map(str::to_owned);
        Some(Reply { answer, number })
    }
}

fn scan_answer(result: &Value) -> Option<Answer> {
    match result["outcome"].as_str()? {
        "APPLIED" => Some(Answer::Applied),
        "RECORDED" => Some(Answer::Recorded),
        "DUPLICATE" => Some(Answer::DuplicateScan),
        "REJECTED" => Some(Answer::Refused),
        _ => None,
    }
}

fn is_unwritten_event(body: &Value) -> bool {
    body["data"]["results"][0]["error"]["code"] != "ILLEGAL_TRANSITION"
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

fn idempotency_key(serial: u64) -> String {
    format!("torture-{serial:010}")
}

/// Returns an air waybill: seven digits, followed by their remainder modulo seven.
fn air_waybill(serial: u64) -> String {
    let (prefix, number) = (100 + serial / 10_000_000, serial % 10_000_000);
    format!("{prefix}-{number:07}{}", number % 7)
}

pub(crate) fn order_body(key: &str) -> Value {
    json!({
        "idempotencyKey": key,
        "sender": {
            "fullName": "Ana Ruiz", "phone": "+13055550100",
            "address": { "line1": "8400 NW 25th St", "city": "Miami", "state": "FL", "zipCode": "33122", "country": "US" }
        },
        "receiver": {
            "fullName": "José Ángel Muñoz", "phone": "+593991234567", "nationalId": "1714307103", "idType": "cedula",
            "address": { "line1": "Av. Amazonas N34-451", "city": "Quito", "province": "Pichincha", "zipCode": "170515", "country": "EC" }
        },
        "parcelDetails": { "weightKg": 1.25, "declaredValue": 45.5 },
        "customsInfo": { "description": "Cotton shirts", "hsCode": "610910" }
    })
}
