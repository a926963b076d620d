//! A session with every kind of write, repeated with each fault at each of its requests. Each write is made exactly
//! once in every case.

use parcelo::{
    Awb, Client, Error, IdempotencyKey, ManifestRequest, Operation,
    ParcelStatus::{self, LabelGenerated, ManifestSubmitted, Ordered, Voided},
    Reply, ReprintRequest, Retry, TrackingNumber, VoidRequest,
    model::BatchResult,
};
use parcelo_types::internal::{
    Auth,
    Idempotency::{None as Unkeyed, Reads},
};

use crate::conformance::{
    FAULTS, PlannedFault, Session, TransportKind, order_with_key, plan_fault,
};

/// The number of requests in the session when nothing fails.
const REQUESTS: u64 = 7;

/// A fault, or the same fault several times in succession.
#[derive(Debug, Clone, Copy)]
struct SweptFault {
    /// The number of the first request that meets the fault, from 1.
    at: u64,
    times: u64,
    after: bool,
    planned: PlannedFault,
}

fn all_faults(faults: &[PlannedFault], times: &[u64]) -> Vec<SweptFault> {
    let mut all = Vec::new();
    for planned in faults {
        for at in 1..=REQUESTS {
            for times in times {
                for after in [false, true] {
                    all.push(SweptFault { at, times: *times, after, planned: *planned });
                }
            }
        }
    }
    all
}

/// Repeats a call until it succeeds, as a caller that relies on the idempotency key does.
async fn retry_until_success<T>(call: impl AsyncFn() -> Result<Reply<T>, Error>) -> T {
    loop {
        match call().await {
            Ok(reply) => return reply.into_inner(),
            Err(error) => assert!(error.may_have_executed(), "{error:?}"),
        }
    }
}

async fn create(client: &Client, key: &str) -> TrackingNumber {
    let order = order_with_key(key);
    retry_until_success(async || client.orders().create(&order).await).await.parcel.tracking_number
}

/// Tracks parcels, and repeats the request until it succeeds.
async fn batch(client: &Client, numbers: &[TrackingNumber]) -> Vec<BatchResult> {
    loop {
        if let Ok(results) = client.tracking().batch(numbers).history(true).await {
            return results;
        }
    }
}

/// Creates an order, sends it again, creates another, reprints its label, tracks both,
/// voids the first and hands over the second.
async fn run_session(client: &Client) -> [TrackingNumber; 2] {
    let first = create(client, "order-0001").await;
    assert_eq!(create(client, "order-0001").await, first);
    let second = create(client, "order-0002").await;
    let key = |text| IdempotencyKey::parse(text).unwrap();
    let reprint = ReprintRequest::new(key("reprint-0001"));
    let label =
        retry_until_success(async || client.labels().reprint(&second, &reprint).await).await;
    assert_eq!((label.version, label.reprint_count), (2, 1));
    let both = [first, second];
    let tracked = batch(client, &both).await;
    assert!(tracked.iter().all(|result| result.tracking().is_some()), "{tracked:?}");
    let [first, second] = &both;
    let void = VoidRequest::new(key("void-0001"), [first]);
    let voided = retry_until_success(async || client.orders().void(&void).await).await;
    assert_eq!((voided.summary.voided, voided.summary.failed), (1, 0));
    let awb = Awb::parse("17612345675").unwrap();
    let manifest = ManifestRequest::new(key("manifest-0001"), awb, [second]);
    let manifest = retry_until_success(async || client.manifests().submit(&manifest).await).await;
    assert_eq!(manifest.tracking_numbers, std::slice::from_ref(second));
    both
}

/// Returns a parcel's statuses and the number of reprints of its label.
async fn read_history(client: &Client, number: &TrackingNumber) -> (Vec<ParcelStatus>, u32) {
    let label = client.labels().metadata(number).await.unwrap();
    let record = client.tracking().get(number).history(true).await.unwrap().into_inner();
    let history = record.history.into_iter().flatten();
    (history.map(|event| event.unwrap().status).collect(), label.reprint_count)
}

/// Runs the session with faults and checks the final state.
async fn run_session_with_fault(transport: TransportKind, fault: SweptFault) {
    let Session { server, client, .. } = &Session::start(transport, Retry::standard()).await;
    for nth in fault.at..fault.at + fault.times {
        plan_fault(server.faults().on_any().nth(nth), fault.after, fault.planned);
    }
    let numbers = run_session(client).await;
    assert!(server.faults().unused().len() < usize::try_from(fault.times).unwrap());
    server.faults().clear();

    assert_eq!(client.parcels().list().await.unwrap().meta.total, 2);
    let first = (vec![Ordered, LabelGenerated, Voided], 0);
    let second = (vec![Ordered, LabelGenerated, ManifestSubmitted], 1);
    let histories =
        [read_history(client, &numbers[0]).await, read_history(client, &numbers[1]).await];
    assert_eq!(histories, [first, second]);
}

#[tokio::test(start_paused = true)]
async fn the_session_contains_every_kind_of_write() {
    let Session { server, client, .. } =
        &Session::start(TransportKind::InMemory, Retry::none()).await;
    run_session(client).await;
    server.requests().assert_count(usize::try_from(REQUESTS).unwrap());
    let keyed = |operation: &&Operation| !matches!(operation.idempotency(), Reads | Unkeyed);
    let writes = Operation::ALL.iter().filter(keyed).filter(|write| !write.is_legacy());
    for write in writes.filter(|write| write.auth() == Auth::ApiKey) {
        assert!(server.requests().of(*write).count() > 0, "{write:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_write_is_made_once_under_any_fault() {
    for fault in all_faults(&FAULTS, &[1, 3]) {
        println!("{fault:?}");
        run_session_with_fault(TransportKind::InMemory, fault).await;
    }
}

#[tokio::test]
async fn each_write_is_made_once_over_a_broken_socket() {
    let broken =
        FAULTS.into_iter().filter(|fault| ["close", "reset", "truncated"].contains(&fault.0));
    for fault in all_faults(&broken.collect::<Vec<_>>(), &[1]) {
        println!("{fault:?}");
        run_session_with_fault(TransportKind::Http, fault).await;
    }
}
