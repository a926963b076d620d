//! The blocking client: the same calls as the asynchronous one, from any thread, also inside a runtime.

use std::{
    io::{self, Read},
    sync::{
        Arc, LazyLock,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use bytes::Bytes;
use parcelo::{
    Awb, CountryCode, Error, ErrorKind, IdempotencyKey, LabelFormat, ManifestRequest, Operation,
    Outcome, ParcelStatus, RateLimit, ReprintRequest, Retry, Timeouts, TrackingNumber,
    VoidManyRequest, VoidRequest,
    blocking::{self, Client},
    model::LabelStatus,
    transport::{ResponseFuture, Transport},
};
use parcelo_server::mock::MockServer;
use parcelo_types::internal::Auth;
use tokio::runtime::Runtime;

use crate::{
    conformance::order_with_key,
    scripted_transport::{key, number},
};

/// Starts a server on separate threads, so that a blocked caller does not block it.
fn server() -> MockServer {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
    let (sender, start) = mpsc::channel();
    RUNTIME.spawn(async move { sender.send(MockServer::start().await) });
    start.recv().unwrap()
}

fn builder(server: &MockServer) -> parcelo::ClientBuilder {
    parcelo::Client::builder(server.key().issue()).base_url(server.url()).unwrap()
}

fn start() -> (MockServer, Client) {
    let server = server();
    let client = builder(&server).build_blocking().unwrap();
    (server, client)
}

/// Longer than any test takes.
const HOUR: Duration = Duration::from_secs(3_600);

/// A service that hangs. Once it has a request, the clock of the waiting client advances to the moment that the client
/// waits for, independently of the machine's clock.
#[derive(Debug)]
struct HangingTransport;

impl Transport for HangingTransport {
    fn send(&self, _: http::Request<Bytes>) -> ResponseFuture<'_> {
        tokio::time::pause();
        // The client's thread reads the time when it has something to do.
        drop(tokio::spawn(async {}));
        Box::pin(std::future::pending())
    }
}

/// Makes every call of the client once.
fn exercise_every_call() {
    let (server, client) = start();
    let client = client.with_timeouts(Timeouts::default().total(HOUR));
    assert_eq!(client.health().unwrap().meta().attempts, 1);
    let health = client.get::<serde_json::Value>("/api/v1/health").unwrap();
    assert_eq!(health["status"], "ok");

    let order = |key| order_with_key(key).with_external_order_id("1001");
    let create = |key| client.orders().create(&order(key)).unwrap();
    let [created, again, other] = ["order-0001", "order-0001", "order-0002"].map(create);
    assert_eq!((created.outcome(), created.meta().attempts), (Outcome::Created, 1));
    assert_eq!((again.outcome(), &again.parcel), (Outcome::Replayed, &created.parcel));
    let [first, second] = [created, other].map(|order| order.into_inner().parcel.tracking_number);
    let both = [first.clone(), second.clone()];

    labels(&client, &both);
    let key = |text| IdempotencyKey::parse(text).unwrap();
    let void = VoidRequest::new(key("void-0001"), [&first]);
    assert_eq!(client.orders().void(&void).unwrap().summary.voided, 1);
    let void = VoidManyRequest::new(&key("void-0002"), [&first]);
    assert_eq!(client.orders().void_many(&void).unwrap().summary.voided, 1);
    let awb = Awb::parse("17612345675").unwrap();
    let manifest = ManifestRequest::new(key("manifest-0001"), awb, [&second]);
    let manifest = client.manifests().submit(&manifest).unwrap();
    let known = client.manifests().get(&manifest.manifest_id).unwrap();
    assert_eq!(known.tracking_numbers, [second]);

    lists(&client, &both);
    assert_eq!(client.sandbox().reset().unwrap().deleted.parcels, 2);
    let error = client.tracking().get(&first).send().unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::NotFound, 1));
    for operation in Operation::ALL {
        let is_called = server.requests().of(*operation).count() > 0;
        let is_for_clients = operation.auth() == Auth::ApiKey && !operation.is_legacy();
        assert_eq!(is_called, is_for_clients, "{operation:?}");
    }
}

