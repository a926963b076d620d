//! Keeping the writer busy, so that all writes queued in that time become one group, for the bench that measures groups
//! of an exact size.

use std::sync::{Mutex, PoisonError, mpsc};

use tokio::sync::oneshot;

use super::{Store, sql::Sql};

/// A pause of the writer, which ends when this is dropped.
#[derive(Debug)]
pub struct Pause(
    #[expect(dead_code, reason = "its end is what the writer waits for")] mpsc::Sender<()>,
);

impl Store {
    /// Keeps the writer busy until the pause is dropped. Returns `None` in memory, where no write waits.
    pub async fn pause_writes(&self) -> Option<Pause> {
        if self.is_inline() {
            return None;
        }
        let (pause, ended) = mpsc::channel();
        let (began, has_begun) = oneshot::channel();
        let (store, waits) = (self.clone(), Mutex::new((Some(began), ended)));
        tokio::spawn(async move {
            let wait = async move |_: Sql<'_>| {
                let mut waits = waits.lock().unwrap_or_else(PoisonError::into_inner);
                // `None` if the group is repeated. If the caller has gone, no one receives the signal.
                let _heard = waits.0.take().map(|began| began.send(()));
                // Blocking is fine, because the writer's thread has nothing else to do during the pause.
                let _dropped = waits.1.recv();
                Ok(())
            };
            store.write_within(None, wait).await
        });
        has_begun.await.ok()?;
        Some(Pause(pause))
    }
}
