//! Waits of tests for events that happen by themselves. They yield the processor, fail if the event does not happen,
//! and work while the runtime's time is paused.
#![allow(dead_code, reason = "each of the crates that include this file uses a part of it")]
#![allow(clippy::disallowed_methods, reason = "a real process is waited for in real time")]

use std::{
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

/// Maximum wait, longer than any such event takes on a slow and loaded machine.
pub(crate) const LONG: Duration = Duration::from_secs(120);

/// Interval between two checks.
const PAUSE: Duration = Duration::from_millis(5);

/// Calls `look` until it returns a value.
pub(crate) async fn found<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(began.elapsed() < LONG, "waited in vain: {what}");
        pause().await;
    }
}

/// Waits until `is_so` returns `true`.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    found(what, async || is_so().await.then_some(())).await;
}

/// Does the same as [`found`] when no other task has to run in this thread.
pub(crate) fn found_blocking<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < LONG, "waited in vain: {what}");
        thread::sleep(PAUSE);
    }
}

/// Stops the time of the runtime of this thread until it is dropped: nothing in it times out, however slow the machine
/// is.
#[must_use = "it stops until this is dropped"]
pub(crate) struct StoppedTime(
    #[expect(dead_code, reason = "dropping it ends the task")] mpsc::Sender<()>,
);

impl StoppedTime {
    pub(crate) fn now() -> Self {
        tokio::time::pause();
        // A paused runtime advances to its next timer when it is idle, but not beside such a task.
        let (held, dropped) = mpsc::channel();
        drop(tokio::task::spawn_blocking(move || dropped.recv()));
        Self(held)
    }
}

impl Drop for StoppedTime {
    fn drop(&mut self) {
        tokio::time::resume();
    }
}

/// Waits in real time between two checks.
pub(crate) async fn pause() {
    tokio::task::spawn_blocking(|| thread::sleep(PAUSE)).await.unwrap();
}
