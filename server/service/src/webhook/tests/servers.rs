//! Tests of two servers that send from one outbox at the same time: each event is sent, never by both at once, and the
//! events of a parcel arrive in order.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{body::Body, http::Response};
use futures_util::future::join_all;
use parcelo::webhook::ID;
use parcelo_domain::webhooks::{DeliveryStatus, MAX_IN_FLIGHT_PER_ENDPOINT};
use parcelo_store::test_util::two_servers;
use serde_json::Value;
use tokio::sync::{Notify, oneshot};

use super::{Receiver, START, TestService, start_receiver};
use crate::{service::Service, webhook::WebhookDispatcher};

const TENANTS: usize = 5;
const SCANS: [&str; 3] = ["PICKED_UP", "IN_TRANSIT", "DELIVERED"];

/// The record of a receiver of events from two senders.
#[derive(Debug, Default)]
struct ReceiverLog {
    /// The events without a response so far.
    without_response: HashSet<String>,
    /// The number of events that arrived again before their first response.
    overlapping: usize,
    /// The number of deliveries of each event.
    arrived: HashMap<String, usize>,
    /// The sequences of events in the order of their arrival, by parcel.
    sequences: HashMap<String, Vec<u64>>,
}

impl ReceiverLog {
    fn record_arrival(&mut self, id: &str, body: &[u8]) {
        self.overlapping += usize::from(!self.without_response.insert(id.to_owned()));
        *self.arrived.entry(id.to_owned()).or_default() += 1;
        let event: Value = serde_json::from_slice(body).unwrap();
        let number = event["data"]["trackingNumber"].as_str().unwrap().to_owned();
        // The event of a creation has no sequence; it is the first.
        let sequence = event["data"]["sequence"].as_u64().unwrap_or_default();
        self.sequences.entry(number).or_default().push(sequence);
    }
}

async fn start_logging_receiver(log: &Arc<Mutex<ReceiverLog>>, arrival: &Arc<Notify>) -> Receiver {
    let (log, arrival) = (Arc::clone(log), Arc::clone(arrival));
    start_receiver(move |headers, body| {
        let (log, arrival) = (Arc::clone(&log), Arc::clone(&arrival));
        async move {
            let id = headers[ID].to_str().unwrap().to_owned();
            log.lock().unwrap().record_arrival(&id, &body);
            // The response takes a while, so that a second sender would be noticed.
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            log.lock().unwrap().without_response.remove(&id);
            arrival.notify_one();
            ((START, headers, body), Response::new(Body::empty()))
        }
    })
    .await
}

/// Returns the number of deliveries that a server has counted.
async fn count_delivered(service: &Service) -> u64 {
    let text = service.metrics_text().await.unwrap();
    let is_ours = |line: &&str| {
        line.starts_with("parcelo_webhook_deliveries_total{") && line.contains("\"delivered\"")
    };
    let count = |line: &str| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
    text.lines().filter(is_ours).map(count).sum()
}

/// Has two servers create four events for each parcel, and send them at the same time.
async fn deliver_from_both_servers(parcels: usize) {
    let Some([one, other]) = two_servers().await else { return };
    let servers = [TestService::with_store(one, 1).await, TestService::with_store(other, 2).await];
    let (log, arrival) = (Arc::default(), Arc::default());
    let receiver = start_logging_receiver(&log, &arrival).await;
    let mut callers = Vec::new();
    for index in 0..TENANTS {
        callers.push(servers[0].subscriber(&format!("shop-{index}"), &receiver.url).await);
    }
    let (stops, dispatchers): (Vec<_>, Vec<_>) = servers
        .iter()
        .map(|server| {
            let (stop, stopped) = oneshot::channel::<()>();
            let dispatcher =
                WebhookDispatcher::new(Arc::clone(&server.service), MAX_IN_FLIGHT_PER_ENDPOINT);
            (stop, tokio::spawn(async move { dispatcher.run(async { drop(stopped.await) }).await }))
        })
        .unzip();
    let numbers: Vec<String> = (0..parcels).map(|index| format!("PARCEL-{index:06}")).collect();
    for (chunk, numbers) in numbers.chunks(50).enumerate() {
        let server = |index: usize| &servers[(chunk + index) % 2];
        let creates = numbers
            .iter()
            .enumerate()
            .map(|(index, number)| server(index).create(&callers[index % TENANTS], number));
        join_all(creates).await;
    }
    let carrier = servers[0].carrier().await;
    for status in SCANS {
        let chunks: Vec<_> = numbers.chunks(50).collect();
        for pair in chunks.chunks(2) {
            let scans = pair
                .iter()
                .zip(&servers)
                .map(|(numbers, server)| server.scan(&carrier, numbers, status));
            join_all(scans).await;
        }
    }
    let all = parcels * (1 + SCANS.len());
    let arrived = async {
        while log.lock().unwrap().arrived.len() < all {
            arrival.notified().await;
        }
    };
    let limit = Duration::from_secs(if parcels > 1_000 { 1_800 } else { 240 });
    tokio::time::timeout(limit, arrived).await.expect("every event arrives");
    stops.into_iter().for_each(drop);
    join_all(dispatchers).await.into_iter().for_each(Result::unwrap);
    assert_delivered_once_in_order(&log.lock().unwrap(), all);
    for caller in &callers {
        let log = servers[0].service.store().deliveries(caller.tenant(), all).await.unwrap();
        assert!(log.iter().all(|logged| logged.delivery_status == DeliveryStatus::Delivered));
        assert_eq!(log.len(), all / TENANTS, "no tenant has another's events");
    }
    let counts =
        [count_delivered(&servers[0].service).await, count_delivered(&servers[1].service).await];
    println!("delivered by each: {counts:?}");
    assert!(counts.iter().all(|count| *count > 0), "both servers sent: {counts:?}");
}

fn assert_delivered_once_in_order(log: &ReceiverLog, all: usize) {
    assert_eq!(log.overlapping, 0, "no event was sent by both at the same time");
    let twice = log.arrived.values().filter(|times| **times > 1).count();
    assert_eq!(
        (log.arrived.len(), twice),
        (all, 0),
        "no server failed, so each event arrived once"
    );
    for (number, sequences) in &log.sequences {
        assert!(sequences.is_sorted(), "{number}: {sequences:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_deliver_each_event_once_and_in_order() {
    deliver_from_both_servers(150).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: `.ci/prove postgres` runs it"]
async fn two_servers_deliver_ten_thousand_events() {
    deliver_from_both_servers(2_500).await;
}
