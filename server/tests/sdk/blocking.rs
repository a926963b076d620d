//! Calls that are waited for: the same as those that are awaited, from any thread, also inside a runtime.

use std::{
    io::{self, Read},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use bytes::Bytes;
use parcelo::{
    Awb, Client, CountryCode, Error, ErrorKind, IdempotencyKey, LabelFormat, ManifestRequest,
    Operation, Outcome, ParcelStatus, RateLimit, ReprintRequest, Retry, Timeouts, TrackingNumber,
    VoidManyRequest, VoidRequest,
    blocking::{Wait, WaitEach},
    model::LabelStatus,
    transport::{ResponseFuture, Transport},
};
use parcelo_server::mock::MockServer;
use parcelo_types::internal::Auth;

use crate::{
    conformance::order_with_key,
    scripted_transport::{key, number},
};

fn builder(server: &MockServer) -> parcelo::ClientBuilder {
    Client::builder(server.key().issue()).base_url(server.url()).unwrap()
}

fn start() -> (MockServer, Client) {
    let server = MockServer::start_blocking();
    let client = builder(&server).build().unwrap();
    (server, client)
}

/// Longer than any test takes.
const HOUR: Duration = Duration::from_secs(3_600);

/// A service that hangs.
#[derive(Debug)]
struct HangingTransport;

impl Transport for HangingTransport {
    fn send(&self, _: http::Request<Bytes>) -> ResponseFuture<'_> {
        Box::pin(std::future::pending())
    }
}

/// Makes every call of the client once.
fn exercise_every_call() {
    let (server, client) = start();
    let client = client.with_timeouts(Timeouts::default().total(HOUR));
    assert_eq!(client.health().wait().unwrap().meta().attempts, 1);
    let health = client.get::<serde_json::Value>("/api/v1/health").wait().unwrap();
    assert_eq!(health["status"], "ok");

    let order = |key| order_with_key(key).with_external_order_id("1001");
    let create = |key| client.orders().create(&order(key)).wait().unwrap();
    let [created, again, other] = ["order-0001", "order-0001", "order-0002"].map(create);
    assert_eq!((created.outcome(), created.meta().attempts), (Outcome::Created, 1));
    assert_eq!((again.outcome(), &again.parcel), (Outcome::Replayed, &created.parcel));
    let [first, second] = [created, other].map(|order| order.into_inner().parcel.tracking_number);
    let both = [first.clone(), second.clone()];

    labels(&client, &both);
    let key = |text| IdempotencyKey::parse(text).unwrap();
    let void = VoidRequest::new(key("void-0001"), [&first]);
    assert_eq!(client.orders().void(&void).wait().unwrap().summary.voided, 1);
    let void = VoidManyRequest::new(&key("void-0002"), [&first]);
    assert_eq!(client.orders().void_many(&void).wait().unwrap().summary.voided, 1);
    let awb = Awb::parse("17612345675").unwrap();
    let manifest = ManifestRequest::new(key("manifest-0001"), awb, [&second]);
    let manifest = client.manifests().submit(&manifest).wait().unwrap();
    let known = client.manifests().get(&manifest.manifest_id).wait().unwrap();
    assert_eq!(known.tracking_numbers, [second]);

    let id = client.orders().get(&first).wait().unwrap().into_inner().external_order_id;
    assert_eq!(id.as_deref(), Some("1001"));
    lists(&client, &both);
    assert_eq!(client.sandbox().reset().wait().unwrap().deleted.parcels, 2);
    let error = client.tracking().get(&first).wait().unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::NotFound, 1));
    for operation in Operation::ALL {
        let is_called = server.requests().of(*operation).count() > 0;
        let is_for_clients = operation.auth() == Auth::ApiKey && !operation.is_legacy();
        assert_eq!(is_called, is_for_clients, "{operation:?}");
    }
}

