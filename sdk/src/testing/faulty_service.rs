//! A service that creates orders in memory, and whose responses to creations are lost or replaced as planned.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request};
use parcelo_types::ErrorCode;
use serde_json::{Value, json};
use tokio::time::Instant;
use url::form_urlencoded;

use super::{CallEnd, Execution, Step, api_key, build};
use crate::{
    Client, Retry,
    transport::{ResponseFuture, Transport},
};

/// Time for which the service remembers an idempotency key.
const KEY_LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// Maximum time for which a request is under way.
const MAX_EXECUTION: Duration = Duration::from_secs(10 * 60);

/// A service in memory whose creations of orders end as planned, and after that normally. Clones are the same service.
///
/// It remembers an idempotency key for 24 hours and for one API key, as the service does, by tokio's clock, which a test
/// can pause and advance. It creates orders ([`Orders::create`](crate::calls::Orders::create)) and finds their parcels
/// ([`Orders::find`](crate::calls::Orders::find)); all other requests are refused with `NOT_FOUND`. It is a
/// [`Transport`], for clients with other settings than those of [`client`](Self::client).
///
/// ```
/// use parcelo::testing::{CallEnd, Execution, FaultyService, Step, order};
/// use parcelo::transport::Phase;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), parcelo::Error> {
/// let lost = CallEnd::new(Step::Fail(Phase::MaybeSent), Execution::Done);
/// let service = FaultyService::new([lost]);
/// let client = service.client();
/// assert!(client.orders().create(&order()).await.unwrap_err().may_have_executed());
/// assert_eq!(client.orders().find("1001").await?.len(), 1);
/// client.orders().create(&order()).await?; // replayed, since it has the same key
/// assert_eq!((service.creations(), service.parcels()), (2, 1));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct FaultyService(Arc<Mutex<State>>);

struct State {
    ends: Box<dyn Iterator<Item = CallEnd> + Send>,
    parcels: Vec<Parcel>,
    /// The executions that are remembered, by API key and idempotency key.
    executions: HashMap<(String, String), Remembered>,
    under_way: Vec<(Instant, Creation)>,
    creations: usize,
}

#[derive(Debug)]
struct Parcel {
    external_order_id: Option<String>,
    json: Value,
}

/// A request that creates an order.
#[derive(Debug, Clone)]
struct Creation {
    keys: (String, String),
    body: Value,
}

#[derive(Debug)]
struct Remembered {
    at: Instant,
    body: Value,
    parcel: Value,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the clock of a service in a test, which can pause it"
)]
fn now() -> Instant {
    Instant::now()
}

impl FaultyService {
    /// Returns a service whose creations have these ends, one after the other, and after that the usual one. With
    /// `std::iter::repeat` they have the same end until it is [repaired](Self::repair).
    pub fn new<I>(ends: I) -> Self
    where
        I: IntoIterator<Item = CallEnd, IntoIter: Send + 'static>,
    {
        let state = State {
            ends: Box::new(ends.into_iter()),
            parcels: Vec::new(),
            executions: HashMap::new(),
            under_way: Vec::new(),
            creations: 0,
        };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Returns a client that makes one attempt for each call, so that your code sees each end.
    pub fn client(&self) -> Client {
        build(Client::builder(api_key()).transport(self.clone()).retry(Retry::none()))
    }

    /// Returns the number of parcels, after everything that is still under way has been executed.
    pub fn parcels(&self) -> usize {
        self.with_state(|state| {
            state.execute_what_is_under_way(|_| true);
            state.parcels.len()
        })
    }

    /// Returns the number of requests so far that create an order.
    pub fn creations(&self) -> usize {
        self.with_state(|state| state.creations)
    }

    /// Drops the planned ends: from now on every creation ends normally.
    pub fn repair(&self) {
        self.with_state(|state| state.ends = Box::new(std::iter::empty()));
    }

    fn with_state<T>(&self, action: impl FnOnce(&mut State) -> T) -> T {
        action(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for FaultyService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (parcels, creations) = self.with_state(|state| (state.parcels.len(), state.creations));
        let mut shown = f.debug_struct("FaultyService");
        shown.field("parcels", &parcels).field("creations", &creations).finish_non_exhaustive()
    }
}

impl Transport for FaultyService {
    fn send(&self, request: Request<Bytes>) -> ResponseFuture<'_> {
        let path = request.uri().path().to_owned();
        let step = self.with_state(|state| match *request.method() {
            Method::POST if path.ends_with("/orders/create") => state.create(&request),
            Method::GET if path.ends_with("/parcels") => state.list(&request),
            _ => Step::refusal(ErrorCode::NotFound),
        });
        step.perform()
    }
}

impl State {
    fn create(&mut self, request: &Request<Bytes>) -> Step {
        self.creations += 1;
        // A request that is sent later does not overtake one that is under way.
        self.execute_what_is_under_way(|_| true);
        let Some(creation) = Creation::read(request) else {
            return Step::refusal(ErrorCode::ValidationFailed);
        };
        let Some(CallEnd { step, execution }) = self.ends.next() else {
            return self.execute(&creation, now());
        };
        match execution {
            Execution::Never => {}
            Execution::Done => drop(self.execute(&creation, now())),
            Execution::UnderWay => self.under_way.push((now(), creation)),
        }
        step
    }

