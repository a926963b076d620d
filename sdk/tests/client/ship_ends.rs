//! `ship` follows `next_step`, with every end of a call that leaves the outcome unknown. There is at most one parcel, no
//! order is sent again after its response, and the loop ends.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use parcelo::{
    Client, IfAbsent, NextStep, OrderRequest, Retry,
    transport::{Phase, ResponseFuture, Transport},
};
use serde_json::{Value, json};

use crate::{
    scripted_transport::{Piece, Step, key, order, refusal, response},
    ship::InMemory,
    write_outcomes::{ConnectionEnd, ExpectedOutcome, ResponseKind, all_ends},
};

/// The execution of a creation at the end of its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Execution {
    Executed,
    /// It is executed only when the next creation arrives, and its parcel is not found before that.
    UnderWay,
    NotExecuted,
}

/// The end of a call that creates an order, and whether the order is created.
pub(crate) type PlannedEnd = (Step, Execution);

/// A service with idempotency keys whose responses to creations are lost or replaced as planned. After the planned ends
/// it works normally.
#[derive(Debug, Clone, Default)]
pub(crate) struct Service(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    planned: VecDeque<PlannedEnd>,
    /// The end of every creation after the planned ones; `None` for a working service.
    lasting_end: Option<PlannedEnd>,
    /// The executed body for each key, and its parcel.
    parcels: HashMap<String, (Value, Value)>,
    under_way: Vec<Value>,
    creations: usize,
}

impl State {
    /// Executes a creation, unless its key is known.
    fn execute(&mut self, body: &Value) -> Step {
        let key = body["idempotencyKey"].as_str().unwrap().to_owned();
        let number = format!("SB-SUCCESS-{:04}", self.parcels.len());
        let parcel = json!({"id": "par_1", "trackingNumber": number, "status": "LABEL_GENERATED",
            "statusName": "?", "destinationCountry": "EC", "labelUrl": "http://localhost/l",
            "createdAt": "2026-01-10T15:05:00.000Z", "updatedAt": "2026-01-10T15:05:00.000Z"});
        let known = self.parcels.entry(key).or_insert_with(|| (body.clone(), parcel));
        if known.0 == *body {
            response(201, json!({"success": true, "parcel": known.1}).to_string())
        } else {
            response(409, refusal("IDEMPOTENCY_CONFLICT"))
        }
    }

    fn create(&mut self, body: &Value) -> Step {
        self.creations += 1;
        assert!(self.creations < 50, "a loop");
        self.finish();
        match self.planned.pop_front().or_else(|| self.lasting_end.clone()) {
            Some((step, Execution::NotExecuted)) => step,
            Some((step, Execution::Executed)) => {
                self.execute(body);
                step
            }
            Some((step, Execution::UnderWay)) => {
                self.under_way.push(body.clone());
                step
            }
            None => self.execute(body),
        }
    }

    fn finish(&mut self) {
        for body in std::mem::take(&mut self.under_way) {
            self.execute(&body);
        }
    }

    fn list(&self) -> Step {
        let rows: Vec<_> = self.parcels.values().map(|(_, parcel)| parcel).collect();
        let meta = json!({"page": 1, "limit": 100, "total": rows.len(), "totalPages": 1});
        response(200, json!({"success": true, "data": rows, "meta": meta}).to_string())
    }
}

impl Transport for Service {
    fn send(&self, request: http::Request<Bytes>) -> ResponseFuture<'_> {
        let mut state = self.0.lock().unwrap();
        let step = match *request.method() {
            http::Method::GET => state.list(),
            _ => state.create(&serde_json::from_slice(request.body()).unwrap()),
        };
        step.perform()
    }
}

impl Service {
    pub(crate) fn client(
        planned: impl IntoIterator<Item = PlannedEnd>,
        lasting_end: Option<PlannedEnd>,
    ) -> (Client, Self) {
        let service = Self::default();
        service.0.lock().unwrap().planned.extend(planned);
        service.0.lock().unwrap().lasting_end = lasting_end;
        let client = Client::builder(key()).transport(service.clone()).retry(Retry::none());
        (client.build().unwrap(), service)
    }

