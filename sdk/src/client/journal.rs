//! What a program that ships orders must find again after a crash: the trait [`Journal`], which it implements, and the
//! [`Entry`] that a journal keeps for each order. [`ship`](super::ship) decides when an entry is written.

mod file;

use chrono::{DateTime, Utc};
use parcelo_types::{OrderRequest, TrackingNumber, model::Saved};
use serde::{Deserialize, Serialize};

pub use file::JournalFile;

/// The error of a journal: of a database, a file, or your own.
pub type JournalError = Box<dyn std::error::Error + Send + Sync>;

/// A durable store with an [`Entry`] for each order, for [`Orders::ship`](crate::calls::Orders::ship).
///
/// [`JournalFile`] is one in a file, and the example `sqlite_journal` one in a table of a database. A method returns
/// `Ok` only when what it wrote would survive a loss of power; an error means that it may or may not be there. One
/// process at a time uses a journal. `parcelo::testing::kill_points`, with the feature `test-util`, finds out
/// whether an implementation keeps its word.
///
/// An `async fn` implements each method. One that blocks its thread for the time of a write is fine; for longer, use
/// `spawn_blocking`.
///
/// ```
/// use std::{collections::HashMap, sync::Mutex};
///
/// use parcelo::journal::{Entry, Journal, JournalError};
///
/// /// For tests only: its orders die with the process.
/// #[derive(Default)]
/// struct InMemory(Mutex<HashMap<String, Entry>>);
///
/// impl Journal for InMemory {
///     async fn insert(&self, entry: &Entry) -> Result<Option<Entry>, JournalError> {
///         let mut entries = self.0.lock().unwrap();
///         let known = entries.get(entry.order_id()).cloned();
///         if known.is_none() {
///             entries.insert(entry.order_id().to_owned(), entry.clone());
///         }
///         Ok(known)
///     }
///
///     async fn update(&self, entry: &Entry) -> Result<(), JournalError> {
///         self.0.lock().unwrap().insert(entry.order_id().to_owned(), entry.clone());
///         Ok(())
///     }
///
///     async fn open(&self) -> Result<Vec<Entry>, JournalError> {
///         let entries = self.0.lock().unwrap();
///         Ok(entries.values().filter(|entry| entry.is_open()).cloned().collect())
///     }
/// }
/// ```
pub trait Journal: Sync {
    /// Saves the entry of a new order before it is sent. If the journal has an entry of this order already, open or
    /// not, returns that one and saves nothing.
    ///
    /// This is one step: of two calls at once for the same order, one gets the other's entry.
    fn insert(
        &self,
        entry: &Entry,
    ) -> impl Future<Output = Result<Option<Entry>, JournalError>> + Send;

    /// Replaces the entry of an order, because it has another idempotency key, or is settled.
    fn update(&self, entry: &Entry) -> impl Future<Output = Result<(), JournalError>> + Send;

    /// Returns the entries that are open ([`Entry::is_open`]).
    fn open(&self) -> impl Future<Output = Result<Vec<Entry>, JournalError>> + Send;
}

/// A journal's record of one order.
///
/// A journal keeps it as JSON, by serde, under [`order_id`](Self::order_id), and need not look into it. It has the
/// order with its names and addresses as long as it is open, and afterwards no personal data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Entry {
    order_id: String,
    state: State,
}

/// The state of an order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum State {
    Open(Box<OpenOrder>),
    Shipped(TrackingNumber),
    /// Not shipped: the service refused it, and nothing was created.
    Refused,
}

/// An order that may be sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct OpenOrder {
    pub(super) order: Saved<OrderRequest>,
    /// A digest of the API key with which it is sent: the service knows the idempotency key for that one only.
    pub(super) api_key: String,
    /// No attempt begins later, unless the entry is updated first.
    pub(super) sent_until: DateTime<Utc>,
}

impl Entry {
    pub(super) fn new(order_id: &str, state: State) -> Self {
        Self { order_id: order_id.to_owned(), state }
    }

    /// Returns the order's id in your system, its `external_order_id` without surrounding white space.
    pub fn order_id(&self) -> &str {
        &self.order_id
    }

    /// Returns `true` until the order is shipped or refused: it must be found again after a crash.
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// Returns the tracking number of an order that was shipped.
    pub fn tracking_number(&self) -> Option<&TrackingNumber> {
        match &self.state {
            State::Shipped(number) => Some(number),
            State::Open(_) | State::Refused => None,
        }
    }

    pub(super) fn into_parts(self) -> (String, State) {
        (self.order_id, self.state)
    }
}
