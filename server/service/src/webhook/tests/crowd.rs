//! Tests with many tenants: their events are leased together, each tenant gets a share of the slots, and none waits
//! for the receiver of another that hangs.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use parcelo_domain::webhooks::{
    DeliveryError, EndpointResponse, LEASE_MILLIS, MAX_IN_FLIGHT_PER_ENDPOINT,
};
use parcelo_system::clock::{Clock, TokioClock};
use parcelo_types::Environment;
use ulid::Ulid;

use super::{START, TestService};
use crate::{
    service::{Delivery, Service},
    waiting::until,
    webhook::{WebhookDispatcher, WebhookTransport},
};

#[tokio::test]
async fn a_thousand_due_tenants_are_leased_in_five_commits() {
    let test = TestService::new().await;
    for index in 0..1_000 {
        let tenant = test.caller(&format!("shop-{index}"), Environment::Sandbox).await.tenant();
        test.subscribe(tenant, DEAD).await;
        test.endpoints().send_test(tenant, START).await.unwrap();
    }
    let before = test.service.store().stats().commits;
    let dispatcher = WebhookDispatcher::with_transport(
        Arc::new(SilentTransport),
        Arc::clone(&test.service),
        MAX_IN_FLIGHT_PER_ENDPOINT,
    );
    let running = tokio::spawn(async move { dispatcher.run(std::future::pending()).await });
    until("all are leased", async || {
        test.service.next_delivery_due().await.unwrap() >= Some(START.plus(LEASE_MILLIS))
    })
    .await;
    let commits = test.service.store().stats().commits - before;
    assert!(commits <= 5, "{commits} commits");
    running.abort();
}

const DEAD: &str = "http://127.0.0.1:9/dead";
const LIVE: &str = "http://127.0.0.1:9/live";

/// A network in which no receiver ever responds.
#[derive(Debug)]
struct SilentTransport;

impl WebhookTransport for SilentTransport {
    fn send<'a>(
        &'a self,
        _: &'a Delivery,
    ) -> BoxFuture<'a, (i64, Result<EndpointResponse, DeliveryError>)> {
        Box::pin(std::future::pending())
    }
}

/// A network without sockets: live receivers respond in 20 ms, and dead ones never do.
#[derive(Debug)]
struct FakeNetwork {
    clock: TokioClock,
    /// The time from commit to delivery of each event for a live receiver.
    latencies: Mutex<Vec<i64>>,
    hanging: AtomicUsize,
}

impl WebhookTransport for FakeNetwork {
    fn send<'a>(
        &'a self,
        delivery: &'a Delivery,
    ) -> BoxFuture<'a, (i64, Result<EndpointResponse, DeliveryError>)> {
        Box::pin(async move {
            if delivery.url == DEAD {
                self.hanging.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_secs(15)).await;
                return (15_000, Err(DeliveryError::TimedOut));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
            let id = delivery.headers[0].1.strip_prefix("evt_").unwrap();
            let written = Ulid::from_string(id).unwrap().timestamp_ms();
            let latency = self.clock.now().0 - i64::try_from(written).unwrap();
            self.latencies.lock().unwrap().push(latency);
            (20, Ok(EndpointResponse { status: 204, retry_after: None, body_prefix: Vec::new() }))
        })
    }
}

/// Sends events to each of `live` and `dead` receivers, 50 ms apart. Returns the latencies of the events for
/// live receivers in milliseconds, the shortest first.
async fn measure_latencies(live: usize, dead: usize, events: usize) -> Vec<i64> {
    let test = TestService::new().await;
    let clock = TokioClock::starting_at(START);
    let (latencies, hanging) = (Mutex::default(), AtomicUsize::default());
    let network = Arc::new(FakeNetwork { clock, latencies, hanging });
    let (store, ids) = (test.service.store().clone(), Arc::clone(&test.ids));
    let settings = test.service.settings().clone();
    let service = Arc::new(Service::new(store, Arc::new(clock), ids, settings));
    let dispatcher =
        WebhookDispatcher::with_transport(network.clone(), service, MAX_IN_FLIGHT_PER_ENDPOINT);
    let running = tokio::spawn(async move { dispatcher.run(std::future::pending()).await });
    let mut tenants = Vec::new();
    // The dead receivers come first, so that an order by age would serve them before the others.
    for index in 0..dead + live {
        let url = if index < dead { DEAD } else { LIVE };
        tenants.push(test.subscriber(&format!("shop-{index}"), url).await.tenant());
    }
    for _ in 0..events {
        for tenant in &tenants {
            test.endpoints().send_test(*tenant, clock.now()).await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(network.hanging.load(Ordering::SeqCst) > 0, dead > 0);
    running.abort();
    let mut latencies = network.latencies.lock().unwrap().clone();
    latencies.sort_unstable();
    assert_eq!(latencies.len(), live * events, "everything arrived at the live ones");
    latencies
}

#[tokio::test(start_paused = true)]
async fn one_dead_receiver_in_a_hundred_does_not_delay_others() {
    let p99 = |latencies: Vec<i64>| latencies[latencies.len() * 99 / 100];
    let (without, with) =
        (p99(measure_latencies(99, 0, 30).await), p99(measure_latencies(99, 1, 30).await));
    assert!(without >= 20, "{without} ms, although the network takes 20");
    assert!(2 * with <= 3 * without, "{with} ms, and {without} ms without the dead one");
}

#[tokio::test(start_paused = true)]
async fn two_hundred_dead_receivers_leave_slots_for_live_ones() {
    let latencies = measure_latencies(5, 200, 12).await;
    assert!(
        latencies.last() < Some(&50),
        "{latencies:?}: no live receiver waits for the slot of a dead one"
    );
}
