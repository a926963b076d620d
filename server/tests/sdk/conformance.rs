//! One suite over the three ways from the SDK to the embedded service: in memory, over HTTP, and behind wiremock. The
//! caller sees the same on each, whatever fails on the way.

use std::time::Duration;

use futures_util::future::join_all;
use parcelo::{
    Awb, Client, Error, ErrorCode, IdempotencyKey, LabelFormat, ManifestRequest, Operation,
    OrderRequest, Outcome, Reply, Retry, Timeouts, TrackingNumber, VoidRequest,
};
use parcelo_server::mock::{self, Fault, MockServer};

use crate::scripted_transport::order;

/// A transport between the SDK and the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransportKind {
    InMemory,
    Http,
    Wiremock,
}

pub(crate) const TRANSPORTS: [TransportKind; 3] =
    [TransportKind::InMemory, TransportKind::Http, TransportKind::Wiremock];

/// A service and its client, possibly with a stub server in between.
pub(crate) struct Session {
    pub(crate) server: MockServer,
    pub(crate) client: Client,
    _stubs: Option<wiremock::MockServer>,
}

impl Session {
    pub(crate) async fn start(transport: TransportKind, retry: Retry) -> Self {
        let server = MockServer::builder().seed(3).start().await;
        let key = server.key().issue();
        let stubs = match transport {
            TransportKind::InMemory | TransportKind::Http => None,
            TransportKind::Wiremock => Some(stubs(&server).await),
        };
        let builder = match (transport, &stubs) {
            (TransportKind::InMemory, _) => server.in_memory_builder(&key),
            (_, None) => Client::builder(key).base_url(server.url()).unwrap(),
            (_, Some(stubs)) => Client::builder(key).base_url(&stubs.uri()).unwrap(),
        };
        let client = builder.retry(retry).build().unwrap();
        Self { server, client, _stubs: stubs }
    }
}

async fn stubs(server: &MockServer) -> wiremock::MockServer {
    let stubs = wiremock::MockServer::start().await;
    let all = wiremock::Mock::given(wiremock::matchers::any());
    all.respond_with(server.responder()).mount(&stubs).await;
    stubs
}

/// Returns an order with this key.
pub(crate) fn order_with_key(key: &str) -> OrderRequest {
    valid_order(IdempotencyKey::parse(key).unwrap())
}

/// Returns an order that the service accepts.
pub(crate) fn valid_order(key: IdempotencyKey) -> OrderRequest {
    let mut order = order().with_idempotency_key(key);
    order.receiver.national_id = Some("1714307103".into());
    order
}

/// Describes a response by the parts that the caller sees.
fn describe_reply<T>(
    reply: Result<Reply<T>, Error>,
    describe: impl FnOnce(&T) -> String,
) -> String {
    match reply {
        Ok(reply) => {
            let meta = reply.meta();
            let rates = meta.rate_limit.map(|rate| (rate.limit, rate.remaining, rate.reset));
            let id = meta.request_id.as_ref().unwrap().as_str();
            let (outcome, attempts) = (reply.outcome(), meta.attempts);
            format!("{outcome:?} in {attempts}, {id} {rates:?}: {}", describe(&reply))
        }
        Err(error) => describe_error(&error),
    }
}

fn describe_error(error: &Error) -> String {
    let (kind, code, attempts) = (error.kind(), error.code(), error.attempts());
    let (executed, reason) = (error.may_have_executed(), error.stop_reason());
    format!("{kind:?} {code:?} in {attempts}, executed: {executed}, {reason:?}")
}