fn labels(client: &Client, both: &[TrackingNumber; 2]) {
    let (labels, number) = (client.labels(), &both[0]);
    let bytes = labels.download(number, LabelFormat::Pdf).bytes().wait().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("label.pdf");
    let length = labels.download(number, LabelFormat::Pdf).save_to(&path).wait().unwrap();
    assert_eq!((length, std::fs::read(&path).unwrap()), (bytes.len() as u64, bytes.to_vec()));
    let saved = labels.batch(both, LabelFormat::Zpl).save_in(directory.path()).wait().unwrap();
    assert_eq!(std::fs::read_to_string(saved).unwrap().matches("^XA").count(), 2);
    assert!(labels.invoice(number).bytes().wait().unwrap().starts_with(b"%PDF"));

    let mut reader = labels.download(number, LabelFormat::Pdf).stream().wait().unwrap();
    assert_eq!(reader.length(), Some(bytes.len() as u64));
    let mut read = vec![0; 5];
    reader.read_exact(&mut read).unwrap();
    reader.read_to_end(&mut read).unwrap();
    assert_eq!(read, bytes);

    let reprint = ReprintRequest::new(IdempotencyKey::parse("reprint-0001").unwrap());
    assert_eq!(labels.reprint(number, &reprint).wait().unwrap().reprint_count, 1);
    let label = labels.metadata(number).wait().unwrap();
    assert_eq!((label.version, &label.status), (2, &LabelStatus::Active));
    let link = label.label_url.as_ref().unwrap().as_str();
    let linked = labels.download_link(link).bytes().wait().unwrap();
    assert!(linked.starts_with(b"%PDF"));
}

fn lists(client: &Client, both: &[TrackingNumber; 2]) {
    let record = client.tracking().get(&both[0]).history(true).wait().unwrap();
    let last = record.history.as_ref().unwrap().last().unwrap().as_ref().unwrap();
    assert_eq!(last.status, ParcelStatus::Voided);
    let [first, second] = both;
    let results = client.tracking().batch([first, second, &number()]).history(true).wait().unwrap();
    let histories = results.iter().map(|result| Some(result.tracking()?.history.is_some()));
    assert!(histories.eq([Some(true), Some(true), None]));

    let voided = client.parcels().list().status(&ParcelStatus::Voided);
    let page = voided.country(CountryCode::EC).page(1).limit(5).wait().unwrap();
    assert_eq!((page.parcels.len(), page.meta.limit), (1, 5));
    assert_eq!(client.parcels().list().limit(1).stream().wait_each().unwrap().flatten().count(), 2);
    assert_eq!(client.orders().find("1001").wait().unwrap().len(), 2);
}

#[test]
fn every_call_works_in_a_plain_thread() {
    exercise_every_call();
}