    /// Ends the failures.
    pub(crate) fn work_normally(&self) {
        self.0.lock().unwrap().lasting_end = None;
    }

    /// Returns the numbers of parcels and of creations.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let state = self.0.lock().unwrap();
        (state.parcels.len(), state.creations)
    }
}

/// Returns the end as a step of the transport.
fn step(end: ConnectionEnd) -> Step {
    match end {
        ConnectionEnd::Closed | ConnectionEnd::Unanswered => Step::Fail(Phase::Stale),
        ConnectionEnd::Cut => Step::Fail(Phase::MaybeSent),
        ConnectionEnd::Silence => Step::Hang,
        ConnectionEnd::Bytes(text) if text.contains("101 Switching") => response(101, ""),
        ConnectionEnd::Bytes(text) if text.ends_with('{') => {
            Step::in_pieces(201, [Piece::Bytes("{".into()), Piece::Break])
        }
        ConnectionEnd::Bytes(text) if text.starts_with("HTTP") => Step::Fail(Phase::MaybeSent),
        ConnectionEnd::Bytes(_) => Step::Fail(Phase::NotHttp),
        ConnectionEnd::Response(status, kind) => response(status, kind.body()),
    }
}

/// Returns every end. One that does not settle whether the parcel was created is returned once for each case.
fn all_planned_ends() -> Vec<PlannedEnd> {
    let phases = [Phase::NotSent, Phase::Untrusted, Phase::Refused].map(Step::Fail);
    let mut all: Vec<_> = phases.map(|step| (step, Execution::NotExecuted)).into();
    let settled = ResponseKind::Body(r#"{"success":true,"new":1}"#);
    all.push((step(ConnectionEnd::Response(201, settled)), Execution::Executed));
    for (end, expected) in all_ends() {
        all.push((step(end), Execution::NotExecuted));
        if expected == ExpectedOutcome::None
            && !matches!(end, ConnectionEnd::Closed | ConnectionEnd::Cut)
        {
            all.push((step(end), Execution::Executed));
            all.push((step(end), Execution::UnderWay));
        }
    }
    all
}

pub(crate) fn order_with_external_id() -> OrderRequest {
    order().with_external_order_id("1001")
}

/// Ships an order three times.
async fn follow(
    client: &Client,
    order: &OrderRequest,
    journal: &InMemory,
) -> Vec<Result<String, String>> {
    let mut results = Vec::new();
    for _ in 0..3 {
        let shipped = client.orders().ship(order, journal).await;
        let number = shipped.map(|shipped| shipped.tracking_number.to_string());
        results.push(number.map_err(|error| format!("{error:?}")));
    }
    results
}

/// Returns an end for each next step, and for each state of the order.
fn representative_ends() -> [PlannedEnd; 10] {
    let lost = || Step::Fail(Phase::MaybeSent);
    let faulty = ResponseKind::Fault("receiver.phone").body();
    [
        (lost(), Execution::Executed),
        (lost(), Execution::UnderWay),
        (response(201, ""), Execution::UnderWay),
        (response(201, r#"{"success":true,"new":1}"#), Execution::Executed),
        (response(400, faulty), Execution::NotExecuted),
        (response(401, refusal("AUTH_INVALID_API_KEY")), Execution::NotExecuted),
        (response(409, refusal("IDEMPOTENCY_IN_PROGRESS")), Execution::UnderWay),
        (response(409, refusal("NEW_CODE")), Execution::NotExecuted),
        (response(429, ""), Execution::NotExecuted),
        (response(501, ""), Execution::NotExecuted),
    ]
}

#[tokio::test(start_paused = true)]
async fn following_the_next_step_ships_once_after_any_two_failures() {
    for first in all_planned_ends() {
        for second in representative_ends() {
            let (client, service) = Service::client([first.clone(), second.clone()], None);
            let journal = InMemory::default();
            let results = follow(&client, &order_with_external_id(), &journal).await;
            let (parcels, creations) = service.counts();
            let case = format!("{first:?}, {second:?}: {results:?}");
            assert_eq!(parcels, 1, "one parcel once the service works: {case}");
            assert!(results[2].is_ok(), "{case}");
            assert!(creations <= 5, "{creations} creations: {case}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lasting_failure_ends_and_ships_at_most_once() {
    for planned in all_planned_ends() {
        let (client, service) = Service::client([], Some(planned.clone()));
        let (order, journal) = (order_with_external_id(), InMemory::default());
        let results = follow(&client, &order, &journal).await;
        service.0.lock().unwrap().finish();
        let (parcels, creations) = service.counts();
        let case = format!("{planned:?}: {results:?}");
        assert_eq!(parcels, usize::from(planned.1 != Execution::NotExecuted), "{case}");
        // A minute each, and 5 s between two.
        assert!(creations <= 3 * 12, "{creations} creations: {case}");
        // A day later the key has expired, and the service works.
        service.0.lock().unwrap().lasting_end = None;
        tokio::time::advance(Duration::from_secs(25 * 3600)).await;
        assert!(follow(&client, &order, &journal).await[0].is_ok(), "{case}");
        assert_eq!(service.counts().0, 1, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_in_flight_at_expiry_creates_no_second_parcel() {
    for finishes in [true, false] {
        let lost = || (Step::Fail(Phase::MaybeSent), Execution::UnderWay);
        let (client, service) = Service::client([], Some(lost()));
        let (order, journal) = (order_with_external_id(), InMemory::default());
        // The service loses the first attempt; the last one is made in the last second in which the key is sent.
        client.orders().create(&order).await.unwrap_err();
        service.0.lock().unwrap().under_way.clear();
        tokio::time::advance(Duration::from_secs(24 * 3600 - 601)).await;
        let mut results = follow(&client, &order, &journal).await;
        assert_eq!(service.counts(), (0, 2), "the last one is under way: {results:?}");
        // It is executed minutes later, or never.
        service.0.lock().unwrap().lasting_end = None;
        tokio::time::advance(Duration::from_secs(5 * 60)).await;
        let error = client.orders().create(&order).await.unwrap_err();
        let after = Duration::from_secs(5 * 60 - 4);
        let look_again = IfAbsent::Resend { after };
        assert_eq!(error.next_step(), NextStep::LookUp { if_absent: look_again });
        results.extend(follow(&client, &order, &journal).await);
        assert_eq!(service.counts(), (0, 2), "no new key yet: {results:?}");
        if finishes {
            service.0.lock().unwrap().finish();
        }
        service.0.lock().unwrap().under_way.clear();
        tokio::time::advance(after).await;
        results.extend(follow(&client, &order, &journal).await);
        assert_eq!(service.counts().0, 1, "{results:?}");
        assert!(results[8].is_ok(), "{results:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_again_after_it_was_executed() {
    let settled = response(201, r#"{"success":true,"new":1}"#);
    let (client, service) = Service::client([(settled, Execution::Executed)], None);
    let (order, journal) = (order_with_external_id(), InMemory::default());
    let shipped = client.orders().ship(&order, &journal).await.unwrap();
    assert_eq!(service.counts(), (1, 1));
    assert_eq!(shipped.tracking_number.as_str(), "SB-SUCCESS-0000");
}

#[tokio::test(start_paused = true)]
async fn an_order_corrected_after_a_lost_response_ships_once() {
    for execution in [Execution::Executed, Execution::UnderWay, Execution::NotExecuted] {
        let lost = (Step::Fail(Phase::MaybeSent), execution);
        let (client, service) = Service::client([lost], None);
        let mut order = order_with_external_id();
        client.orders().create(&order).await.unwrap_err();
        order.receiver.phone = "+593991234568".to_owned();
        let results = follow(&client, &order, &InMemory::default()).await;
        assert_eq!(service.counts().0, 1, "{execution:?}: {results:?}");
        assert!(results.iter().all(Result::is_ok), "{execution:?}: {results:?}");
    }
}
