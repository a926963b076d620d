//! The keys that open something, in memory: whose a key is costs no read of the database, and what is
//! no key costs none either, however often it is tried.
//!
//! What is written through this server counts at once. What another process writes (`parcelo-server
//! keys`) is asked for every [`MOST_AGE`], with one look into an index, and before a key that is not
//! known is refused, a few times between two such looks. So a new key works at once, and during a flood
//! of wrong ones within [`MOST_AGE`]; a revocation is always in force within it.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, PoisonError, RwLock, RwLockWriteGuard,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    clock::{is_older, stopwatch},
    store::{ALL_KEYS, KeyChanges, Store, StoreError},
};

/// How long it is believed that no other process has written keys.
pub(super) const MOST_AGE: Duration = Duration::from_millis(250);
/// How many unknown keys are asked for between two regular looks.
const LOOKS_FOR_UNKNOWN: u32 = 8;

/// A key that can be kept in memory.
pub(super) trait CachedKey: Sized {
    /// Its number inside the database.
    fn row(&self) -> i64;
    /// The hashes by which it may be found; none when it opens nothing any more.
    fn hashes(&self) -> Vec<[u8; 32]>;
    /// The keys that were written after `version`.
    fn since(store: &Store, version: i64) -> Result<KeyChanges<Self>, StoreError>;
}

/// The keys of one kind.
#[derive(Debug)]
pub(super) struct KeyCache<K> {
    known: RwLock<Known<K>>,
    looks_left: AtomicU32,
}

#[derive(Debug)]
struct Known<K> {
    by_hash: HashMap<[u8; 32], Arc<K>>,
    version: i64,
    /// [`Store::key_writes`] when it was last asked for changes.
    writes: u64,
    /// When that was; never at first.
    asked: Option<Instant>,
}

impl<K> Default for Known<K> {
    fn default() -> Self {
        Self { by_hash: HashMap::new(), version: ALL_KEYS, writes: 0, asked: None }
    }
}

impl<K> Default for KeyCache<K> {
    fn default() -> Self {
        Self { known: RwLock::default(), looks_left: AtomicU32::default() }
    }
}

impl<K: CachedKey> KeyCache<K> {
    /// The key with this hash.
    pub(super) fn find(
        &self,
        store: &Store,
        hash: &[u8; 32],
    ) -> Result<Option<Arc<K>>, StoreError> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let is_regular = !known.is_fresh(store);
        if !is_regular {
            let found = known.by_hash.get(hash);
            if found.is_some() || !self.may_look() {
                return Ok(found.cloned());
            }
        }
        drop(known);
        let mut known = self.lock();
        if !is_regular {
            known.ask(store)?;
        } else if !known.is_fresh(store) {
            // Of those who waited for the lock only the first one asks.
            known.ask(store)?;
            known.asked = Some(stopwatch());
            self.looks_left.store(LOOKS_FOR_UNKNOWN, Ordering::Relaxed);
        }
        Ok(known.by_hash.get(hash).cloned())
    }

    /// Forgets all: the store holds something else now.
    pub(super) fn clear(&self) {
        *self.lock() = Known::default();
    }

    fn may_look(&self) -> bool {
        let take = |left: u32| left.checked_sub(1);
        self.looks_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    fn lock(&self) -> RwLockWriteGuard<'_, Known<K>> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: CachedKey> Known<K> {
    fn is_fresh(&self, store: &Store) -> bool {
        let is_young = self.asked.is_some_and(|asked| !is_older(asked, MOST_AGE));
        is_young && self.writes == store.key_writes()
    }

    fn ask(&mut self, store: &Store) -> Result<(), StoreError> {
        // Counted before the read: a write that comes between the two is asked for again.
        let writes = store.key_writes();
        let KeyChanges { version, keys } = K::since(store, self.version)?;
        if !keys.is_empty() {
            let changed: HashSet<_> = keys.iter().map(K::row).collect();
            self.by_hash.retain(|_, known| !changed.contains(&known.row()));
        }
        for key in keys {
            let key = Arc::new(key);
            self.by_hash.extend(key.hashes().into_iter().map(|hash| (hash, Arc::clone(&key))));
        }
        (self.version, self.writes) = (version, writes);
        Ok(())
    }
}
