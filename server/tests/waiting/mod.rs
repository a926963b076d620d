//! Waiting in tests for events that happen in the background. The functions yield the processor, fail if the event does
//! not happen, and also work while the time of the tokio runtime is paused.
#![allow(dead_code, reason = "each of the crates that include this file uses a part of it")]
#![allow(clippy::disallowed_methods, reason = "a real process is waited for in real time")]

use std::{
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

/// Maximum wait: longer than any such event takes on a slow and loaded machine.
pub(crate) const LONG: Duration = Duration::from_secs(120);

/// Interval between two checks.
const PAUSE: Duration = Duration::from_millis(5);

/// Polls `look` until it returns a value, and returns that. `what` describes the event, for the message on a timeout.
pub(crate) async fn wait_for_value<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(began.elapsed() < LONG, "waited in vain: {what}");
        pause().await;
    }
}

/// Polls `is_so` until it returns `true`.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    wait_for_value(what, async || is_so().await.then_some(())).await;
}

/// Polls `look` like [`found`], but blocks the thread: for tests without other tasks in it.
pub(crate) fn block_for_value<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < LONG, "waited in vain: {what}");
        thread::sleep(PAUSE);
    }
}

/// Pauses the time of this thread's tokio runtime until it is dropped, so that nothing times out, however slow the
/// machine is.
#[must_use = "it stops until this is dropped"]
pub(crate) struct PausedTime(
    #[expect(dead_code, reason = "dropping it ends the task")] mpsc::Sender<()>,
);

impl PausedTime {
    pub(crate) fn start() -> Self {
        tokio::time::pause();
        // An idle runtime with paused time advances to its next timer, unless a blocking task like this one is running.
        let (held, dropped) = mpsc::channel();
        drop(tokio::task::spawn_blocking(move || dropped.recv()));
        Self(held)
    }
}

impl Drop for PausedTime {
    fn drop(&mut self) {
        tokio::time::resume();
    }
}

/// Sleeps in real time between two polls.
pub(crate) async fn pause() {
    tokio::task::spawn_blocking(|| thread::sleep(PAUSE)).await.unwrap();
}
