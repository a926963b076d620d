//! Moves a mock server's clock. Everything that falls due meanwhile is finished before a call returns.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use parcelo_domain::Millis;
use parcelo_system::clock::Clock as _;

use super::{
    MockServer,
    clock::{add_duration, parse_time},
    expect_stored,
    movable_clock::MovableClock,
};
use crate::service::Fired;

/// A handle that moves a server's clock. Each method waits until everything that fell due is finished, webhooks
/// included, and returns the parcels' steps in order.
///
/// A ticker does the same while the clock runs. It and the methods here take turns, first come, first served: each due
/// step happens once, and a method returns only the steps that it executed.
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
/// assert_eq!(fired, []); // there is no parcel
/// assert_eq!(server.clock().now().to_rfc3339(), "2026-12-31T18:00:00+00:00");
/// # }
/// ```
#[derive(Debug)]
pub struct ClockControl<'a>(pub(super) &'a MockServer);

impl<'a> ClockControl<'a> {
    /// Returns a function that reads this clock, for code that must use the server's time: the program under test, or
    /// `Webhook::clock`. The function still works after the server was dropped.
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

    /// Returns the time that the clock shows.
    pub fn now(&self) -> DateTime<Utc> {
        self.0.clock.now().to_utc()
    }

    /// Moves the clock ahead, stopping at everything that falls due meanwhile. At the end, sandbox data older than 30
    /// days is deleted.
    ///
    /// # Panics
    ///
    /// If that is beyond the year 9999.
    pub async fn advance(&self, by: Duration) -> Vec<Fired> {
        let _due_work = self.clock().lock_due_work().await;
        #[expect(clippy::expect_used, reason = "a test's own constant is wrong; documented")]
        let target = add_duration(self.now(), by).expect("a clock cannot go beyond the year 9999");
        self.run_to(target.into()).await
    }

    /// Sets the clock to a time (RFC 3339). Moving ahead, it stops at everything that falls due. Setting it back, as
    /// when a machine's clock is corrected, undoes nothing: past events keep their time, and future ones wait for
    /// theirs.
    ///
    /// # Panics
    ///
    /// If the text is not an RFC 3339 time in the years 0 to 9999.
    pub async fn set(&self, time: &str) -> Vec<Fired> {
        let target = parse_time(time);
        let _due_work = self.clock().lock_due_work().await;
        if target < self.clock().now() {
            // Webhooks that are due now would not be due at the earlier time.
            self.deliver().await;
            self.clock().set(target);
        }
        self.run_to(target).await
    }

    /// Freezes a running clock at the time it shows.
    pub async fn freeze(&self) -> Vec<Fired> {
        self.change(MovableClock::freeze).await
    }

    /// Lets a frozen clock run from the time it shows, like [`Clock::ticking`](super::Clock::ticking).
    pub async fn resume(&self) -> Vec<Fired> {
        self.change(MovableClock::resume).await
    }

    /// Sets the clock to the machine's time, which it follows from then on.
    pub async fn follow_system(&self) -> Vec<Fired> {
        let _due_work = self.clock().lock_due_work().await;
        let mut fired = self.run_to(parcelo_system::clock::SystemClock.now()).await;
        self.clock().follow_system();
        fired.extend(self.execute_due().await);
        fired
    }

    /// Moves the clock ahead to a time, unless it shows a later one already.
    pub(super) async fn advance_to(&self, target: Millis) -> Vec<Fired> {
        let _due_work = self.clock().lock_due_work().await;
        self.run_to(target).await
    }

    /// Returns the clock that it moves.
    fn clock(&self) -> &'a MovableClock {
        &self.0.clock
    }

    async fn change(&self, change: impl FnOnce(&MovableClock)) -> Vec<Fired> {
        let _due_work = self.clock().lock_due_work().await;
        change(self.clock());
        self.execute_due().await
    }

    /// Executes the work that is due now; the caller holds the lock of due work.
    pub(super) async fn execute_due(&self) -> Vec<Fired> {
        self.run_to(self.clock().now()).await
    }

    /// Executes the work that falls due until `target`, each at its own time; the caller holds the lock of due work.
    async fn run_to(&self, target: Millis) -> Vec<Fired> {
        let mut fired = Vec::new();
        // Webhooks that are due already have the time before the move as their timestamp.
        self.deliver().await;
        fired.extend(self.take_due_steps().await);
        // Each stop is later than the one before, so the loop ends even if something due could not be executed.
        while let Some(due) = self.next_due(target).await {
            self.clock().advance_to(due);
            fired.extend(self.take_due_steps().await);
            self.deliver().await;
        }
        self.clock().advance_to(target);
        // A running clock may have passed something since the last stop.
        fired.extend(self.take_due_steps().await);
        self.deliver().await;
        expect_stored(self.0.service.purge_sandboxes().await);
        fired
    }

    async fn take_due_steps(&self) -> Vec<Fired> {
        expect_stored(self.0.service.take_due_steps().await)
    }

    /// Sends every webhook and e-mail that is due, and waits for the responses.
    pub(super) async fn deliver(&self) {
        let send = async {
            expect_stored(self.0.mail_sender.send_due().await);
            expect_stored(self.0.dispatcher.deliver_due().await);
        };
        self.0.in_own_runtime(send).await;
    }

    async fn next_due(&self, target: Millis) -> Option<Millis> {
        let service = &self.0.service;
        let due = [
            service.next_step_due().await,
            service.next_delivery_due().await,
            service.next_mail_due().await,
        ]
        .map(expect_stored);
        let (now, held) = (self.clock().now(), self.0.dispatcher.next_held_due());
        due.into_iter().flatten().chain(held).filter(|due| now < *due && *due <= target).min()
    }
}
