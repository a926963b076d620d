//! The keys that open something, in memory: whose a key is costs no read of the database, and what is
//! no key costs none either, however often it is tried.
//!
//! What is written through this server counts at once. What another process writes (`parcelo-server
//! keys`) is asked for every [`MAX_AGE`], with one look into an index, and before a key that is not
//! known is refused, a few times between two such looks. So a new key works at once, and during a flood
//! of wrong ones within [`MAX_AGE`]; a revocation is always in force within it.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    clock::{is_older, stopwatch},
    domain::credentials::Credential,
    store::{ALL_CREDENTIALS, CredentialChanges, Store, StoreError, StoredScope},
};

/// How long it is believed that no other process has written keys.
pub(super) const MAX_AGE: Duration = Duration::from_millis(250);
/// How many unknown keys are asked for between two regular looks.
const MAX_LOOKS_FOR_UNKNOWN: u32 = 8;

/// A key that can be kept in memory.
pub(super) trait CachedKey: Sized {
    /// Its number inside the database.
    fn row(&self) -> i64;
    /// The hashes by which it may be found; none when it opens nothing any more.
    fn hashes(&self) -> Vec<[u8; 32]>;
    /// The keys that were written after `version`.
    fn since(
        store: &Store,
        version: i64,
    ) -> impl Future<Output = Result<CredentialChanges<Self>, StoreError>> + Send;
}

impl<S: StoredScope + Sync> CachedKey for Credential<S> {
    fn row(&self) -> i64 {
        self.row
    }

    fn hashes(&self) -> Vec<[u8; 32]> {
        if self.revoked_at.is_some() { Vec::new() } else { Self::hashes(self).collect() }
    }

    async fn since(store: &Store, version: i64) -> Result<CredentialChanges<Self>, StoreError> {
        store.credentials_since(version).await
    }
}

/// The keys of one kind.
#[derive(Debug)]
pub(super) struct KeyCache<K> {
    known: RwLock<Known<K>>,
    /// Held by the one who asks the store: those who wait for it find its answer.
    asking: tokio::sync::Mutex<()>,
    looks_left: AtomicU32,
}

#[derive(Debug)]
struct Known<K> {
    by_hash: HashMap<[u8; 32], Arc<K>>,
    version: i64,
    /// [`Store::credential_writes`] when it was last asked for changes.
    writes: u64,
    /// When that was; never at first.
    asked: Option<Instant>,
    /// How often all was forgotten: what was asked for before that is of another store.
    cleared: u64,
    /// [`Store::reconnections`] when it was last asked. After a failover that lost the last writes of keys, their numbers
    /// come again, and nothing would be found after the last one that is known.
    reconnections: u64,
}

impl<K> Default for Known<K> {
    fn default() -> Self {
        Self {
            by_hash: HashMap::new(),
            version: ALL_CREDENTIALS,
            writes: 0,
            asked: None,
            cleared: 0,
            reconnections: 0,
        }
    }
}

impl<K> Default for KeyCache<K> {
    fn default() -> Self {
        let (known, asking, looks_left) = Default::default();
        Self { known, asking, looks_left }
    }
}

impl<K: CachedKey + Send + Sync> KeyCache<K> {
    /// The key with this hash.
    pub(super) async fn find(
        &self,
        store: &Store,
        hash: &[u8; 32],
    ) -> Result<Option<Arc<K>>, StoreError> {
        let is_regular = {
            let known = self.read();
            let is_fresh = known.is_fresh(store);
            if is_fresh {
                let found = known.by_hash.get(hash);
                if found.is_some() || !self.may_look() {
                    return Ok(found.cloned());
                }
            }
            !is_fresh
        };
        // No lock of the keys is held while the store is asked: other requests go on with what is known.
        let _asking = self.asking.lock().await;
        if !is_regular {
            self.ask(store, None).await?;
        } else if !self.read().is_fresh(store) {
            // Of those who waited for their turn only the first one asks.
            self.ask(store, Some(stopwatch())).await?;
            self.looks_left.store(MAX_LOOKS_FOR_UNKNOWN, Ordering::Relaxed);
        }
        Ok(self.read().by_hash.get(hash).cloned())
    }

    /// Asks the store what has changed, and keeps it; `at` begins the time for which that is believed.
    async fn ask(&self, store: &Store, at: Option<Instant>) -> Result<(), StoreError> {
        loop {
            let reconnections = store.reconnections();
            if self.read().reconnections != reconnections {
                self.clear();
                self.write().reconnections = reconnections;
            }
            let (version, cleared) = {
                let known = self.read();
                (known.version, known.cleared)
            };
            // Counted before the read: a write that comes between the two is asked for again.
            let writes = store.credential_writes();
            let changes = K::since(store, version).await?;
            let mut known = self.write();
            if known.cleared == cleared {
                known.take(changes);
                (known.writes, known.asked) = (writes, at.or(known.asked));
                return Ok(());
            }
        }
    }

    /// Forgets all: the store holds something else now.
    pub(super) fn clear(&self) {
        let mut known = self.write();
        let Known { cleared, reconnections, .. } = *known;
        *known = Known { cleared: cleared + 1, reconnections, ..Known::default() };
    }

    fn may_look(&self) -> bool {
        let take = |left: u32| left.checked_sub(1);
        self.looks_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    fn read(&self) -> RwLockReadGuard<'_, Known<K>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Known<K>> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: CachedKey> Known<K> {
    fn is_fresh(&self, store: &Store) -> bool {
        let is_young = self.asked.is_some_and(|asked| !is_older(asked, MAX_AGE));
        is_young && self.writes == store.credential_writes()
    }

    fn take(&mut self, changes: CredentialChanges<K>) {
        let CredentialChanges { version, credentials: keys } = changes;
        if !keys.is_empty() {
            let rows: HashSet<_> = keys.iter().map(K::row).collect();
            self.by_hash.retain(|_, known| !rows.contains(&known.row()));
        }
        for key in keys {
            let key = Arc::new(key);
            self.by_hash.extend(key.hashes().into_iter().map(|hash| (hash, Arc::clone(&key))));
        }
        self.version = version;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU8;

    use futures_util::poll;

    use super::*;

    /// A key whose secret is how often the store was asked before.
    struct Numbered(u8);

    static ASKED: AtomicU8 = AtomicU8::new(0);

    impl CachedKey for Numbered {
        fn row(&self) -> i64 {
            1
        }

        fn hashes(&self) -> Vec<[u8; 32]> {
            vec![[self.0; 32]]
        }

        async fn since(_: &Store, version: i64) -> Result<CredentialChanges<Self>, StoreError> {
            let credentials = vec![Self(ASKED.fetch_add(1, Ordering::Relaxed))];
            tokio::task::yield_now().await;
            Ok(CredentialChanges { version: version + 1, credentials })
        }
    }

    #[tokio::test]
    async fn an_answer_from_before_all_was_forgotten_is_asked_for_again() {
        let (store, cache) = (Store::memory([1; 32]).unwrap(), KeyCache::<Numbered>::default());
        let mut find = Box::pin(cache.find(&store, &[0; 32]));
        assert!(poll!(&mut find).is_pending());
        cache.clear();
        assert!(find.await.unwrap().is_none(), "the first answer is of another store");
        assert!(cache.find(&store, &[1; 32]).await.unwrap().is_some());
    }
}