/// Makes the calls of a typical day, and describes everything that the suite compares.
async fn run_session(client: &Client) -> Vec<String> {
    let orders = ["order-0001", "order-0002", "order-0003"].map(order_with_key);
    let mut described = Vec::new();
    let mut numbers = Vec::new();
    for order in orders.iter().chain([&orders[0]]) {
        let reply = client.orders().create(order).await;
        numbers.push(reply.as_ref().unwrap().parcel.tracking_number.clone());
        described.push(describe_reply(reply, |created| created.parcel.tracking_number.to_string()));
    }
    assert_eq!(numbers[0], numbers[3]);
    let mut nameless = order_with_key("order-0004");
    nameless.receiver.full_name = String::new();
    described.push(describe_reply(client.orders().create(&nameless).await, |_| String::new()));
    let mut other = orders[0].clone();
    other.receiver.full_name = "Another".into();
    described.push(describe_reply(client.orders().create(&other).await, |_| String::new()));
    let unknown = TrackingNumber::parse("SB-UNKNOWN-0001").unwrap();
    described.push(describe_reply(client.tracking().get(&unknown).await, |_| String::new()));
    let all: Vec<_> = numbers[..3].iter().chain([&unknown]).cloned().collect();
    described.push(format!("{:?}", client.tracking().batch(&all).await.unwrap()));
    for format in [LabelFormat::Pdf, LabelFormat::Png, LabelFormat::Zpl] {
        let label = client.labels().download(&numbers[0], format).bytes().await.unwrap();
        described.push(format!("{:?} {}", &label[..3], label.len() > 1_000));
    }
    let void = VoidRequest::new(IdempotencyKey::parse("void-0001").unwrap(), &numbers[..1]);
    for _ in 0..2 {
        let reply = client.orders().void(&void).await;
        described.push(describe_reply(reply, |voided| format!("{:?}", voided.summary)));
    }
    let awb = Awb::parse("17612345675").unwrap();
    let key = IdempotencyKey::parse("manifest-0001").unwrap();
    let manifest = ManifestRequest::new(key, awb, &numbers[1..3]);
    let reply = client.manifests().submit(&manifest).await;
    described.push(describe_reply(reply, |manifest| {
        format!("{} {}", manifest.manifest_id, manifest.parcel_count)
    }));
    described
}

#[tokio::test]
async fn a_session_is_the_same_over_every_transport() {
    let mut sessions = Vec::new();
    for transport in TRANSPORTS {
        let session = Session::start(transport, Retry::standard()).await;
        sessions.push(run_session(&session.client).await);
    }
    let [in_memory, http, wiremock] = &sessions[..] else { panic!("three transports") };
    assert_eq!(in_memory, http);
    assert_eq!(in_memory, wiremock);
    assert_eq!(in_memory.iter().filter(|seen| seen.starts_with("Created in 1")).count(), 5);
    assert_eq!(in_memory.iter().filter(|seen| seen.starts_with("Replayed in 1")).count(), 2);
    assert!(
        in_memory[4].starts_with("Validation Some(\"VALIDATION_FAILED\") in 1"),
        "{in_memory:?}"
    );
    assert!(in_memory[5].starts_with("KeyReused Some(\"IDEMPOTENCY_CONFLICT\")"), "{in_memory:?}");
    assert!(in_memory[6].starts_with("NotFound Some(\"PARCEL_NOT_FOUND\")"), "{in_memory:?}");
}

/// A fault to plan: its name, and the function that plans it.
pub(crate) type PlannedFault = (&'static str, fn(Fault<'_>));

const SHORT_DELAY: Duration = Duration::from_millis(10);

/// The faults of a connection and of a service.
pub(crate) const FAULTS: [PlannedFault; 10] = [
    ("latency", |fault| fault.latency(SHORT_DELAY)),
    ("500", |fault| fault.error(ErrorCode::InternalError)),
    ("503", |fault| fault.error(ErrorCode::ServiceUnavailable)),
    ("429", |fault| fault.rate_limited(SHORT_DELAY)),
    ("reply", |fault| fault.reply(mock::Reply::status(503).body("<h1>Down</h1>"))),
    ("close", |fault| fault.close()),
    ("reset", |fault| fault.reset_connection()),
    ("truncated", |fault| fault.truncated_body()),
    ("slow", |fault| fault.slow_body(SHORT_DELAY)),
    ("malformed", |fault| fault.malformed_json()),
];

pub(crate) fn plan_fault(fault: Fault<'_>, after: bool, planned: PlannedFault) {
    planned.1(if after { fault.after_commit() } else { fault });
}