fn labels(client: &Client, both: &[TrackingNumber; 2]) {
    let (labels, number) = (client.labels(), &both[0]);
    let bytes = labels.download(number, LabelFormat::Pdf).bytes().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("label.pdf");
    let length = labels.download(number, LabelFormat::Pdf).save_to(&path).unwrap();
    assert_eq!((length, std::fs::read(&path).unwrap()), (bytes.len() as u64, bytes.to_vec()));
    let saved = labels.batch(both, LabelFormat::Zpl).save_in(directory.path()).unwrap();
    assert_eq!(std::fs::read_to_string(saved).unwrap().matches("^XA").count(), 2);
    assert!(labels.invoice(number).bytes().unwrap().starts_with(b"%PDF"));

    let mut reader = labels.download(number, LabelFormat::Pdf).reader().unwrap();
    assert_eq!(reader.length(), Some(bytes.len() as u64));
    let mut read = vec![0; 5];
    reader.read_exact(&mut read).unwrap();
    reader.read_to_end(&mut read).unwrap();
    assert_eq!(read, bytes);

    let reprint = ReprintRequest::new(IdempotencyKey::parse("reprint-0001").unwrap());
    assert_eq!(labels.reprint(number, &reprint).unwrap().reprint_count, 1);
    let label = labels.metadata(number).unwrap();
    assert_eq!((label.version, &label.status), (2, &LabelStatus::Active));
    let linked =
        labels.download_link(label.label_url.as_ref().unwrap().as_str()).unwrap().bytes().unwrap();
    assert!(linked.starts_with(b"%PDF"));
}

fn lists(client: &Client, both: &[TrackingNumber; 2]) {
    let record = client.tracking().get(&both[0]).history(true).send().unwrap();
    let last = record.history.as_ref().unwrap().last().unwrap().as_ref().unwrap();
    assert_eq!(last.status, ParcelStatus::Voided);
    let [first, second] = both;
    let results = client.tracking().batch([first, second, &number()]).history(true).send().unwrap();
    let histories = results.iter().map(|result| Some(result.tracking()?.history.is_some()));
    assert!(histories.eq([Some(true), Some(true), None]));

    let voided = client.parcels().list().status(&ParcelStatus::Voided);
    let page = voided.country(CountryCode::EC).page(1).limit(5).send().unwrap();
    assert_eq!((page.parcels.len(), page.meta.limit), (1, 5));
    assert_eq!(client.parcels().list().limit(1).iter().flatten().count(), 2);
    assert_eq!(client.orders().find("1001").unwrap().len(), 2);
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
    assert_eq!(client.health().unwrap().meta().attempts, 1);
    let clone = client.clone();
    drop(client);
    assert_eq!(clone.health().unwrap().meta().attempts, 1, "the thread is the last clone's");
    tokio::spawn(async move { drop(clone) }).await.unwrap();
    server.requests().assert_count(2);
}

#[test]
fn sixteen_threads_share_a_client() {
    let (_server, client) = start();
    let client = client.with_rate_limit(RateLimit::off());
    let create =
        |number| client.orders().create(&order_with_key(&format!("order-{number:04}"))).unwrap();
    thread::scope(|scope| {
        for thread in 0..16 {
            scope.spawn(move || (thread * 5..thread * 5 + 5).map(create).for_each(drop));
        }
    });
    assert_eq!(client.parcels().list().iter().count(), 80);
}

#[test]
fn a_dropped_import_that_is_rerun_creates_each_order_once() {
    let (server, client) = start();
    // An iterator may borrow the data from which it makes orders.
    let rows: Vec<_> = (0..30).map(|number| format!("order-{number:04}")).collect();
    let orders = || rows.iter().map(|row| order_with_key(row));
    let mut creations = client.orders().create_many(orders()).concurrency(4);
    for _ in 0..3 {
        creations.next().unwrap().1.unwrap();
    }
    drop(creations);
    let created = client.orders().create_many(orders());
    let mut indices: Vec<_> =
        created.map(|(index, created)| created.map(|_| index).unwrap()).collect();
    indices.sort_unstable();
    assert_eq!(indices, (0..30).collect::<Vec<_>>());

    let listed = server.requests().of(Operation::ListParcels);
    let mut parcels = client.parcels().list().limit(10).iter();
    assert!(parcels.next().unwrap().is_ok());
    drop(parcels);
    listed.assert_count(1);
    assert_eq!(client.parcels().list().iter().count(), 30);
}

