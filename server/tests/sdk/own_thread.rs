//! A server on a thread of its own: runtimes that end before it share it, and calls that are waited for do not block it.

use std::time::Duration;

use parcelo::{ApiKey, Outcome, ParcelStatus, blocking::Wait, model::EventData};
use parcelo_server::mock::{Inbox, MockServer};

/// More than the simulated journey `SB-SUCCESS-` takes.
const JOURNEY: Duration = Duration::from_secs(25 * 60);

/// Runs a test in a runtime that ends with it, as `#[tokio::test]` does.
fn in_new_runtime<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
}

/// Creates an order, and waits for its webhook without moving the clock.
async fn create_and_receive(server: &MockServer, key: &ApiKey, inbox: &Inbox, number: &str) {
    server.client(key).orders().create(&MockServer::order(number)).await.unwrap();
    let is_its_event = |data: &EventData| match data {
        EventData::ParcelCreated(parcel) => parcel.tracking_number.as_str() == number,
        _ => false,
    };
    inbox.wait_for_event(|event| is_its_event(&event.data)).await.unwrap();
}

#[test]
fn a_server_serves_and_sends_webhooks_after_the_runtime_that_used_it_first() {
    let server = MockServer::start_blocking();
    let key = server.key().issue();
    let inbox = in_new_runtime(async {
        let inbox = server.webhook_inbox().events(["parcel.created"]).start().await;
        create_and_receive(&server, &key, &inbox, "SB-SUCCESS-0001").await;
        inbox
    });
    in_new_runtime(async {
        create_and_receive(&server, &key, &inbox, "SB-SUCCESS-0002").await;
        server.clock().advance(JOURNEY).await;
        let delivered = inbox.events().into_iter().filter(|event| match &event.data {
            EventData::StatusChanged(change) => change.new_status == ParcelStatus::Delivered,
            _ => false,
        });
        assert_eq!(delivered.count(), 2, "both had arrived when the clock was moved");
        let inbox = server.webhook_inbox().events(["parcel.created"]).start().await;
        create_and_receive(&server, &key, &inbox, "SB-SUCCESS-0003").await;
    });
}

#[tokio::test]
async fn a_call_that_is_waited_for_does_not_block_its_server() {
    let server = MockServer::start_blocking();
    let client = server.client(&server.key().issue());
    let order = MockServer::order("SB-SUCCESS-0001");
    assert_eq!(client.orders().create(&order).wait().unwrap().outcome(), Outcome::Created);
    server.clock().advance(JOURNEY).await;
    let record = client.tracking().get(&order.tracking_number.unwrap()).wait().unwrap();
    assert_eq!(record.status, ParcelStatus::Delivered);
}

#[test]
fn a_test_without_a_runtime_receives_webhooks_and_moves_the_clock() {
    let server = MockServer::start_blocking();
    let inbox = server.block_on(server.webhook_inbox().start());
    let client = server.client(&server.key().issue());
    client.orders().create(&MockServer::order("SB-SUCCESS-0001")).wait().unwrap();
    server.block_on(server.clock().advance(JOURNEY));
    let delivered = inbox.wait_for(|change| change.new_status == ParcelStatus::Delivered);
    server.block_on(delivered).unwrap();
    // The SDK's own calls too: the connection belongs to the server's thread.
    assert_eq!(server.block_on(client.parcels().list()).unwrap().meta.total, 1);
}
