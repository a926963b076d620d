//! Calls before they are sent: they can be stored, moved to another task, copied, and given options.

use std::{collections::BTreeSet, time::Duration};

use futures_util::{FutureExt, Stream, future::BoxFuture};
use parcelo::{
    Awb, ErrorKind, IdempotencyKey, LabelFormat, ManifestRequest, Operation, ReprintRequest, Retry,
    Timeouts, VoidManyRequest, VoidRequest,
    calls::{LabelStream, Orders},
    model::ManifestId,
};
use parcelo_types::internal::Auth;

use crate::{
    retries::now,
    scripted_transport::{ScriptedTransport, Step, number, order, response},
};

/// Accepts a call only if it, and its future, can be moved to another task and outlive what it was made of.
fn boxed<C>(call: C) -> BoxFuture<'static, ()>
where
    C: IntoFuture<IntoFuture: Send> + Clone + Send + Sync + 'static,
{
    // A copy is as good.
    let copy = call.clone();
    drop(call);
    async move { drop(copy.await) }.boxed()
}

/// Accepts a handle or a stream only if it can be moved to another task.
fn can_be_moved<T: Send + 'static>(_: T) {}

/// Returns every call of the client.
fn every_call(client: &parcelo::Client) -> Vec<BoxFuture<'static, ()>> {
    let (order, number, key) = (order(), number(), IdempotencyKey::random());
    let (orders, labels, manifests) = (client.orders(), client.labels(), client.manifests());
    let download = || labels.download(&number, LabelFormat::Pdf);
    let directory = std::env::temp_dir();
    let awb = Awb::parse("17612345675").unwrap();
    vec![
        boxed(client.health()),
        boxed(client.get::<serde_json::Value>("/api/v1/health")),
        boxed(client.raw("GET", "/api/v1/health", None)),
        boxed(orders.create(&order)),
        boxed(orders.find("1001")),
        boxed(orders.void(&VoidRequest::new(key.clone(), [&number]))),
        boxed(orders.void_many(&VoidManyRequest::new(&key, [&number]))),
        boxed(client.tracking().get(&number).history(true)),
        boxed(client.tracking().batch([&number]).history(true)),
        boxed(client.parcels().list().limit(1)),
        boxed(download().bytes()),
        boxed(download().stream()),
        boxed(download().save_to(directory.join("never-saved.pdf"))),
        boxed(download().save_in(&directory)),
        boxed(labels.download_link("http://localhost/files/a.pdf").bytes()),
        boxed(labels.batch([&number], LabelFormat::Pdf).bytes()),
        boxed(labels.invoice(&number).bytes()),
        boxed(labels.metadata(&number)),
        boxed(labels.reprint(&number, &ReprintRequest::new(key.clone()))),
        boxed(manifests.submit(&ManifestRequest::new(key, awb, [&number]))),
        boxed(manifests.get(&ManifestId::parse("man_1").unwrap())),
        boxed(client.sandbox().reset()),
    ]
}

#[tokio::test(start_paused = true)]
async fn every_call_can_be_sent_by_another_task() {
    let (client, script) = ScriptedTransport::client([response(404, "")]);
    for call in every_call(&client) {
        tokio::spawn(call).await.unwrap();
    }
    let sent = script.sent_requests();
    let is_sent = |operation: &Operation| {
        let path = operation.path().split('{').next().unwrap();
        sent.iter().any(|request| request.uri().path().starts_with(path))
    };
    let of_clients = Operation::ALL
        .iter()
        .filter(|operation| operation.auth() == Auth::ApiKey && !operation.is_legacy());
    let missing: BTreeSet<_> =
        of_clients.filter(|operation| !is_sent(operation)).map(|one| one.name()).collect();
    assert!(missing.is_empty(), "no call of {missing:?}");
}

#[tokio::test(start_paused = true)]
async fn handles_and_streams_can_be_moved_to_another_task() {
    fn is_stream<S: Stream + Send + 'static>() {}

    let (client, _) = ScriptedTransport::client([Step::Hang]);
    can_be_moved(client.orders());
    can_be_moved(client.tracking());
    can_be_moved(client.labels());
    can_be_moved(client.manifests());
    can_be_moved(client.parcels());
    can_be_moved(client.sandbox());
    can_be_moved(client.orders().create_many([order()]));
    can_be_moved(client.parcels().list().stream());
    is_stream::<LabelStream>();
    // A handle needs no client that outlives it.
    let orders: Orders = ScriptedTransport::client([response(404, "")]).0.orders();
    assert_eq!(orders.find("1001").await.unwrap_err().status(), Some(404));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_stored_takes_settings_of_its_own() {
    let (client, script) = ScriptedTransport::client([Step::Hang]);
    let seconds = Duration::from_secs;
    let stored = client.orders().create(&order());
    assert!(script.sent_requests().is_empty(), "nothing is sent before it is awaited");

    let short = Timeouts::default().total(seconds(3)).attempt(seconds(2));
    let start = now();
    let error = stored.clone().timeouts(short.clone()).retry(Retry::none()).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Timeout, 1));
    assert_eq!(start.elapsed(), seconds(2));

    let start = now();
    stored.await.unwrap_err();
    assert!(start.elapsed() > seconds(15), "a clone keeps the client's settings");
    let start = now();
    let settings = |total| Timeouts::default().total(seconds(total));
    client.tracking().get(&number()).timeouts(settings(1)).await.unwrap_err();
    client.tracking().batch([&number()]).timeouts(settings(2)).await.unwrap_err();
    client.parcels().list().timeouts(settings(3)).await.unwrap_err();
    let label = client.labels().download(&number(), LabelFormat::Pdf);
    label.timeouts(settings(4)).bytes().await.unwrap_err();
    let mut many = client.orders().create_many([order()]).timeouts(settings(5));
    many.next().await.unwrap().1.unwrap_err();
    client.orders().find("1001").timeouts(settings(6)).await.unwrap_err();
    assert_eq!(start.elapsed(), seconds(21));
}

#[tokio::test(start_paused = true)]
async fn a_clone_of_a_call_sends_the_same_request() {
    let (client, script) = ScriptedTransport::client([response(500, "")]);
    let mut order = order();
    let call = client.orders().create(&order).retry(Retry::none());
    // A change after the call was made is another order.
    order.external_order_id = Some("another".to_owned());
    call.clone().await.unwrap_err();
    call.await.unwrap_err();
    let [first, second] = &script.sent_requests()[..] else { panic!() };
    assert_eq!((first.uri(), first.body()), (second.uri(), second.body()));
    assert!(!String::from_utf8_lossy(first.body()).contains("another"));
    assert!(order.idempotency_key.may_have_executed(), "the call has the order's key");
}

#[test]
fn a_call_does_not_show_what_it_sends() {
    let (client, _) = ScriptedTransport::client([Step::Hang]);
    let shown = format!(
        "{:?} {:?} {:?}",
        client.orders().create(&order()),
        client.tracking().get(&number()),
        client.labels().download(&number(), LabelFormat::Pdf).bytes(),
    );
    assert!(shown.contains("POST /api/v1/orders/create"), "{shown}");
    assert!(!shown.contains("CANARY") && !shown.contains("SB-SUCCESS"), "{shown}");
}