#[test]
fn labels_can_be_saved_in_the_loop_that_creates_orders() {
    let (_server, client) = start();
    let folder = tempfile::tempdir().unwrap();
    let order = |index| order_with_key(&format!("order-{index:04}"));
    for (index, created) in client.orders().create_many((0..20).map(order)).concurrency(4) {
        let number = created.unwrap().into_inner().parcel.tracking_number;
        client.labels().download(&number, LabelFormat::Zpl).save_in(folder.path()).unwrap();
        // Another call within the loop: it sends the same order again, since any of the others may be under way.
        for (_, replayed) in client.orders().create_many([order(index)]) {
            assert_eq!(replayed.unwrap().outcome(), Outcome::Replayed);
        }
    }
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 20);
    assert_eq!(client.parcels().list().iter().count(), 20);
}

#[test]
fn a_service_that_hangs_times_out() {
    let client = || {
        let builder = parcelo::Client::builder(key()).transport(HangingTransport);
        builder.retry(Retry::none()).timeouts(Timeouts::default().total(HOUR).attempt(HOUR / 2))
    };
    let error = client().build_blocking().unwrap().health().unwrap_err();
    assert_eq!((error.kind(), error.may_have_executed()), (ErrorKind::Timeout, false));
    let whole = client().timeouts(Timeouts::default().total(HOUR / 2).attempt(HOUR));
    let order = order_with_key("order-0001");
    let error = whole.build_blocking().unwrap().orders().create(&order).unwrap_err();
    assert_eq!((error.kind(), error.may_have_executed()), (ErrorKind::Timeout, true));
}

#[test]
fn a_creation_whose_response_was_lost_is_repeated() {
    let server = server();
    let attempts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&attempts);
    let count = move |_: &parcelo::calls::Attempt| {
        counted.fetch_add(1, Ordering::Relaxed);
    };
    let client = builder(&server).on_attempt(count).build_blocking().unwrap();
    client.health().unwrap();
    server.faults().on(Operation::CreateOrder).nth(1).after_commit().reset_connection();
    let created = client.orders().create(&order_with_key("order-0001")).unwrap();
    assert_eq!((created.outcome(), created.meta().attempts), (Outcome::Replayed, 2));
    assert_eq!(client.parcels().list().iter().count(), 1);
    assert_eq!(attempts.load(Ordering::Relaxed), 4);

    server.faults().on(Operation::CreateOrder).nth(1).after_commit().reset_connection();
    let order = order_with_key("order-0002");
    let error = client.with_retry(Retry::none()).orders().create(&order).unwrap_err();
    assert!(error.may_have_executed());
    assert_eq!(error.idempotency_key(), Some(&order.idempotency_key));
    assert_eq!(client.orders().create(&order).unwrap().outcome(), Outcome::Replayed);
}

#[test]
fn an_interrupted_label_fails_with_the_error_of_the_client() {
    let (server, client) = start();
    let number = client.orders().create(&order_with_key("order-0001")).unwrap();
    let number = &number.parcel.tracking_number;
    let read = |client: &Client| {
        server.faults().on(Operation::DownloadLabel).nth(1).truncated_body();
        let mut label = Vec::new();
        let mut reader = client.labels().download(number, LabelFormat::Png).reader().unwrap();
        reader.read_to_end(&mut label).map(|_| label)
    };
    assert!(read(&client).unwrap().starts_with(b"\x89PNG"), "it went on where it was");
    let fault = read(&client.with_retry(Retry::none())).unwrap_err();
    assert_eq!(fault.kind(), io::ErrorKind::Other);
    let error = fault.get_ref().unwrap().downcast_ref::<Error>().unwrap();
    assert_eq!(error.kind(), ErrorKind::Network);
}

#[test]
fn the_client_is_send_and_sync() {
    fn shared<T: Clone + Send + Sync + 'static>() {}
    shared::<Client>();
    let shown = format!("{:?}", start().1.clone());
    assert!(shown.starts_with("Client { base_url: \"http://127.0.0.1:"), "{shown}");
    let _: fn() -> Result<blocking::Client, Error> = Client::from_env;
}
