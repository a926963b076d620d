//! The state of an open store in this process that does not depend on its engine.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64},
    },
};

use tokio::sync::Notify;

use super::active_resets::ActiveResets;

#[derive(Default)]
pub(super) struct ProcessState {
    /// The 32 bytes from which the database's keyed hashes and signatures derive.
    pub(super) secret: [u8; 32],
    /// Notified when an event is enqueued.
    pub(super) wake: Arc<Notify>,
    /// Held by the mass write that is running: one at a time.
    pub(super) mass_writes: tokio::sync::Mutex<()>,
    pub(super) resets: Mutex<ActiveResets>,
    /// `true` if changes also write the e-mails that they cause.
    pub(super) sends_mails: AtomicBool,
    /// Number of writes of credentials through this store.
    pub(super) credential_writes: AtomicU64,
    /// Number of reads that were not part of a write.
    pub(super) reads: AtomicU64,
    /// Errors of unreadable rows that were already logged.
    pub(super) logged_unreadable: Mutex<HashSet<String>>,
}

impl ProcessState {
    pub(super) fn new(secret: [u8; 32]) -> Self {
        Self { secret, ..Self::default() }
    }
}
