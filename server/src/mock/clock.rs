//! The mock server's clock as a test sees it: what it begins with, and how it is moved. Whatever
//! falls due while it is moved is finished before the call returns.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Datelike, TimeDelta, Utc};

use super::{MockServer, pace::MovableClock};
use crate::{
    clock::{Clock as _, Millis},
    service::{Fired, Service},
};

/// What kind of clock a server begins with. Limits of requests a second hold on one that runs; on
/// one that is frozen only those that keys have of their own.
#[derive(Debug, Clone)]
pub struct Clock(pub(super) Kind);

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Frozen(Millis),
    Ticking(Millis),
    System,
}

impl Clock {
    /// A clock that stands at a time, given as RFC 3339, until it is moved.
    ///
    /// # Panics
    ///
    /// When the text is no such time.
    pub fn frozen(time: &str) -> Self {
        Self(Kind::Frozen(moment(time)))
    }

    /// A clock that begins at a time, given as RFC 3339, and runs: with tokio's time, so that on a
    /// runtime that is paused it moves with the test's sleeps.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use std::time::Duration;
    ///
    /// use parcelo_server::mock::{Clock, MockServer};
    ///
    /// tokio::time::pause(); // as #[tokio::test(start_paused = true)] does
    /// let clock = Clock::ticking("2026-01-05T08:00:00Z");
    /// let server = MockServer::builder().clock(clock).start().await;
    /// let before = server.clock().now();
    /// tokio::time::sleep(Duration::from_secs(3600)).await; // takes no time
    /// assert_eq!((server.clock().now() - before).num_minutes(), 60);
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// When the text is no such time.
    pub fn ticking(time: &str) -> Self {
        Self(Kind::Ticking(moment(time)))
    }

    /// The machine's clock; it can be moved all the same.
    pub const fn system() -> Self {
        Self(Kind::System)
    }
}

/// The time in a text, RFC 3339, if a clock can show it: in the years 0 to 9999, for which there is a
/// way to write them.
pub(crate) fn read_time(text: &str) -> Option<DateTime<Utc>> {
    let time = DateTime::parse_from_rfc3339(text).ok()?.to_utc();
    (0..=LAST_YEAR).contains(&time.year()).then_some(time)
}

/// The time so long after another, if a clock can show it.
pub(super) fn later(than: DateTime<Utc>, by: Duration) -> Option<DateTime<Utc>> {
    let later = than.checked_add_signed(TimeDelta::from_std(by).ok()?)?;
    (later.year() <= LAST_YEAR).then_some(later)
}

const LAST_YEAR: i32 = 9_999;

fn moment(time: &str) -> Millis {
    #[expect(clippy::panic, reason = "a test's own constant is wrong; documented")]
    let Some(read) = read_time(time) else {
        panic!("{time:?} is no RFC 3339 time such as 2026-01-05T08:00:00Z, in the years 0 to 9999");
    };
    read.into()
}

/// Moves a server's clock. Each method returns when all that fell due is finished, webhooks
/// included, and answers with what happened to parcels, in order.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use std::time::Duration;
///
/// use parcelo_server::mock::{Clock, MockServer};
///
/// let server = MockServer::builder().clock(Clock::system()).start().await;
/// server.clock().freeze().await;
/// server.clock().set("2026-12-24T18:00:00Z").await;
/// let fired = server.clock().advance(Duration::from_secs(7 * 24 * 3600)).await;
/// assert_eq!(fired, []); // no parcel was on its way
/// assert_eq!(server.clock().now().to_rfc3339(), "2026-12-31T18:00:00+00:00");
/// # }
/// ```
#[derive(Debug)]
pub struct ClockControl<'a>(&'a MockServer);

impl<'a> ClockControl<'a> {
    pub(super) const fn new(server: &'a MockServer) -> Self {
        Self(server)
    }

    /// A reader of this clock, for whatever else is to live in the server's time: the program under test, or
    /// `Webhook::clock`. It goes on showing the time when the server is gone.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use std::time::Duration;
    ///
    /// use parcelo_server::mock::MockServer;
    ///
    /// let server = MockServer::start().await;
    /// let now = server.clock().reader();
    /// server.clock().advance(Duration::from_secs(60)).await;
    /// assert_eq!(now().to_rfc3339(), "2026-01-05T08:01:00+00:00");
    /// # }
    /// ```
    pub fn reader(&self) -> impl Fn() -> DateTime<Utc> + Clone + Send + Sync + use<> {
        let clock = Arc::clone(&self.0.clock);
        move || clock.now().to_utc()
    }

