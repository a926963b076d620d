//! Finding the parcels of an order by its id in the caller's system, also after the idempotency key has expired.

use std::time::Duration;

use parcelo::{Client, ErrorKind, IdempotencyKey, OrderRequest, ParcelStatus, VoidRequest};
use parcelo_server::mock::MockServer;

/// Returns an order with the caller's id; the service chooses the tracking number.
fn order(id: &str, key: &str) -> OrderRequest {
    let mut order = MockServer::order("SB-SUCCESS-0001");
    order.idempotency_key = IdempotencyKey::parse(key).unwrap();
    (order.external_order_id, order.tracking_number) = (Some(id.to_owned()), None);
    order
}

async fn found(client: &Client, id: &str) -> Vec<String> {
    let parcels = client.orders().find(id).await.unwrap();
    parcels.into_iter().map(|parcel| parcel.tracking_number.to_string()).collect()
}

async fn make(client: &Client, order: &OrderRequest) -> String {
    client.orders().create(order).await.unwrap().parcel.tracking_number.to_string()
}

#[tokio::test]
async fn an_order_s_parcels_are_found_newest_first() {
    let server = MockServer::start().await;
    let client = server.client(&server.key().issue());
    let first = make(&client, &order("A-17", "first-key")).await;
    make(&client, &order("A-1", "other-key")).await;
    assert_eq!(found(&client, "A-17").await, [first.as_str()]);
    let number = [first.parse().unwrap()];
    client.orders().void(&VoidRequest::new(IdempotencyKey::random(), &number)).await.unwrap();
    server.clock().advance(Duration::from_secs(1)).await;
    let second = make(&client, &order("A-17", "second-key")).await;
    let parcels = client.orders().find("A-17").await.unwrap();
    let statuses: Vec<_> =
        parcels.iter().map(|one| (one.tracking_number.to_string(), one.status.clone())).collect();
    let labelled = (second, ParcelStatus::LabelGenerated);
    assert_eq!(statuses, [labelled, (first, ParcelStatus::Voided)]);
    assert!(found(&client, "A-170").await.is_empty());
    assert!(found(&client, "a-17").await.is_empty(), "it is compared exactly");
}

#[tokio::test]
async fn an_id_is_found_as_it_was_sent_with_blanks_around_it() {
    let server = MockServer::start().await;
    let client = server.client(&server.key().issue());
    let number = make(&client, &order(" A 17 ", "first-key")).await;
    for spelling in [" A 17 ", "A 17", "\tA 17\n"] {
        assert_eq!(found(&client, spelling).await, [number.as_str()], "{spelling:?}");
    }
}

#[tokio::test]
async fn no_id_finds_nothing_by_mistake() {
    let server = MockServer::start().await;
    let client = server.client(&server.key().issue());
    server.seed_parcels(2).await;
    for id in ["", " ", &"x".repeat(101)] {
        let error = client.orders().find(id).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Validation, "{id:?}");
    }
}

#[tokio::test]
async fn more_parcels_than_a_page_holds_are_found() {
    let server = MockServer::start().await;
    let client = server.in_memory_client(&server.key().issue());
    for number in 0..102 {
        make(&client, &order("A-17", &format!("key-{number:05}"))).await;
    }
    assert_eq!(found(&client, "A-17").await.len(), 102);
}

#[tokio::test]
async fn only_keys_of_the_account_find_them_a_day_later() {
    let server = MockServer::start().await;
    let client = server.client(&server.key().issue());
    let number = make(&client, &order("A-17", "first-key")).await;
    server.clock().advance(Duration::from_secs(25 * 3600)).await;
    assert_eq!(found(&server.client(&server.key().issue()), "A-17").await, [number]);
    let stranger = server.client(&server.key().account("other").issue());
    assert!(found(&stranger, "A-17").await.is_empty());
}
