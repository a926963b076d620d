//! The mock server's clock: frozen, ticking or the machine's, moved and changed while it runs.

use std::{process::Command, time::Duration};

use chrono::{DateTime, Utc};
use parcelo::ParcelStatus;
use parcelo_server::mock::{Builder, Clock, Fired, MockServer};

use crate::{
    api::{Api, numbered, order},
    embedded,
    running::BINARY,
};

const START: &str = "2026-01-05T08:00:00Z";
const JOURNEY: [(i64, &str); 4] =
    [(5, "CUSTOMS_CLEARANCE"), (10, "IN_TRANSIT"), (15, "OUT_FOR_DELIVERY"), (20, "DELIVERED")];

/// Starts a server with a parcel on the journey `SB-SUCCESS-`.
async fn with_parcel(clock: Clock) -> (MockServer, Api) {
    parcel_on(embedded::builder().clock(clock)).await
}

/// Does the same for a test that pauses tokio's time, which would skip any wait for PostgreSQL's answer.
async fn paused_with_parcel(clock: Clock) -> (MockServer, Api) {
    let (server, api) =
        parcel_on(embedded::in_memory("the time of tokio is paused").clock(clock)).await;
    tokio::time::pause();
    (server, api)
}

async fn parcel_on(builder: Builder) -> (MockServer, Api) {
    let server = builder.start().await;
    let api = Api::with_key(server.url(), &server.key().issue());
    api.created(&numbered("order-0001", "SB-SUCCESS-0001")).await;
    (server, api)
}

fn start() -> DateTime<Utc> {
    START.parse().unwrap()
}

/// Returns the minutes after the start and the status of all steps.
fn steps(fired: &[Fired]) -> Vec<(i64, &str)> {
    let minutes = |fired: &Fired| (fired.at.to_utc() - start()).num_minutes();
    fired.iter().map(|fired| (minutes(fired), fired.status.code())).collect()
}

async fn status(api: &Api) -> String {
    api.track("SB-SUCCESS-0001").await.json()["status"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_frozen_clock_fires_the_steps_that_it_passes() {
    let (server, api) = with_parcel(Clock::frozen(START)).await;
    let clock = server.clock();
    assert_eq!(clock.now(), start());
    assert_eq!(steps(&clock.advance(Duration::from_secs(299)).await), []);
    assert_eq!(steps(&clock.advance(Duration::from_secs(1)).await), JOURNEY[..1]);
    assert_eq!(steps(&clock.set("2026-01-05T09:00:00+00:45").await), JOURNEY[1..3]);
    assert_eq!(clock.now(), start() + Duration::from_secs(15 * 60));
    assert_eq!(steps(&clock.set("2026-02-01T00:00:00Z").await), JOURNEY[3..]);
    assert_eq!(status(&api).await, "DELIVERED");
}

#[tokio::test]
async fn a_clock_that_is_set_back_undoes_nothing_and_repeats_nothing() {
    let (server, api) = with_parcel(Clock::frozen(START)).await;
    server.clock().advance(Duration::from_secs(12 * 60)).await;
    assert_eq!(steps(&server.clock().set("2026-01-05T07:00:00Z").await), []);
    assert_eq!(server.clock().now(), start() - Duration::from_secs(3600));
    assert_eq!(status(&api).await, "IN_TRANSIT");
    let again = api.create(&numbered("order-0001", "SB-SUCCESS-0001")).await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (200, "true"));
    let other = api.created(&order("order-0002")).await;
    assert_eq!(api.track(&other).await.status, 200);
    assert_eq!(steps(&server.clock().set("2026-01-05T08:12:00Z").await), []);
    assert_eq!(steps(&server.clock().advance(Duration::from_secs(600)).await), JOURNEY[2..]);
}

#[tokio::test]
async fn a_ticking_clock_runs_with_the_time_of_a_paused_test() {
    let (server, api) = paused_with_parcel(Clock::ticking(START)).await;
    tokio::time::sleep(Duration::from_secs(25 * 60)).await;
    assert_eq!(server.clock().freeze().await, [], "all had happened by itself");
    let now = server.clock().now();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(server.clock().now(), now);
    tokio::time::resume();
    assert!((now - start()).num_minutes() >= 25, "{now}");
    assert_eq!(status(&api).await, "DELIVERED");
}

#[tokio::test]
async fn a_frozen_clock_can_be_let_run_and_stopped_again() {
    let (server, _) = paused_with_parcel(Clock::frozen(START)).await;
    assert_eq!(server.clock().resume().await, []);
    tokio::time::sleep(Duration::from_secs(7 * 60)).await;
    assert_eq!(steps(&server.clock().advance(Duration::from_secs(240)).await), JOURNEY[1..2]);
    tokio::time::sleep(Duration::from_secs(245)).await;
    assert_eq!(server.clock().freeze().await, []);
    let now = (server.clock().now() - start()).num_seconds();
    assert!((905..=906).contains(&now), "{now}");
    assert_eq!(steps(&server.clock().advance(Duration::from_secs(600)).await), JOURNEY[3..]);
}

#[tokio::test]
async fn a_machine_clock_fires_the_steps_that_it_skips() {
    let (server, api) = with_parcel(Clock::frozen(START)).await;
    assert_eq!(steps(&server.clock().follow_system().await), JOURNEY);
    let ahead = server.clock().now() - Utc::now();
    assert!(ahead.num_seconds().abs() < 60, "{ahead}");
    assert_eq!(api.track("SB-SUCCESS-0001").await.status, 404, "that was long ago");
}

#[tokio::test]
async fn a_clock_of_the_machine_can_be_moved_and_stopped() {
    let (server, _) = with_parcel(Clock::system()).await;
    let fired = server.clock().advance(Duration::from_secs(25 * 60)).await;
    assert_eq!(fired.last().map(|fired| &fired.status), Some(&ParcelStatus::Delivered));
    let ahead = server.clock().now() - Utc::now();
    assert!((24..=25).contains(&ahead.num_minutes()), "{ahead}");
    server.clock().freeze().await;
    let now = server.clock().now();
    server.clock().set("2026-01-05T08:00:00Z").await;
    assert!(server.clock().now() < now);
}

#[tokio::test]
#[should_panic(expected = "is not an RFC 3339 time")]
async fn a_time_that_is_none_is_the_tests_own_fault() {
    crate::embedded::start().await.clock().set("tomorrow").await;
}

#[tokio::test]
async fn a_clock_stays_where_times_have_four_digits() {
    let beyond = Duration::from_secs(8_000 * 366 * 86_400);
    for by in [beyond, Duration::MAX] {
        let advance = tokio::spawn(async move {
            crate::embedded::start().await.clock().advance(by).await;
        });
        let panic = advance.await.unwrap_err().into_panic();
        let said = panic.downcast_ref::<String>().cloned().unwrap_or_default();
        assert!(said.contains("beyond the year 9999"), "{by:?}: {said:?}");
    }
    for time in ["0000-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00"] {
        assert!(std::panic::catch_unwind(|| Clock::frozen(time)).is_err(), "{time}");
        let clock = format!("ticking={time}");
        let output = Command::new(BINARY).args(["mock", "--clock", &clock]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{time}");
    }
}
