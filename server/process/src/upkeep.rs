//! The background jobs of `serve`: due steps, webhooks, purges, and checks of the disk and the clock.

use std::{convert::Infallible, sync::Arc, time::Duration};

use parcelo_domain::webhooks::MAX_IN_FLIGHT_PER_ENDPOINT;
use parcelo_service::{http::Stop, service::Service, webhook::WebhookDispatcher};
use parcelo_store::{ReadOnlyReason, Store};
use parcelo_system::clock::monotonic_now;
use tokio::time::interval;

/// Interval of taking due steps, and so the maximum delay of a step whose parcel is not read.
const STEP_INTERVAL: Duration = Duration::from_millis(500);
/// Interval of checks of the disk and the clock.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);
/// Interval of purges of expired idempotency keys and old sandbox data.
const PURGE_INTERVAL: Duration = Duration::from_secs(60);

/// Interval of adding new parcels to the search index. Until then, each search scans them.
const SEARCH_INTERVAL: Duration = Duration::from_millis(250);
/// Interval of merging changes of counts into the totals. Until they are merged, each list adds them up itself.
const COUNT_MERGE_INTERVAL: Duration = Duration::from_secs(1);
/// Interval of the heartbeats between the servers of a database.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);

/// Sends webhooks until the stop. Events that an earlier server left in flight are sent again at once.
pub(super) async fn send_webhooks(service: Arc<Service>, stop: Stop) {
    // A failure is logged where it happens; leases also expire.
    let _ = service.end_leases().await;
    let _ = service.reschedule_deliveries().await;
    WebhookDispatcher::new(service, MAX_IN_FLIGHT_PER_ENDPOINT).run(stop.requested()).await;
}

/// Takes due steps and purges concurrently, because a purge may take minutes.
pub(super) async fn run_periodic_jobs(service: &Service) -> Infallible {
    tokio::select! {
        never = take_steps(service) => never,
        never = purge(service) => never,
    }
}

async fn take_steps(service: &Service) -> Infallible {
    let mut ticks = interval(STEP_INTERVAL);
    loop {
        ticks.tick().await;
        // A failure is logged where it happens, and the next tick tries again.
        let _ = service.take_due_steps().await;
        service.store().truncate_log().await;
    }
}

async fn purge(service: &Service) -> Infallible {
    let mut purges = interval(PURGE_INTERVAL);
    loop {
        purges.tick().await;
        // A failure is logged where it happens, and the next tick tries again.
        let _ = service.save_key_uses().await;
        let _ = service.save_legacy_uses().await;
        // At the start these are resets that an earlier server left unfinished; later, those that an error stopped.
        if let Err(error) = service.store().resume_resets().await {
            tracing::warn!(%error, "unfinished resets could not be looked up; trying again later");
        }
        service.purge().await;
    }
}

/// Sends the heartbeat of this server. It has a separate loop, so that a long job does not delay it.
pub(super) async fn send_heartbeat(service: &Service) -> Infallible {
    let mut ticks = interval(HEARTBEAT_INTERVAL);
    loop {
        ticks.tick().await;
        // A failure is logged where it happens, and the next tick tries again.
        let _ = service.send_heartbeat().await;
    }
}

/// Merges the changes of counts into the totals. It has a separate loop, so that it does not wait for a long job.
pub(super) async fn merge_count_changes(service: &Service) -> Infallible {
    let mut ticks = interval(COUNT_MERGE_INTERVAL);
    loop {
        ticks.tick().await;
        if let Err(error) = service.store().merge_count_changes().await {
            tracing::warn!(%error, "counts could not be added up; trying again");
        }
    }
}

/// Adds new parcels to the search index. It has a separate loop, because it takes long after an upgrade.
pub(super) async fn maintain_search_index(service: &Service) -> Infallible {
    let mut ticks = interval(SEARCH_INTERVAL);
    loop {
        ticks.tick().await;
        // A failure is logged where it happens, and the next tick tries again.
        let _ = service.maintain_search_index().await;
    }
}

/// Checks the disk and the clock until the database is lost.
pub(super) async fn watch_disk_and_clock(service: &Service) -> ReadOnlyReason {
    let mut ticks = interval(WATCH_INTERVAL);
    loop {
        ticks.tick().await;
        // A failure is logged where it happens, and the next tick tries again.
        let _ = service.watch_clock().await;
        check_disk(service.store().clone()).await;
        if let Some(lost) = service.store().read_only_reason() {
            return lost;
        }
    }
}

/// Checks the disk on a blocking thread, because a slow disk must not hold up the runtime's threads.
async fn check_disk(store: Store) {
    let _panicked = tokio::task::spawn_blocking(move || store.check(monotonic_now())).await;
}