#[tokio::test]
async fn every_call_works_inside_a_single_threaded_runtime() {
    exercise_every_call();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_works_inside_a_multi_threaded_runtime() {
    let tasks = [(); 2].map(|()| tokio::spawn(async { exercise_every_call() }));
    tokio::task::spawn_blocking(exercise_every_call).await.unwrap();
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn a_client_may_be_dropped_inside_another_runtime() {
    let (server, client) = thread::spawn(start).join().unwrap();
    assert_eq!(client.health().wait().unwrap().meta().attempts, 1);
    let clone = client.clone();
    drop(client);
    assert_eq!(clone.health().wait().unwrap().meta().attempts, 1);
    tokio::spawn(async move { drop(clone) }).await.unwrap();
    server.requests().assert_count(2);
}

#[test]
fn sixteen_threads_share_a_client() {
    let (_server, client) = start();
    let client = client.with_rate_limit(RateLimit::off());
    let create = |number| {
        client.orders().create(&order_with_key(&format!("order-{number:04}"))).wait().unwrap()
    };
    thread::scope(|scope| {
        for thread in 0..16 {
            scope.spawn(move || (thread * 5..thread * 5 + 5).map(create).for_each(drop));
        }
    });
    assert_eq!(client.parcels().list().stream().wait_each().unwrap().count(), 80);
}

#[test]
fn a_dropped_import_that_is_rerun_creates_each_order_once() {
    let (server, client) = start();
    // An iterator may borrow the data from which it makes orders.
    let rows: Vec<_> = (0..30).map(|number| format!("order-{number:04}")).collect();
    let orders = || rows.iter().map(|row| order_with_key(row));
    let mut creations = client.orders().create_many(orders()).concurrency(4).wait_each().unwrap();
    for _ in 0..3 {
        creations.next().unwrap().1.unwrap();
    }
    drop(creations);
    let created = client.orders().create_many(orders()).wait_each().unwrap();
    let mut indices: Vec<_> =
        created.map(|(index, created)| created.map(|_| index).unwrap()).collect();
    indices.sort_unstable();
    assert_eq!(indices, (0..30).collect::<Vec<_>>());

    let listed = server.requests().of(Operation::ListParcels);
    let mut parcels = client.parcels().list().limit(10).stream().wait_each().unwrap();
    assert!(parcels.next().unwrap().is_ok());
    drop(parcels);
    listed.assert_count(1);
    assert_eq!(client.parcels().list().stream().wait_each().unwrap().count(), 30);
}

#[test]
fn labels_can_be_saved_in_the_loop_that_creates_orders() {
    let (_server, client) = start();
    let folder = tempfile::tempdir().unwrap();
    let order = |index| order_with_key(&format!("order-{index:04}"));
    let creations = client.orders().create_many((0..20).map(order)).concurrency(4);
    for (index, created) in creations.wait_each().unwrap() {
        let number = created.unwrap().into_inner().parcel.tracking_number;
        client.labels().download(&number, LabelFormat::Zpl).save_in(folder.path()).wait().unwrap();
        // Another call within the loop: it sends the same order again, since any of the others may be under way.
        for (_, replayed) in client.orders().create_many([order(index)]).wait_each().unwrap() {
            assert_eq!(replayed.unwrap().outcome(), Outcome::Replayed);
        }
    }
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 20);
    assert_eq!(client.parcels().list().stream().wait_each().unwrap().count(), 20);
}

#[test]
fn a_service_that_hangs_times_out() {
    let short = Duration::from_millis(50);
    let client = |timeouts| {
        let builder = Client::builder(key()).transport(HangingTransport);
        builder.retry(Retry::none()).timeouts(timeouts).build().unwrap()
    };
    let attempt = client(Timeouts::default().total(HOUR).attempt(short));
    let error = attempt.health().wait().unwrap_err();
    assert_eq!((error.kind(), error.may_have_executed()), (ErrorKind::Timeout, false));
    let whole = client(Timeouts::default().total(short).attempt(HOUR));
    let order = order_with_key("order-0001");
    let error = whole.orders().create(&order).wait().unwrap_err();
    assert_eq!((error.kind(), error.may_have_executed()), (ErrorKind::Timeout, true));
}

#[test]
fn a_creation_whose_response_was_lost_is_repeated() {
    let server = MockServer::start_blocking();
    let attempts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&attempts);
    let count = move |_: &parcelo::calls::Attempt| {
        counted.fetch_add(1, Ordering::Relaxed);
    };
    let client = builder(&server).on_attempt(count).build().unwrap();
    client.health().wait().unwrap();
    server.faults().on(Operation::CreateOrder).nth(1).after_commit().reset_connection();
    let created = client.orders().create(&order_with_key("order-0001")).wait().unwrap();
    assert_eq!((created.outcome(), created.meta().attempts), (Outcome::Replayed, 2));
    assert_eq!(client.parcels().list().stream().wait_each().unwrap().count(), 1);
    assert_eq!(attempts.load(Ordering::Relaxed), 4);

    server.faults().on(Operation::CreateOrder).nth(1).after_commit().reset_connection();
    let order = order_with_key("order-0002");
    let error = client.with_retry(Retry::none()).orders().create(&order).wait().unwrap_err();
    assert!(error.may_have_executed());
    assert_eq!(error.idempotency_key(), Some(&order.idempotency_key));
    assert_eq!(client.orders().create(&order).wait().unwrap().outcome(), Outcome::Replayed);
}

