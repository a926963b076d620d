//! Finding an order's parcels by its id in the caller's system, even after the idempotency key has expired.

use std::time::Duration;

use parcelo::{Client, ErrorKind, IdempotencyKey, OrderRequest, ParcelStatus, VoidRequest};
use parcelo_server::mock::MockServer;

/// Returns an order with the caller's id; the service generates its tracking number.
fn order(id: &str, key: &str) -> OrderRequest {
    let mut order = MockServer::order("SB-SUCCESS-0001");
    order.idempotency_key = IdempotencyKey::parse(key).unwrap();
    (order.external_order_id, order.tracking_number) = (Some(id.to_owned()), None);
    order
}

async fn find_numbers(client: &Client, id: &str) -> Vec<String> {
    let parcels = client.orders().find(id).await.unwrap();
    parcels.into_iter().map(|parcel| parcel.tracking_number.to_string()).collect()
}

async fn create(client: &Client, order: &OrderRequest) -> String {
    client.orders().create(order).await.unwrap().parcel.tracking_number.to_string()
}

#[tokio::test]
async fn the_parcels_of_an_order_are_found_newest_first() {
    let server = MockServer::start().await;
    let client = server.client(&server.key().issue());
    let first = create(&client, &order("A-17", "first-key")).await;
    create(&client, &order("A-1", "other-key")).await;
    assert_eq!(find_numbers(&client, "A-17").await, [first.as_str()]);
    let number = [first.parse().unwrap()];
    client.orders().void(&VoidRequest::new(IdempotencyKey::random(), &number)).await.unwrap();
    server.clock().advance(Duration::from_secs(1)).await;
    let second = create(&client, &order("A-17", "second-key")).await;
    let parcels = client.orders().find("A-17").await.unwrap();
    let statuses: Vec<_> =
        parcels.iter().map(|one| (one.tracking_number.to_string(), one.status.clone())).collect();
    let labelled = (second, ParcelStatus::LabelGenerated);
    assert_eq!(statuses, [labelled, (first, ParcelStatus::Voided)]);
    assert!(find_numbers(&client, "A-170").await.is_empty());
    assert!(find_numbers(&client, "a-17").await.is_empty(), "it is compared exactly");
}

#[tokio::test]
async fn an_id_is_found_with_surrounding_spaces() {
    let server = MockServer::start().await;
    let client = server.client(&server.key().issue());
    let number = create(&client, &order(" A 17 ", "first-key")).await;
    for spelling in [" A 17 ", "A 17", "\tA 17\n"] {
        assert_eq!(find_numbers(&client, spelling).await, [number.as_str()], "{spelling:?}");
    }
}

#[tokio::test]
async fn an_empty_id_finds_nothing() {
    let server = MockServer::start().await;
    let client = server.client(&server.key().issue());
    server.seed_parcels(2).await;
    for id in ["", " ", &"x".repeat(101)] {
        let error = client.orders().find(id).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Validation, "{id:?}");
    }
}

#[tokio::test]
async fn more_parcels_than_fit_on_a_page_are_found() {
    let server = MockServer::start().await;
    let client = server.in_memory_client(&server.key().issue());
    for number in 0..102 {
        create(&client, &order("A-17", &format!("key-{number:05}"))).await;
    }
    assert_eq!(find_numbers(&client, "A-17").await.len(), 102);
}

#[tokio::test]
async fn only_keys_of_the_account_find_an_order_a_day_later() {
    let server = MockServer::start().await;
    let client = server.client(&server.key().issue());
    let number = create(&client, &order("A-17", "first-key")).await;
    server.clock().advance(Duration::from_secs(25 * 3600)).await;
    assert_eq!(find_numbers(&server.client(&server.key().issue()), "A-17").await, [number]);
    let stranger = server.client(&server.key().account("other").issue());
    assert!(find_numbers(&stranger, "A-17").await.is_empty());
}
