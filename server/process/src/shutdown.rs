//! The shutdown of `serve`: `/readyz` fails at once, connections are accepted for a while longer, then requests in
//! flight finish.

use std::{io, time::Duration};

use parcelo_service::http::{SHUTDOWN_GRACE, Stop};
use parcelo_system::clock::runtime_now;
use tokio::signal::unix::{self, SignalKind, signal};

/// Maximum time for which a server that lost its database drains: long enough for a load balancer to notice that it is
/// not ready, and short enough not to delay the restart.
const LOST_DATABASE_DRAIN: Duration = Duration::from_secs(1);

/// The reason for a stop, which determines the drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopCause {
    /// A supervisor or a deployment requests it.
    Terminate,
    /// A person at a terminal requests it, and waits.
    Interrupt,
    /// The database is lost.
    DatabaseLost,
}

/// The signals that stop the server.
pub(super) struct Signals {
    terminate: unix::Signal,
    interrupt: unix::Signal,
}

impl Signals {
    /// Catches the signals from now on.
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
    /// Returns the time for which connections are still accepted; `configured` is that of `--drain`.
    pub(super) fn drain(self, configured: Duration) -> Duration {
        match self {
            Self::Terminate => configured,
            Self::Interrupt => Duration::ZERO,
            Self::DatabaseLost => configured.min(LOST_DATABASE_DRAIN),
        }
    }
}

/// The time budget of a whole shutdown.
pub(super) struct Shutdown {
    /// The start of the shutdown, by the runtime's clock, which tests pause.
    since: tokio::time::Instant,
}

impl Shutdown {
    pub(super) fn start() -> Self {
        Self { since: runtime_now() }
    }

    /// Drains: keeps serving for this time, or until `interrupt`, while clients move to other servers. Then stops the
    /// listeners.
    pub(super) async fn drain(
        &self,
        stop: &Stop,
        pause: Duration,
        interrupt: impl Future<Output = StopCause>,
    ) {
        if !pause.is_zero() {
            stop.drain();
            // A second signal ends the pause.
            let _ = tokio::time::timeout(pause, interrupt).await;
        }
        stop.within(self.time_left());
    }

    /// Returns the time that is left.
    pub(super) fn time_left(&self) -> Duration {
        SHUTDOWN_GRACE.saturating_sub(self.since.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[test]
    fn the_drain_depends_on_the_stop_cause() {
        let table = [
            (StopCause::Terminate, 5, 5),
            (StopCause::Interrupt, 5, 0),
            (StopCause::DatabaseLost, 5, 1),
        ];
        for (cause, configured, drained) in table {
            let [configured, drained] = [configured, drained].map(Duration::from_secs);
            assert_eq!(cause.drain(configured), drained, "{cause:?}");
            assert_eq!(cause.drain(Duration::ZERO), Duration::ZERO, "{cause:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn drain_and_last_requests_share_25_seconds() {
        for (pause, left) in [(0, 25), (5, 20), (25, 0)] {
            let (shutdown, stop) = (Shutdown::start(), Stop::default());
            shutdown.drain(&stop, Duration::from_secs(pause), pending()).await;
            assert_eq!(shutdown.time_left().as_secs(), left, "{pause}");
            stop.requested().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_signal_ends_the_drain_early() {
        let (shutdown, stop) = (Shutdown::start(), Stop::default());
        let second = async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            ready(StopCause::Terminate).await
        };
        shutdown.drain(&stop, Duration::from_secs(10), second).await;
        assert_eq!(shutdown.time_left().as_secs(), 23);
    }

    #[tokio::test(start_paused = true)]
    async fn listeners_stop_only_after_the_drain() {
        let (shutdown, stop) = (Shutdown::start(), Stop::default());
        let drain = shutdown.drain(&stop, Duration::from_secs(5), pending());
        let early = tokio::time::timeout(Duration::from_secs(4), stop.requested());
        let (early, ()) = tokio::join!(early, drain);
        assert!(early.is_err());
        stop.requested().await;
    }
}
