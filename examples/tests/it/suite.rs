//! The test in docs/start/suite.md, as it is written there.

use std::time::Duration;

use parcelo::ParcelStatus;
use parcelo_server::mock::MockServer;

#[tokio::test]
async fn a_parcel_is_delivered() {
    let server = MockServer::start().await;
    let client = server.client(&server.key().issue());
    let created = client.orders().create(&MockServer::order("SB-SUCCESS-0001")).await.unwrap();
    server.clock().advance(Duration::from_secs(25 * 60)).await;
    let tracking = client.tracking().get(&created.parcel.tracking_number).await.unwrap();
    assert_eq!(tracking.status, ParcelStatus::Delivered);
}
