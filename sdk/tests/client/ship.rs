//! `ship` sends nothing that the journal has not saved, ships an order once, and says what became of it.

use std::{
    collections::HashMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parcelo::{
    ApiKey, Client, ErrorKind, IdempotencyKey, NextStep,
    chrono::Utc,
    journal::{Entry, Journal, JournalError, JournalFile},
    testing::{CallEnd, Execution, FaultyService},
    transport::Phase,
};
use tokio::time::Instant;

use crate::{
    next_step::{counts, order_with_external_id},
    scripted_transport::{CREATED, ScriptedTransport, Step, order, refusal, response},
    write_outcomes::ResponseKind,
};

/// A journal that lasts as long as its process, and fails on demand.
#[derive(Debug, Default)]
pub(crate) struct InMemory {
    entries: Mutex<HashMap<String, Entry>>,
    /// The number of writes that succeed, before all others fail; 0 for no limit.
    writes_left: AtomicUsize,
    fails: bool,
}

impl InMemory {
    /// Returns a journal whose writes fail after the first `count`.
    fn failing_after(count: usize) -> Self {
        Self { writes_left: AtomicUsize::new(count), fails: true, ..Self::default() }
    }

    fn write(&self) -> Result<(), JournalError> {
        let has_left = |left: usize| left.checked_sub(1);
        let update = self.writes_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, has_left);
        if self.fails { update.map(|_| ()).map_err(|_| "no space".into()) } else { Ok(()) }
    }

    fn entry(&self) -> Option<Entry> {
        self.entries.lock().unwrap().get("1001").cloned()
    }
}

impl Journal for InMemory {
    async fn insert(&self, entry: &Entry) -> Result<Option<Entry>, JournalError> {
        let known = self.entries.lock().unwrap().get(entry.order_id()).cloned();
        if known.is_none() {
            self.update(entry).await?;
        }
        Ok(known)
    }

    async fn update(&self, entry: &Entry) -> Result<(), JournalError> {
        self.write()?;
        self.entries.lock().unwrap().insert(entry.order_id().to_owned(), entry.clone());
        Ok(())
    }