#[test]
fn an_interrupted_label_fails_with_the_error_of_the_client() {
    let (server, client) = start();
    let number = client.orders().create(&order_with_key("order-0001")).wait().unwrap();
    let number = &number.parcel.tracking_number;
    let read = |client: &Client| {
        server.faults().on(Operation::DownloadLabel).nth(1).truncated_body();
        let mut label = Vec::new();
        let mut reader =
            client.labels().download(number, LabelFormat::Png).stream().wait().unwrap();
        reader.read_to_end(&mut label).map(|_| label)
    };
    assert!(read(&client).unwrap().starts_with(b"\x89PNG"), "it went on where it was");
    let fault = read(&client.with_retry(Retry::none())).unwrap_err();
    assert_eq!(fault.kind(), io::ErrorKind::Other);
    let error = fault.get_ref().unwrap().downcast_ref::<Error>().unwrap();
    assert_eq!(error.kind(), ErrorKind::Network);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_client_is_awaited_and_waited_for() {
    let (server, client) = start();
    client.health().await.unwrap();
    // Its open connection belongs to this runtime, which another thread runs while this one waits.
    let created = client.orders().create(&order_with_key("order-0001")).wait().unwrap();
    assert_eq!(created.meta().attempts, 1);
    // That of the waiting call belongs to a thread that always runs.
    let again = client.orders().create(&order_with_key("order-0001")).await.unwrap();
    assert_eq!((again.outcome(), again.meta().attempts), (Outcome::Replayed, 1));
    server.assert_exactly_once();
}

#[tokio::test]
async fn a_connection_of_a_runtime_that_is_blocked_costs_an_attempt_and_nothing_else() {
    let (server, client) = start();
    client.health().await.unwrap();
    let timeouts = Timeouts::default().attempt(Duration::from_millis(200));
    let call = client.orders().create(&order_with_key("order-0001")).timeouts(timeouts);
    assert_eq!(call.wait().unwrap().meta().attempts, 2);
    tokio::task::yield_now().await;
    client.health().await.unwrap();
    assert_eq!(client.parcels().list().await.unwrap().meta.total, 1);
    server.assert_exactly_once();
}

#[tokio::test]
async fn a_client_in_memory_needs_no_thread_of_its_server() {
    let server = MockServer::start().await;
    let client = server.in_memory_client(&server.key().issue());
    let order = order_with_key("order-0001");
    assert_eq!(client.orders().create(&order).wait().unwrap().outcome(), Outcome::Created);
    assert_eq!(client.orders().create(&order).await.unwrap().outcome(), Outcome::Replayed);
    assert_eq!(client.parcels().list().stream().wait_each().unwrap().count(), 1);
}

#[test]
fn a_label_can_be_read_and_streamed_in_turn() {
    let (_server, client) = start();
    let created = client.orders().create(&order_with_key("order-0001")).wait().unwrap();
    let number = &created.parcel.tracking_number;
    let label = client.labels().download(number, LabelFormat::Png);
    let whole = label.clone().bytes().wait().unwrap();
    let mut stream = label.stream().wait().unwrap();
    let mut read = vec![0; 3];
    stream.read_exact(&mut read).unwrap();
    for chunk in stream.wait_each().unwrap() {
        read.extend_from_slice(&chunk.unwrap());
    }
    assert_eq!(read, whole);
}

#[test]
fn any_future_with_the_errors_of_the_client_can_be_waited_for() {
    let (_server, client) = start();
    let order = order_with_key("order-0001");
    let shipped = async {
        client.orders().create(&order).await?;
        client.parcels().list().await
    };
    assert_eq!(shipped.wait().unwrap().meta.total, 1);
}