/// Creates an order that meets a fault, and describes the outcome as the caller sees it.
async fn faulty_creation(
    transport: TransportKind,
    retry: Retry,
    after: bool,
    planned: PlannedFault,
) -> String {
    let session = Session::start(transport, retry).await;
    let create = session.server.faults().on(Operation::CreateOrder).nth(1);
    plan_fault(create, after, planned);
    let reply = session.client.orders().create(&order_with_key("order-0001")).await;
    assert!(session.server.faults().unused().is_empty(), "{transport:?} {}", planned.0);
    match reply {
        Ok(reply) => format!("{:?} in {}", reply.outcome(), reply.meta().attempts),
        Err(error) => describe_error(&error),
    }
}

/// Creates an order for every fault, before and after the commit, over every transport. Returns the
/// descriptions.
async fn faulty_creations(retry: &Retry) -> Vec<(&'static str, bool, [String; 3])> {
    let all = FAULTS.into_iter().flat_map(|planned| [(planned, false), (planned, true)]);
    join_all(all.map(async |(planned, after)| {
        let one =
            |transport| tokio::spawn(faulty_creation(transport, retry.clone(), after, planned));
        let outcomes = join_all(TRANSPORTS.map(one)).await.into_iter().map(Result::unwrap);
        (planned.0, after, outcomes.collect::<Vec<_>>().try_into().unwrap())
    }))
    .await
}

#[tokio::test]
async fn each_fault_has_the_same_outcome_over_every_transport() {
    for (retry, retries) in [(Retry::standard(), true), (Retry::none(), false)] {
        for (fault, after, outcomes) in faulty_creations(&retry).await {
            let expected = match (fault, retries) {
                ("latency" | "slow", _) => "Created in 1",
                ("malformed", _) => "Decode None in 1, executed: true, Some(Permanent)",
                ("truncated", true) => "Replayed in 2",
                (_, true) if after => "Replayed in 2",
                (_, true) => "Created in 2",
                ("500", _) => {
                    r#"Server Some("INTERNAL_ERROR") in 1, executed: true, Some(Attempts)"#
                }
                ("503", _) => {
                    r#"Server Some("SERVICE_UNAVAILABLE") in 1, executed: true, Some(Attempts)"#
                }
                ("reply", _) => "Server None in 1, executed: true, Some(Attempts)",
                ("429", _) => {
                    r#"RateLimited Some("RATE_LIMIT_EXCEEDED") in 1, executed: false, Some(Attempts)"#
                }
                _ => "Network None in 1, executed: true, Some(Attempts)",
            };
            assert_eq!(outcomes, [expected; 3], "{fault} after: {after}, retries: {retries}");
        }
    }
}

#[tokio::test]
async fn a_missing_response_times_out_over_every_transport() {
    let hour = Duration::from_secs(3_600);
    for transport in TRANSPORTS {
        let session = Session::start(transport, Retry::standard()).await;
        let create = session.server.faults().on(Operation::CreateOrder).nth(1);
        create.after_commit().reply(mock::Reply::hang());
        let client =
            session.client.with_timeouts(Timeouts::default().total(hour).attempt(hour / 2));
        let beside = session.server.in_memory_builder(&session.server.key().issue());
        let beside = beside.build().unwrap();
        // Time goes on to the end of the attempt once the parcel is there.
        let pass = async {
            while beside.parcels().list().await.unwrap().parcels.is_empty() {}
            tokio::time::pause();
            tokio::time::advance(hour / 2).await;
            tokio::time::resume();
        };
        let order = order_with_key("order-0001");
        let (reply, ()) = tokio::join!(client.orders().create(&order).into_future(), pass);
        let reply = reply.unwrap();
        assert_eq!(
            (reply.outcome(), reply.meta().attempts),
            (Outcome::Replayed, 2),
            "{transport:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn in_memory_latencies_time_out_without_waiting() {
    let session = Session::start(TransportKind::InMemory, Retry::standard()).await;
    let create = || session.server.faults().on(Operation::CreateOrder);
    create().nth(1).latency(Duration::from_secs(3_600));
    create().nth(2).after_commit().latency(Duration::from_secs(3_600));
    let reply = session.client.orders().create(&order_with_key("order-0001")).await.unwrap();
    assert_eq!((reply.outcome(), reply.meta().attempts), (Outcome::Replayed, 3));
    session.server.requests().of(Operation::CreateOrder).assert_count(3);
}