    async fn open(&self) -> Result<Vec<Entry>, JournalError> {
        let entries = self.entries.lock().unwrap();
        Ok(entries.values().filter(|entry| entry.is_open()).cloned().collect())
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_without_an_id_is_refused_before_anything_is_saved() {
    for order in [order(), order().with_external_order_id(" ")] {
        let (client, script) = ScriptedTransport::client([response(201, CREATED)]);
        let journal = InMemory::default();
        let error = client.orders().ship(&order, &journal).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "An order needs an external order id to be shipped with a journal; nothing was sent."
        );
        assert_eq!((error.kind(), error.next_step()), (ErrorKind::Validation, NextStep::Correct));
        assert!(!error.order_stays_open() && script.sent_requests().is_empty());
        assert!(journal.entries.lock().unwrap().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_that_cannot_be_saved_is_not_sent() {
    let (client, script) = ScriptedTransport::client([response(201, CREATED)]);
    let journal = InMemory::failing_after(0);
    let error = client.orders().ship(&order_with_external_id(), &journal).await.unwrap_err();
    assert_eq!(error.to_string(), "The journal could not save the order; nothing was sent.");
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "no space");
    assert_eq!((error.kind(), error.next_step()), (ErrorKind::Journal, NextStep::Configure));
    assert!(script.sent_requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_order_whose_number_cannot_be_saved_is_shipped_once() {
    let service = FaultyService::new([]);
    let client = service.client();
    let mut journal = InMemory::failing_after(1);
    let error = client.orders().ship(&order_with_external_id(), &journal).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "The order was shipped, but the journal could not record it. The request may have been \
         executed. The order stays open in the journal."
    );
    assert!(error.order_stays_open() && matches!(error.next_step(), NextStep::Resend { .. }));
    journal.fails = false;
    let resumed = client.orders().resume(&journal).await.unwrap();
    assert!(matches!(&*resumed, [(id, Ok(_))] if id == "1001"), "{resumed:?}");
    assert_eq!(counts(&service), (1, 2));
    assert!(client.orders().resume(&journal).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_order_that_the_journal_has_as_shipped_is_not_sent() {
    let service = FaultyService::new([]);
    let client = service.client();
    let journal = InMemory::default();
    let number =
        async |order| client.orders().ship(&order, &journal).await.unwrap().tracking_number;
    let first = number(order_with_external_id()).await;
    let entry = journal.entry().unwrap();
    assert_eq!((entry.tracking_number(), entry.is_open()), (Some(&first), false));
    let json = serde_json::to_string(&entry).unwrap();
    assert_eq!(json, r#"{"orderId":"1001","state":{"shipped":"SB-SUCCESS-0000"}}"#);
    // The program has made the order again.
    let again = order_with_external_id().with_idempotency_key(IdempotencyKey::random());
    assert_eq!(number(again.clone()).await, first);
    assert_eq!(number(again.with_external_order_id(" 1001 ")).await, first);
    assert_eq!(counts(&service), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn an_order_shipped_twice_at_once_has_one_parcel() {
    let service = FaultyService::new([]);
    let client = service.client();
    let journal = InMemory::default();
    let orders =
        [1, 2].map(|_| order_with_external_id().with_idempotency_key(IdempotencyKey::random()));
    let [one, other] = orders.each_ref().map(|order| client.orders().ship(order, &journal));
    let (one, other) = tokio::join!(one, other);
    assert_eq!(one.unwrap().tracking_number, other.unwrap().tracking_number);
    assert_eq!(service.parcels(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_refused_order_can_be_corrected_and_shipped() {
    let faulty = response(400, ResponseKind::Fault("receiver.phone").body());
    let service = FaultyService::new([CallEnd::new(faulty, Execution::Never)]);
    let client = service.client();
    let journal = InMemory::default();
    let error = client.orders().ship(&order_with_external_id(), &journal).await.unwrap_err();
    assert!(!error.order_stays_open() && !journal.entry().unwrap().is_open(), "{error}");
    assert!(client.orders().resume(&journal).await.unwrap().is_empty());
    let mut corrected = order_with_external_id();
    corrected.receiver.phone = "+593991234568".to_owned();
    client.orders().ship(&corrected, &journal).await.unwrap();
    assert_eq!(counts(&service), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_wrong_api_key_leaves_the_order_open() {
    let refused = response(401, refusal("AUTH_INVALID_API_KEY"));
    let (client, script) = ScriptedTransport::client([refused]);
    let journal = InMemory::default();
    let error = client.orders().ship(&order_with_external_id(), &journal).await.unwrap_err();
    assert!(error.order_stays_open() && journal.entry().unwrap().is_open());
    assert_eq!(error.next_step(), NextStep::Configure);
    assert!(error.to_string().contains("The order stays open in the journal."), "{error}");
    assert_eq!(script.sent_requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_shipment_ends_with_the_total_time_of_a_call() {
    for failure in [Step::Hang, Step::Fail(Phase::MaybeSent), response(503, "")] {
        let (client, _) = ScriptedTransport::client([failure.clone()]);
        let (journal, began) = (InMemory::default(), now());
        let error = client.orders().ship(&order_with_external_id(), &journal).await.unwrap_err();
        let took = began.elapsed().as_secs();
        assert!((50..=61).contains(&took), "{took} s: {failure:?}");
        assert!(error.order_stays_open() && error.may_have_executed(), "{error}");
    }
}

#[expect(clippy::disallowed_methods, reason = "the paused clock of a test")]
fn now() -> Instant {
    Instant::now()
}

/// Returns a client of the same service with another API key, at this time.
#[expect(clippy::disallowed_methods, reason = "a wall clock that is set forward")]
fn with_other_api_key(service: &FaultyService, minutes: u64) -> Client {
    let key = ApiKey::parse("pk_test_other").unwrap();
    let now = move || Utc::now() + Duration::from_secs(60 * minutes);
    Client::builder(key).transport(service.clone()).wall_clock(now).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn with_another_api_key_an_order_is_sent_only_when_no_attempt_is_under_way() {
    let lost = CallEnd::new(Step::Fail(Phase::MaybeSent), Execution::Never);
    let service = FaultyService::new(std::iter::repeat(lost));
    let client = service.client();
    let journal = InMemory::default();
    client.orders().ship(&order_with_external_id(), &journal).await.unwrap_err();
    let creations = service.creations();
    let ship = async |minutes| {
        let client = with_other_api_key(&service, minutes);
        client.orders().ship(&order_with_external_id(), &journal).await
    };
    let error = ship(5).await.unwrap_err();
    let after = error.retry_after().unwrap().as_secs();
    assert!((5 * 60..=6 * 60).contains(&after), "{after} s");
    assert_eq!((error.kind(), service.creations()), (ErrorKind::Conflict, creations));
    assert!(error.order_stays_open() && error.may_have_executed(), "{error}");
    service.repair();
    ship(12).await.unwrap();
    assert_eq!(counts(&service), (1, creations + 1));
}

#[tokio::test]
async fn a_journal_file_survives_restarts_and_torn_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders.journal");
    let service = FaultyService::new([]);
    let client = service.client();
    let ship = async |id: &str, journal: &JournalFile| {
        let key = IdempotencyKey::random();
        let order = order_with_external_id().with_external_order_id(id).with_idempotency_key(key);
        client.orders().ship(&order, journal).await.unwrap().tracking_number
    };
    let journal = JournalFile::open(&path).unwrap();
    let first = ship("1", &journal).await;
    let busy = JournalFile::open(&path).unwrap_err();
    assert_eq!(busy.kind(), std::io::ErrorKind::ResourceBusy);
    drop(journal);

    let whole = std::fs::read(&path).unwrap();
    for torn in [&b"{\"orderId\":\"2\",\"sta"[..], b"{\"orderId\"\0\0\0\0\n", b"\0\0\0"] {
        std::fs::write(&path, [&whole, torn].concat()).unwrap();
        let journal = JournalFile::open(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), whole, "the torn line is gone");
        assert_eq!(ship("1", &journal).await, first);
        assert!(journal.open().await.unwrap().is_empty());
    }
    for damaged in [&b"{}\n{\"orderId\":\"2\",\"sta"[..], b"{\"orderId\":\"2\"}\n"] {
        std::fs::write(&path, [&whole, damaged].concat()).unwrap();
        let error = JournalFile::open(&path).unwrap_err();
        assert_eq!(error.to_string(), "line 3 of the journal is damaged");
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
    }
}

#[tokio::test]
async fn a_journal_file_is_compacted_when_it_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders.journal");
    let lines = || std::fs::read_to_string(&path).unwrap().lines().count();
    let service = FaultyService::new([]);
    let client = service.client();
    let ship_all = async || {
        let journal = JournalFile::open(&path).unwrap();
        for id in 0..40 {
            let key = IdempotencyKey::derive("compaction", &id.to_string());
            let order = order_with_external_id().with_external_order_id(id.to_string());
            client.orders().ship(&order.with_idempotency_key(key), &journal).await.unwrap();
        }
    };
    ship_all().await;
    assert_eq!((lines(), service.parcels()), (80, 40));
    ship_all().await;
    assert_eq!((lines(), service.parcels()), (40, 40));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "only the owner reads names and addresses");
    }
}