    /// Executes the requests under way of whose age `is_due` returns `true`.
    fn execute_what_is_under_way(&mut self, is_due: impl Fn(Duration) -> bool) {
        let is_due = |(began, _): &mut (Instant, Creation)| is_due(now() - *began);
        let due: Vec<_> = self.under_way.extract_if(.., is_due).collect();
        for (began, creation) in due {
            self.execute(&creation, now().min(began + MAX_EXECUTION));
        }
    }

    /// Creates an order, unless its key or its tracking number is known.
    fn execute(&mut self, creation: &Creation, at: Instant) -> Step {
        self.executions.retain(|_, execution| at - execution.at < KEY_LIFETIME);
        if let Some(known) = self.executions.get(&creation.keys) {
            if known.body != creation.body {
                return Step::refusal(ErrorCode::IdempotencyConflict);
            }
            return created(&known.parcel).with_header("idempotent-replayed", "true");
        }
        let body = &creation.body;
        let text = |name| body.get(name).and_then(Value::as_str).map(str::to_owned);
        let number = text("trackingNumber");
        let number = number.unwrap_or_else(|| format!("SB-SUCCESS-{:04}", self.parcels.len()));
        if self
            .parcels
            .iter()
            .any(|parcel| parcel.json.get("trackingNumber") == Some(&json!(number)))
        {
            return Step::refusal(ErrorCode::ParcelDuplicateTracking);
        }
        let external_order_id = text("externalOrderId");
        let parcel = json!({"id": format!("par_{number}"), "trackingNumber": number,
            "externalOrderId": external_order_id, "status": "LABEL_GENERATED",
            "statusName": "Label generated", "createdAt": CREATED_AT, "updatedAt": CREATED_AT,
            "destinationCountry": body.pointer("/receiver/address/country"),
            "labelUrl": "http://localhost/label"});
        self.parcels.push(Parcel { external_order_id, json: parcel.clone() });
        let remembered = Remembered { at, body: body.clone(), parcel: parcel.clone() };
        self.executions.insert(creation.keys.clone(), remembered);
        created(&parcel)
    }

    /// Lists the parcels of an order, or all.
    fn list(&mut self, request: &Request<Bytes>) -> Step {
        self.execute_what_is_under_way(|age| age >= MAX_EXECUTION);
        let query = request.uri().query().unwrap_or_default().as_bytes();
        let id = form_urlencoded::parse(query).find(|(name, _)| name == "externalOrderId");
        let is_listed = |parcel: &&Parcel| {
            id.as_ref().is_none_or(|(_, id)| parcel.external_order_id.as_deref() == Some(&**id))
        };
        let rows: Vec<_> =
            self.parcels.iter().rev().filter(is_listed).map(|parcel| &parcel.json).collect();
        let meta = json!({"page": 1, "limit": 100, "total": rows.len(), "totalPages": 1});
        let body = json!({"success": true, "data": rows, "meta": meta});
        Step::response(200, body.to_string()).by_service()
    }
}

const CREATED_AT: &str = "2026-01-10T15:05:00.000Z";

/// Returns the response to a creation.
fn created(parcel: &Value) -> Step {
    let body = json!({"success": true, "parcel": parcel});
    Step::response(201, body.to_string()).by_service()
}

impl Creation {
    fn read(request: &Request<Bytes>) -> Option<Self> {
        let body: Value = serde_json::from_slice(request.body()).ok()?;
        let api_key = request.headers().get("x-api-key")?.to_str().ok()?.to_owned();
        let key = body.get("idempotencyKey")?.as_str()?.to_owned();
        Some(Self { keys: (api_key, key), body })
    }
}
