//! The resets that are under way in this process.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Weak},
};

use parcelo_domain::Tenant;

/// The resets of this process.
#[derive(Debug, Default)]
pub(super) struct ActiveResets {
    /// The turns of requests that reset the same sandbox; a turn is dropped with the last request.
    requests: HashMap<Tenant, Weak<CountingTurn>>,
    /// The ended generations that a task is erasing.
    pub(super) erasing: HashSet<i64>,
}

/// A lock that is held while a generation of a sandbox is counted.
pub(super) type CountingTurn = tokio::sync::Mutex<()>;

impl ActiveResets {
    /// Adds a request, which ends when the returned value is dropped.
    pub(super) fn add_request(&mut self, sandbox: Tenant) -> Arc<CountingTurn> {
        self.requests.retain(|_, turn| turn.strong_count() > 0);
        self.requests.get(&sandbox).and_then(Weak::upgrade).unwrap_or_else(|| {
            let turn = Arc::default();
            self.requests.insert(sandbox, Arc::downgrade(&turn));
            turn
        })
    }

    pub(super) fn has_request(&self, sandbox: Tenant) -> bool {
        self.requests.get(&sandbox).is_some_and(|turn| turn.strong_count() > 0)
    }

    pub(super) fn is_erasing(&self) -> bool {
        !self.erasing.is_empty()
    }
}
