//! A mock server that is production: live keys, no journeys, and events that only a carrier reports.

use std::time::Duration;

use parcelo::{
    Environment, ErrorKind,
    ParcelStatus::{Delivered, InTransit},
};
use parcelo_server::mock::MockServer;

#[tokio::test]
async fn production_has_live_keys_that_are_rotated_and_no_others() {
    let server = MockServer::builder().production().start().await;
    let key = server.key().issue();
    assert_eq!(key.environment(), Environment::Production);
    server.client(&key).health().await.unwrap();
    let rotated = server.rotate_key(&key, Duration::ZERO);
    server.client(&rotated).health().await.unwrap();
    let sandbox = MockServer::start().await;
    let error = server.client(&sandbox.key().issue()).health().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Authentication);
}

#[tokio::test]
async fn a_parcel_in_production_moves_when_a_carrier_reports_it() {
    let server = MockServer::builder().production().start().await;
    let inbox = server.webhook_inbox().start().await;
    let client = server.client(&server.key().issue());
    let mut order = MockServer::order("SB-SUCCESS-0001");
    assert!(client.orders().create(&order).await.is_err(), "the number is the sandbox's");
    order.tracking_number = None;
    let created = client.orders().create(&order).await.unwrap();
    let number = &created.parcel.tracking_number;
    assert_eq!(server.clock().advance(Duration::from_secs(24 * 3600)).await, []);
    let error = server.clock().advance_until(number, Delivered).await.unwrap_err();
    assert!(error.to_string().contains("production has no simulated journeys"), "{error}");
    assert_eq!(server.put_status(number, Delivered).await.unwrap(), [InTransit, Delivered]);
    inbox.wait_for(|change| change.new_status == Delivered).await.unwrap();
    assert_eq!(client.tracking().get(number).await.unwrap().status, Delivered);
}
