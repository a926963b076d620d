//! Saving, restoring and deleting a server's state.

use std::{io, path::PathBuf};

use parcelo_store::Store;
use parcelo_system::ids::SeedPosition;
use parcelo_types::{Environment, model::Deleted};

use super::{MockServer, expect_stored, movable_clock::SavedClock};

/// A server's state at one time: all data, keys and endpoints, the clock, and the position of its random generator. It
/// can be restored any number of times, and [saved](Snapshot::save) to a file.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub(super) environment: Environment,
    pub(super) store: Store,
    pub(super) ids: SeedPosition,
    pub(super) clock: SavedClock,
}

/// A reason why a snapshot cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The file cannot be read or written.
    #[error("cannot use the file {}: {source}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// It is not a snapshot, only a part of one, or was changed since it was saved.
    #[error("this is not a whole snapshot of a mock server, as it was saved: save it again")]
    Invalid,
    /// It was saved by a newer version of the server.
    #[error(
        "the snapshot is of a newer version: save it again with this one, or use the newer one"
    )]
    Newer,
    /// It is of a server with another seed, whose keys could not be verified.
    #[error("the snapshot is of a server with another seed: start this server with the same one")]
    OtherSeed,
    /// It is of a server in the other environment, none of whose keys and parcels would be found.
    #[error(
        "the snapshot is of a server in the environment {}, and this one is in {}: restore it in its own",
        saved.code(),
        server.code()
    )]
    OtherEnvironment {
        /// The environment of the snapshot.
        saved: Environment,
        /// The environment of this server.
        server: Environment,
    },
}

/// Operations on the whole state. No requests may be in flight meanwhile, and the clock must not be moved.
impl MockServer {
    /// Executes all due work and saves the state.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use parcelo_server::mock::MockServer;
    ///
    /// let server = MockServer::start().await;
    /// server.seed_parcels(3).await;
    /// let before = server.snapshot().await;
    /// let once = server.seed_parcels(2).await;
    /// server.restore(&before).await;
    /// assert_eq!(server.seed_parcels(2).await, once); // the same tracking numbers again
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// Never: a store in memory does not fail.
    pub async fn snapshot(&self) -> Snapshot {
        let _due_work = self.clock.lock_due_work().await;
        self.clock().execute_due().await;
        let store = expect_stored(self.service.store().copy());
        let (ids, clock) = (self.ids.seed_position(), self.clock.save());
        Snapshot { environment: self.environment, store, ids, clock }
    }

    /// Restores a state: from then on the same requests get the same responses. Keys created since are unknown again. A
    /// running clock continues from the time it showed. The request log and the inboxes keep their records, and the
    /// receivers of webhooks that were chosen on this server still get them: they replace those of the snapshot.
    ///
    /// The snapshot may be of another server with the same seed; replayed responses then have that server's addresses.
    ///
    /// # Panics
    ///
    /// If the snapshot is of a server with another seed, since its keys could not be verified here, or in the other
    /// environment.
    pub async fn restore(&self, snapshot: &Snapshot) {
        let refusal = self.try_restore(snapshot).await.err().map(|error| error.to_string());
        assert!(refusal.is_none(), "{}", refusal.unwrap_or_default());
    }

    /// Restores a state like [`MockServer::restore`], which may be of a server with another seed or environment.
    pub(super) async fn try_restore(&self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        let mut due_work = self.clock.lock_due_work().await;
        // Otherwise the results of deliveries in flight would be written into the restored state.
        self.clock().deliver().await;
        let store = self.service.store();
        if store.secret() != snapshot.store.secret() {
            return Err(SnapshotError::OtherSeed);
        }
        if self.environment != snapshot.environment {
            let (saved, server) = (snapshot.environment, self.environment);
            return Err(SnapshotError::OtherEnvironment { saved, server });
        }
        // Otherwise due events would be sent to the snapshot's receivers before they are replaced.
        let _sending = self.dispatcher.pause().await;
        expect_stored(store.become_copy_of(&snapshot.store));
        self.service.clear_caches();
        self.dispatcher.forget_events();
        due_work.forget();
        self.clock.restore(snapshot.clock);
        self.keep_receivers().await;
        // At last, so that what was done here does not change the ids of the requests to come.
        self.ids.resume_from(&snapshot.ids);
        Ok(())
    }

    /// Deletes all data, as `POST /api/v1/sandbox/reset` does for one key's account, the e-mails of [`MockServer::mails`]
    /// and all planned faults, those of webhooks too. Keys, webhook endpoints, unsubscribed addresses, the clock, the
    /// request log and the deliveries so far stay.
    ///
    /// # Panics
    ///
    /// Never: a store in memory does not fail.
    pub async fn reset(&self) -> Deleted {
        self.faults().clear();
        self.webhooks().clear_fault();
        self.dispatcher.forget_events();
        self.mail_inbox.clear();
        expect_stored(self.service.store().reset_all().await)
    }
}
