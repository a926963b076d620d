//! The mock server's clock: frozen or running, and moved at will.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use chrono::DateTime;

use super::MockServer;
use crate::{
    clock::{Clock as _, Millis, SystemClock},
    service::Fired,
};

/// What kind of clock a server begins with.
#[derive(Debug, Clone)]
pub struct Clock(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Frozen(Millis),
    System,
}

impl Clock {
    /// A clock that stands at a time, given as RFC 3339, until it is moved.
    ///
    /// # Panics
    ///
    /// When the text is no such time.
    pub fn frozen(time: &str) -> Self {
        #[expect(clippy::panic, reason = "a test's own constant is wrong; documented")]
        let Ok(time) = DateTime::parse_from_rfc3339(time) else {
            panic!("{time:?} is no RFC 3339 time such as 2026-01-05T08:00:00Z");
        };
        Self(Kind::Frozen(time.to_utc().into()))
    }

    /// The machine's clock; it can be moved ahead all the same.
    pub const fn system() -> Self {
        Self(Kind::System)
    }
}

/// A frozen clock shows `shift`; a running one shows the machine's time, shifted.
#[derive(Debug)]
pub(super) struct MovableClock {
    runs: bool,
    shift: AtomicI64,
}

impl MovableClock {
    pub(super) fn from(clock: &Clock) -> Self {
        match clock.0 {
            Kind::Frozen(at) => Self { runs: false, shift: AtomicI64::new(at.0) },
            Kind::System => Self { runs: true, shift: AtomicI64::new(0) },
        }
    }

    pub(super) const fn runs(&self) -> bool {
        self.runs
    }

    /// Moves the clock ahead to `target`; it never goes back.
    fn move_to(&self, target: Millis) {
        let ahead = target.0 - crate::clock::Clock::now(self).0;
        self.shift.fetch_add(ahead.max(0), Ordering::SeqCst);
    }
}

impl crate::clock::Clock for MovableClock {
    fn now(&self) -> Millis {
        let base = if self.runs { SystemClock.now() } else { Millis(0) };
        base.plus(self.shift.load(Ordering::SeqCst))
    }
}

/// Moves a server's clock.
#[derive(Debug)]
pub struct ClockControl<'a>(&'a MockServer);

impl<'a> ClockControl<'a> {
    pub(super) const fn new(server: &'a MockServer) -> Self {
        Self(server)
    }

    /// What the clock shows.
    pub fn now(&self) -> DateTime<chrono::Utc> {
        self.0.clock.now().to_utc()
    }

    /// Moves the clock ahead, stopping at everything that falls due on the way, webhooks included;
    /// answers with what happened to parcels, in order. What the sandbox has kept for 30 days is deleted at the end.
    ///
    /// # Panics
    ///
    /// Never: a store in memory does not fail.
    pub async fn advance(&self, by: Duration) -> Vec<Fired> {
        let millis = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        let target = self.0.clock.now().plus(millis);
        let mut fired = Vec::new();
        // What is on its way belongs to the time before.
        self.deliver().await;
        while let Some(due) = self.next_due(target) {
            self.0.clock.move_to(due);
            #[expect(clippy::expect_used, reason = "a store in memory does not fail")]
            fired.extend(self.0.service.take_due_steps().await.expect("the store is there"));
            self.deliver().await;
        }
        self.0.clock.move_to(target);
        #[expect(clippy::expect_used, reason = "a store in memory does not fail")]
        self.0.service.purge_sandboxes().await.expect("the store is there");
        fired
    }

    /// Sends every webhook that is due, and waits for the answers.
    async fn deliver(&self) {
        #[expect(clippy::expect_used, reason = "a store in memory does not fail")]
        self.0.dispatcher.deliver_due().await.expect("the store is there");
    }

    fn next_due(&self, target: Millis) -> Option<Millis> {
        let service = &self.0.service;
        #[expect(clippy::expect_used, reason = "a store in memory does not fail")]
        let due = [service.next_due(), service.next_delivery()]
            .map(|due| due.expect("the store is there"));
        due.into_iter().flatten().min().filter(|due| *due <= target)
    }
}