    /// What the clock shows.
    pub fn now(&self) -> DateTime<Utc> {
        self.0.clock.now().to_utc()
    }

    /// Moves the clock ahead, stopping at everything that falls due on the way. What the sandbox has
    /// kept for 30 days is deleted at the end.
    ///
    /// # Panics
    ///
    /// When that leads beyond the year 9999.
    pub async fn advance(&self, by: Duration) -> Vec<Fired> {
        let _turn = self.clock().turn().await;
        #[expect(clippy::expect_used, reason = "a test's own constant is wrong; documented")]
        let target = later(self.now(), by).expect("a clock does not go beyond the year 9999");
        self.run_to(target.into()).await
    }

    /// Sets the clock to a time, given as RFC 3339. Ahead, it stops at everything that falls due on
    /// the way. Back, as when a machine's clock is corrected, nothing is undone: what has happened
    /// keeps its time, and what is not due yet waits for its own.
    ///
    /// # Panics
    ///
    /// When the text is no such time.
    pub async fn set(&self, time: &str) -> Vec<Fired> {
        let target = moment(time);
        let _turn = self.clock().turn().await;
        if target < self.clock().now() {
            self.deliver().await;
            self.clock().show(target);
        }
        self.run_to(target).await
    }

    /// Stops a clock that runs, at what it shows.
    pub async fn freeze(&self) -> Vec<Fired> {
        self.change(MovableClock::freeze).await
    }

    /// Lets a frozen clock run from what it shows, as [`Clock::ticking`] does.
    pub async fn tick(&self) -> Vec<Fired> {
        self.change(MovableClock::tick).await
    }

    /// Sets the clock to the machine's time, with which it runs from then on.
    pub async fn follow_system(&self) -> Vec<Fired> {
        let _turn = self.clock().turn().await;
        let mut fired = self.run_to(crate::clock::SystemClock.now()).await;
        self.clock().follow_system();
        fired.extend(self.do_what_is_due().await);
        fired
    }

    /// Moves it to a moment, unless it shows a later one.
    pub(super) async fn reach(&self, target: Millis) -> Vec<Fired> {
        let _turn = self.clock().turn().await;
        self.run_to(target).await
    }

    pub(super) fn service(&self) -> &'a Service {
        &self.0.service
    }

    fn clock(&self) -> &'a MovableClock {
        &self.0.clock
    }

    async fn change(&self, change: impl FnOnce(&MovableClock)) -> Vec<Fired> {
        let _turn = self.clock().turn().await;
        change(self.clock());
        self.do_what_is_due().await
    }

    /// Does what is due now; whoever calls has the turn.
    pub(super) async fn do_what_is_due(&self) -> Vec<Fired> {
        self.run_to(self.clock().now()).await
    }

    /// Does what falls due until `target`, each at its time; a clock that is there already stays.
    async fn run_to(&self, target: Millis) -> Vec<Fired> {
        let mut fired = Vec::new();
        // What is on its way belongs to the time before.
        self.deliver().await;
        fired.extend(self.take_due_steps().await);
        // Each stop is later than the one before, also when something due could not be done.
        while let Some(due) = self.next_due(target).await {
            self.clock().reach(due);
            fired.extend(self.take_due_steps().await);
            self.deliver().await;
        }
        self.clock().reach(target);
        // A clock that runs may have passed something between two stops.
        fired.extend(self.take_due_steps().await);
        self.deliver().await;
        #[expect(clippy::expect_used, reason = "a store in memory does not fail")]
        self.0.service.purge_sandboxes().await.expect("the store is there");
        fired
    }

    async fn take_due_steps(&self) -> Vec<Fired> {
        #[expect(clippy::expect_used, reason = "a store in memory does not fail")]
        self.0.service.take_due_steps().await.expect("the store is there")
    }

    /// Sends every webhook that is due, and waits for the answers.
    pub(super) async fn deliver(&self) {
        #[expect(clippy::expect_used, reason = "a store in memory does not fail")]
        self.0.dispatcher.deliver_due().await.expect("the store is there");
    }

    async fn next_due(&self, target: Millis) -> Option<Millis> {
        let service = &self.0.service;
        #[expect(clippy::expect_used, reason = "a store in memory does not fail")]
        let due = [service.next_due().await, service.next_delivery().await]
            .map(|due| due.expect("the store is there"));
        let now = self.clock().now();
        due.into_iter().flatten().filter(|due| now < *due && *due <= target).min()
    }
}
