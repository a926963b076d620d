//! How `serve` stops: `/readyz` fails at once, connections are accepted for a while longer, then requests in
//! flight finish.

use std::{io, time::Duration};

use tokio::signal::unix::{self, SignalKind, signal};

use crate::{
    clock::runtime_time,
    http::{SHUTDOWN_GRACE, Stop},
};

/// How long a server with a lost database answers that it is not ready: long enough for a load balancer
/// to see it, short so that the restart does not wait.
const LOST_DATABASE_DRAIN: Duration = Duration::from_secs(1);

/// Why it stops: the drain depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopCause {
    /// A supervisor or a deployment asks.
    Terminate,
    /// A person at a terminal asks, and waits.
    Interrupt,
    /// The database is lost.
    Lost,
}

/// The signals that stop it.
pub(super) struct Signals {
    terminate: unix::Signal,
    interrupt: unix::Signal,
}

impl Signals {
    /// Catches them from now on.
    pub(super) fn listen() -> io::Result<Self> {
        let (terminate, interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        Ok(Self { terminate, interrupt })
    }

    pub(super) async fn next(&mut self) -> StopCause {
        tokio::select! {
            _ = self.terminate.recv() => StopCause::Terminate,
            _ = self.interrupt.recv() => StopCause::Interrupt,
        }
    }
}

impl StopCause {
    /// For how long connections are still accepted, given `--drain`.
    pub(super) fn drain(self, asked: Duration) -> Duration {
        match self {
            Self::Terminate => asked,
            Self::Interrupt => Duration::ZERO,
            Self::Lost => asked.min(LOST_DATABASE_DRAIN),
        }
    }
}

/// The time that a whole shutdown may take.
pub(super) struct Shutdown {
    /// The runtime's time, which tests pause.
    since: tokio::time::Instant,
}

impl Shutdown {
    pub(super) fn begin() -> Self {
        Self { since: runtime_time() }
    }

    /// Keeps serving for this pause, or until `cut_short`, while clients move elsewhere; then stops the
    /// listeners.
    pub(super) async fn drain(
        &self,
        stop: &Stop,
        pause: Duration,
        cut_short: impl Future<Output = StopCause>,
    ) {
        if !pause.is_zero() {
            stop.drain();
            // A second signal ends the pause.
            let _ = tokio::time::timeout(pause, cut_short).await;
        }
        stop.within(self.left());
    }

    /// The time that is left.
    pub(super) fn left(&self) -> Duration {
        SHUTDOWN_GRACE.saturating_sub(self.since.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[test]
    fn sigterm_drains_sigint_does_not_and_a_lost_database_hardly() {
        let table =
            [(StopCause::Terminate, 5, 5), (StopCause::Interrupt, 5, 0), (StopCause::Lost, 5, 1)];
        for (cause, asked, drained) in table {
            let [asked, drained] = [asked, drained].map(Duration::from_secs);
            assert_eq!(cause.drain(asked), drained, "{cause:?}");
            assert_eq!(cause.drain(Duration::ZERO), Duration::ZERO, "{cause:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn drain_and_last_requests_share_25_seconds() {
        for (pause, left) in [(0, 25), (5, 20), (25, 0)] {
            let (shutdown, stop) = (Shutdown::begin(), Stop::default());
            shutdown.drain(&stop, Duration::from_secs(pause), pending()).await;
            assert_eq!(shutdown.left().as_secs(), left, "{pause}");
            stop.requested().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_signal_ends_the_drain_and_leaves_the_rest_to_last_requests() {
        let (shutdown, stop) = (Shutdown::begin(), Stop::default());
        let second = async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            ready(StopCause::Terminate).await
        };
        shutdown.drain(&stop, Duration::from_secs(10), second).await;
        assert_eq!(shutdown.left().as_secs(), 23);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_stops_before_the_drain_is_over() {
        let (shutdown, stop) = (Shutdown::begin(), Stop::default());
        let drain = shutdown.drain(&stop, Duration::from_secs(5), pending());
        let early = tokio::time::timeout(Duration::from_secs(4), stop.requested());
        let (early, ()) = tokio::join!(early, drain);
        assert!(early.is_err());
        stop.requested().await;
    }
}
