//! A model of the service: what matters for shipping an order once, and nothing else. It executes a creation once for
//! each API key and idempotency key, forgets that after 24 hours, and finds parcels by their order's id.

use std::{collections::HashMap, time::Duration};

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use futures_util::stream;
use http::{Request, Response, StatusCode};
use serde_json::{Value, json};

use parcelo_types::internal::header;

use crate::{
    IdempotencyKey,
    transport::{BodyStream, Phase, TransportError},
};

/// The end of a request, for a transport.
pub(super) type Answer = Result<Response<BodyStream>, TransportError>;

/// The fate of a creation and of its response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Fault {
    #[default]
    None,
    /// The connection fails, and nothing is sent.
    NotSent,
    /// It is refused as invalid.
    Refused,
    /// It is not executed, and no response arrives.
    Lost,
    /// It is executed, and the response is lost.
    ResponseLost,
    /// It is executed within ten minutes, and no response arrives.
    UnderWay,
    /// It is executed, and the response cannot be read.
    Unreadable,
}

impl Fault {
    pub(super) const ALL: [Self; 7] = [
        Self::None,
        Self::NotSent,
        Self::Refused,
        Self::Lost,
        Self::ResponseLost,
        Self::UnderWay,
        Self::Unreadable,
    ];

    /// Returns `true` if the client cannot know whether the creation was executed.
    pub(super) fn leaves_doubt(self) -> bool {
        matches!(self, Self::Lost | Self::ResponseLost | Self::UnderWay)
    }
}

/// A time within which the service has executed what is under way.
const MAX_UNDER_WAY: Duration = Duration::from_secs(10 * 60);

#[derive(Debug, Default)]
pub(super) struct Service {
    /// The time since the run began.
    time: Duration,
    /// The numbers of all parcels.
    parcels: Vec<String>,
    known: HashMap<Key, Execution>,
    under_way: Vec<(Key, Value)>,
}

/// A digest of an API key, and an idempotency key.
type Key = (String, String);

#[derive(Debug)]
struct Execution {
    body: Value,
    number: String,
    at: Duration,
}

impl Service {
    pub(super) fn now(&self) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::days(20_000) + self.time
    }

    pub(super) fn parcels(&self) -> &[String] {
        &self.parcels
    }

    pub(super) fn advance(&mut self, time: Duration) {
        if time >= MAX_UNDER_WAY {
            self.finish(|_| true);
        }
        self.time += time;
        let lifetime = IdempotencyKey::LIFETIME.to_std().unwrap_or_default();
        let now = self.time;
        self.known.retain(|_, execution| now.saturating_sub(execution.at) < lifetime);
    }

    /// Executes the creations under way with these keys.
    fn finish(&mut self, is_chosen: impl Fn(&Key) -> bool) {
        let chosen: Vec<_> = self.under_way.extract_if(.., |(key, _)| is_chosen(key)).collect();
        for (key, body) in chosen {
            self.execute(key, body);
        }
    }

    fn execute(&mut self, key: Key, body: Value) -> &Execution {
        self.known.entry(key).or_insert_with(|| {
            let number = format!("SB-SUCCESS-{:04}", self.parcels.len() + 1);
            self.parcels.push(number.clone());
            Execution { body, number, at: self.time }
        })
    }

    /// Creates an order; returns a line for the record too.
    pub(super) fn create(&mut self, request: &Request<Bytes>, fault: Fault) -> (String, Answer) {
        let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let idempotency_key = text(&body, "idempotencyKey");
        let api_key = request.headers().get(header::API_KEY);
        let api_key = api_key.map(|key| String::from_utf8_lossy(key.as_bytes()).into_owned());
        let key = (api_key.unwrap_or_default(), idempotency_key.clone());
        let (end, answer) = match fault {
            Fault::None => self.answer(key, &body),
            Fault::NotSent => ("not sent".to_owned(), failure(Phase::NotSent)),
            Fault::Refused => ("refused".to_owned(), Ok(response(400, &refusal()))),
            Fault::Lost => ("not executed, no response".to_owned(), failure(Phase::MaybeSent)),
            Fault::UnderWay => {
                self.under_way.push((key, body));
                ("under way, no response".to_owned(), failure(Phase::Timeout))
            }
            Fault::ResponseLost => {
                (self.answer(key, &body).0 + ", response lost", failure(Phase::MaybeSent))
            }
            Fault::Unreadable => {
                let end = self.answer(key, &body).0 + ", unreadable response";
                (end, Ok(response(201, &json!({"success": true, "later": 1}))))
            }
        };
        (format!("create with key {idempotency_key}: {end}"), answer)
    }

    /// Executes a creation, or answers it as before.
    fn answer(&mut self, key: Key, body: &Value) -> (String, Answer) {
        self.finish(|under_way| *under_way == key);
        let is_known = self.known.contains_key(&key);
        let execution = self.execute(key, body.clone());
        if execution.body != *body {
            let error = json!({"code": "IDEMPOTENCY_CONFLICT", "message": "", "message_es": ""});
            let refused = json!({"success": false, "error": error});
            return ("another order has the key".to_owned(), Ok(response(409, &refused)));
        }
        let (word, number) = (if is_known { "replayed" } else { "created" }, &execution.number);
        let created = json!({"success": true, "parcel": parcel(number)});
        (format!("{word} as {number}"), Ok(response(201, &created)))
    }

    /// Lists the parcels: all are of the one order.
    pub(super) fn find(&self, _: &Request<Bytes>) -> (String, Answer) {
        let rows: Vec<_> = self.parcels.iter().map(|number| parcel(number)).collect();
        let meta = json!({"page": 1, "limit": 100, "total": rows.len(), "totalPages": 1});
        let found = json!({"success": true, "data": rows, "meta": meta});
        (format!("find: {:?}", self.parcels), Ok(response(200, &found)))
    }
}

fn text(body: &Value, name: &str) -> String {
    body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn parcel(number: &str) -> Value {
    let at = "2024-10-04T00:00:00.000Z";
    json!({"id": "par_1", "trackingNumber": number, "status": "LABEL_GENERATED", "statusName": "",
        "destinationCountry": "EC", "labelUrl": "https://localhost/", "createdAt": at, "updatedAt": at})
}

fn refusal() -> Value {
    let fault = json!({"field": "receiver.phone", "code": "INVALID_FORMAT", "message": ""});
    json!({"success": false, "error": {"code": "VALIDATION_FAILED", "message": "", "message_es": "",
        "details": {"errors": [fault]}}})
}

fn failure(phase: Phase) -> Answer {
    Err(TransportError::new(phase, "as planned"))
}

fn response(status: u16, body: &Value) -> Response<BodyStream> {
    let chunk = Bytes::from(body.to_string());
    let mut response = Response::new(BodyStream::new(stream::iter([Ok(chunk)])));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    response
}
