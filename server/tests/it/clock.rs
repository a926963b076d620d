//! The mock server's clock: frozen, ticking or the machine's, moved and changed while it runs.

use std::{process::Command, time::Duration};

use chrono::{DateTime, Utc};
use parcelo::ParcelStatus;
use parcelo_server::mock::{Builder, Clock, Fired, MockServer};

use crate::{
    api::{Api, order, order_with_number},
    embedded,
    running::BINARY,
};

const START: &str = "2026-01-05T08:00:00Z";
const JOURNEY: [(i64, &str); 4] =
    [(5, "CUSTOMS_CLEARANCE"), (10, "IN_TRANSIT"), (15, "OUT_FOR_DELIVERY"), (20, "DELIVERED")];

/// Starts a server with a parcel on the journey `SB-SUCCESS-`.
async fn start_with_parcel(clock: Clock) -> (MockServer, Api) {
    build_with_parcel(embedded::builder().clock(clock)).await
}

/// Starts such a server for a test that pauses tokio's time: it is in memory, because a paused runtime would skip the
/// wait for PostgreSQL.
async fn start_paused_with_parcel(clock: Clock) -> (MockServer, Api) {
    let (server, api) =
        build_with_parcel(embedded::in_memory("the time of tokio is paused").clock(clock)).await;
    tokio::time::pause();
    (server, api)
}

async fn build_with_parcel(builder: Builder) -> (MockServer, Api) {
    let server = builder.start().await;
    let api = Api::with_key(server.url(), &server.key().issue());
    api.create_parcel(&order_with_number("order-0001", "SB-SUCCESS-0001")).await;
    (server, api)
}

fn start() -> DateTime<Utc> {
    START.parse().unwrap()
}

/// Returns each step as the minutes since the start, and its status.
fn steps(fired: &[Fired]) -> Vec<(i64, &str)> {
    let minutes = |fired: &Fired| (fired.at.to_utc() - start()).num_minutes();
    fired.iter().map(|fired| (minutes(fired), fired.status.code())).collect()
}

async fn status(api: &Api) -> String {
    api.track("SB-SUCCESS-0001").await.json()["status"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_frozen_clock_fires_the_steps_that_it_passes() {
    let (server, api) = start_with_parcel(Clock::frozen(START)).await;
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
async fn a_clock_set_back_neither_undoes_nor_repeats_steps() {
    let (server, api) = start_with_parcel(Clock::frozen(START)).await;
    server.clock().advance(Duration::from_secs(12 * 60)).await;
    assert_eq!(steps(&server.clock().set("2026-01-05T07:00:00Z").await), []);
    assert_eq!(server.clock().now(), start() - Duration::from_secs(3600));
    assert_eq!(status(&api).await, "IN_TRANSIT");
    let again = api.create(&order_with_number("order-0001", "SB-SUCCESS-0001")).await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (200, "true"));
    let other = api.create_parcel(&order("order-0002")).await;
    assert_eq!(api.track(&other).await.status, 200);
    assert_eq!(steps(&server.clock().set("2026-01-05T08:12:00Z").await), []);
    assert_eq!(steps(&server.clock().advance(Duration::from_secs(600)).await), JOURNEY[2..]);
}

#[tokio::test]
async fn a_ticking_clock_follows_the_paused_time_of_tokio() {
    let (server, api) = start_paused_with_parcel(Clock::ticking(START)).await;
    tokio::time::sleep(Duration::from_secs(25 * 60)).await;
    assert_eq!(server.clock().freeze().await, [], "all steps were executed as time passed");
    let now = server.clock().now();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(server.clock().now(), now);
    tokio::time::resume();
    assert!((now - start()).num_minutes() >= 25, "{now}");
    assert_eq!(status(&api).await, "DELIVERED");
}

#[tokio::test]
async fn a_frozen_clock_can_be_resumed_and_frozen_again() {
    let (server, _) = start_paused_with_parcel(Clock::frozen(START)).await;
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
async fn a_system_clock_fires_the_steps_that_it_skips() {
    let (server, api) = start_with_parcel(Clock::frozen(START)).await;
    assert_eq!(steps(&server.clock().follow_system().await), JOURNEY);
    let ahead = server.clock().now() - Utc::now();
    assert!(ahead.num_seconds().abs() < 60, "{ahead}");
    let deleted = api.track("SB-SUCCESS-0001").await;
    assert_eq!(deleted.status, 404, "the parcel was deleted after 30 days");
}

#[tokio::test]
async fn a_system_clock_can_be_moved_and_frozen() {
    let (server, _) = start_with_parcel(Clock::system()).await;
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
async fn setting_an_invalid_time_panics() {
    crate::embedded::start().await.clock().set("tomorrow").await;
}

#[tokio::test]
async fn a_clock_stays_within_the_years_0_to_9999() {
    let beyond = Duration::from_secs(8_000 * 366 * 86_400);
    for by in [beyond, Duration::MAX] {
        let advance = tokio::spawn(async move {
            crate::embedded::start().await.clock().advance(by).await;
        });
        let panic = advance.await.unwrap_err().into_panic();
        let message = panic.downcast_ref::<String>().cloned().unwrap_or_default();
        assert!(message.contains("beyond the year 9999"), "{by:?}: {message:?}");
    }
    for time in ["0000-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00"] {
        assert!(std::panic::catch_unwind(|| Clock::frozen(time)).is_err(), "{time}");
        let clock = format!("ticking={time}");
        let output = Command::new(BINARY).args(["mock", "--clock", &clock]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{time}");
    }
}
