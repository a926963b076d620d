//! Keeping the writer busy, so that all writes queued in that time become one group, for the bench that measures groups
//! of an exact size.

use std::sync::mpsc;

use tokio::sync::oneshot;

use super::{Mode, Store};

/// A pause of the writer, which ends when this is dropped.
#[derive(Debug)]
pub struct Pause(
    #[expect(dead_code, reason = "its end is what the writer waits for")] mpsc::Sender<()>,
);

impl Pause {
    /// Returns a pause, and the receiver that is notified of its end.
    #[cfg(feature = "postgres")]
    pub(in crate::store) fn new() -> (Self, mpsc::Receiver<()>) {
        let (pause, ended) = mpsc::channel();
        (Self(pause), ended)
    }
}

impl Store {
    /// Keeps a file's writer busy until the pause is dropped. Returns `None` in memory, where no write waits.
    pub async fn pause_writes(&self) -> Option<Pause> {
        if matches!(self.0.mode, Mode::Inline(_)) {
            return None;
        }
        let (pause, ended) = mpsc::channel();
        let (began, has_begun) = oneshot::channel();
        let (store, mut began) = (self.clone(), Some(began));
        tokio::spawn(async move {
            let wait = move |_: &rusqlite::Connection| {
                // `None` when the group is repeated. If the caller has gone, there is no receiver.
                let _heard = began.take().map(|began| began.send(()));
                let _dropped = ended.recv();
                Ok(())
            };
            store.call_within(None, wait).await
        });
        has_begun.await.ok()?;
        Some(Pause(pause))
    }
}
