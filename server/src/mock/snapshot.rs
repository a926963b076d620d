//! Going back: a server's state is kept and restored, or emptied.

use parcelo::model::Deleted;

use super::{MockServer, pace::Shown};
use crate::{ids::Place, store::Store};

/// A server's state at a moment: all data, keys and endpoints, the clock, and where its ids had got
/// to. It can be restored as often as needed.
#[derive(Debug, Clone)]
pub struct Snapshot {
    store: Store,
    ids: Place,
    clock: Shown,
}

/// State as a whole. Nothing else may be under way meanwhile: requests, or another move of the clock.
impl MockServer {
    /// Keeps the state, after all that is due.
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
    /// assert_eq!(server.seed_parcels(2).await, once); // the same again, number by number
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// Never: a store in memory does not fail.
    pub async fn snapshot(&self) -> Snapshot {
        let _turn = self.clock.turn().await;
        self.clock().do_what_is_due().await;
        #[expect(clippy::expect_used, reason = "a store in memory does not fail")]
        let store = self.service.store().copy().expect("the store is there");
        Snapshot { store, ids: self.ids.place(), clock: self.clock.shown() }
    }

    /// Goes back to a state: from here on the same requests have the same answers. Keys made since
    /// are unknown again. A clock that ran goes on from what it showed. What tests have seen stays:
    /// deliveries of an inbox are not taken back.
    ///
    /// The snapshot may be another server's with the same seed; addresses in answers that are
    /// replayed are then that server's.
    ///
    /// # Panics
    ///
    /// When the snapshot is that of a server with another seed, whose keys could not be read.
    pub async fn restore(&self, snapshot: &Snapshot) {
        let _turn = self.clock.turn().await;
        // What is on its way must not be written into the state that comes back.
        self.clock().deliver().await;
        let store = self.service.store();
        assert!(store.secret() == snapshot.store.secret(), "the snapshot is of another seed");
        #[expect(clippy::expect_used, reason = "a store in memory does not fail")]
        store.become_copy_of(&snapshot.store).expect("the store is there");
        self.service.forget();
        self.ids.go_on_from(&snapshot.ids);
        self.clock.show_again(snapshot.clock);
    }

    /// Deletes all data, as `POST /api/v1/sandbox/reset` does for one key's account; keys, webhook
    /// endpoints and the clock stay.
    ///
    /// # Panics
    ///
    /// Never: a store in memory does not fail.
    pub async fn reset(&self) -> Deleted {
        #[expect(clippy::expect_used, reason = "a store in memory does not fail")]
        self.service.store().reset_all().await.expect("the store is there")
    }
}
