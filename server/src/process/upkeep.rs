//! What `serve` does besides answering: steps that fall due, webhooks, purges, and a look at the disk and
//! the clock.

use std::{convert::Infallible, sync::Arc, time::Duration};

use tokio::time::interval;

use crate::{
    clock::stopwatch,
    domain::webhooks::IN_FLIGHT,
    http::Stop,
    service::Service,
    store::{Lost, Store},
    webhook::Dispatcher,
};

/// How often due steps are looked for: a step that no reader asks for is late by this at most.
const STEP_INTERVAL: Duration = Duration::from_millis(500);
/// How often the disk and the clock are looked at.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);
/// How often forgotten idempotency keys and old sandbox data are deleted.
const PURGE_INTERVAL: Duration = Duration::from_secs(60);

/// How often new parcels are looked for that are to come into the search's index: a search looks at each of those
/// that are not in it.
const SEARCH_INTERVAL: Duration = Duration::from_millis(250);
/// The pause between two folds of counts: a list adds up what is not folded yet.
const FOLD_INTERVAL: Duration = Duration::from_secs(1);
/// How often the servers of one database say that they are there.
const MEET_INTERVAL: Duration = Duration::from_secs(1);

/// Sends webhooks until it is time to stop; what a server before this one left on its way is sent
/// again at once.
pub(super) async fn send_webhooks(service: Arc<Service>, stop: Stop) {
    // A failure is logged where it happened; the leases end by themselves.
    let _ = service.end_leases().await;
    let _ = service.bring_deliveries_forward().await;
    Dispatcher::new(service, IN_FLIGHT).run(stop.requested()).await;
}

/// Takes due steps and purges, for as long as it is asked to: no step waits for a purge of minutes.
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
        // A failure is logged where it happened, and the next tick tries again.
        let _ = service.take_due_steps().await;
        service.store().truncate_log().await;
    }
}

async fn purge(service: &Service) -> Infallible {
    let mut purges = interval(PURGE_INTERVAL);
    loop {
        purges.tick().await;
        // As above.
        let _ = service.keep_key_uses().await;
        let _ = service.keep_legacy_uses().await;
        // At the start, what a server before this one left unfinished; later, what an error stopped.
        if let Err(error) = service.store().resume_resets().await {
            tracing::warn!(%error, "unfinished resets could not be looked up; trying again later");
        }
        service.purge().await;
    }
}

/// Says to other servers that this one is there, in a loop of its own: a job that takes long must not make them forget
/// it.
pub(super) async fn meet_servers(service: &Service) -> Infallible {
    let mut ticks = interval(MEET_INTERVAL);
    loop {
        ticks.tick().await;
        // A failure is logged where it happened, and the next tick tries again.
        let _ = service.meet_servers().await;
    }
}

/// Adds up the changes of counts, in a loop of its own for the same reason.
pub(super) async fn fold_counts(service: &Service) -> Infallible {
    let mut ticks = interval(FOLD_INTERVAL);
    loop {
        ticks.tick().await;
        if let Err(error) = service.store().fold_counts().await {
            tracing::warn!(%error, "counts could not be added up; trying again");
        }
    }
}

/// Adds new parcels to the search's index, in a loop of its own: after an upgrade that takes long, and nothing waits for
/// it.
pub(super) async fn tend_search(service: &Service) -> Infallible {
    let mut ticks = interval(SEARCH_INTERVAL);
    loop {
        ticks.tick().await;
        // A failure is logged where it happened, and the next tick tries again.
        let _ = service.tend_search().await;
    }
}

/// Looks at the disk and the clock until the database is lost.
pub(super) async fn watch(service: &Service) -> Lost {
    let mut ticks = interval(WATCH_INTERVAL);
    loop {
        ticks.tick().await;
        // A failure is logged where it happened; the clock is looked at again in a moment.
        let _ = service.watch_clock().await;
        check_disk(service.store().clone()).await;
        if let Some(lost) = service.store().lost() {
            return lost;
        }
    }
}

/// A disk that is slow to answer must not hold up the runtime's threads.
async fn check_disk(store: Store) {
    let _panicked = tokio::task::spawn_blocking(move || store.check(stopwatch())).await;
}
