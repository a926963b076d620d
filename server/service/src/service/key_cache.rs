//! A cache of valid keys in memory, so that not every request reads the database for its key, valid or not.
//!
//! Changes made through this server are seen at once. Changes by another process (`parcelo-server keys`) are read
//! every [`MAX_CACHE_AGE`], which takes one index lookup. They are also read before an unknown key is refused, a few
//! times between two such regular refreshes. So a new key works at once, and within [`MAX_CACHE_AGE`] during a flood of
//! wrong ones; a revocation always takes effect within [`MAX_CACHE_AGE`].

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use parcelo_domain::credentials::Credential;
use parcelo_store::{ALL_CREDENTIALS, CredentialChanges, Store, StoreError, StoredScope};
use parcelo_system::clock::{has_elapsed, monotonic_now};

/// Maximum age of the cache before it is refreshed.
pub(super) const MAX_CACHE_AGE: Duration = Duration::from_millis(250);
/// Maximum number of refreshes for unknown keys between two regular ones.
const MAX_REFRESHES_FOR_UNKNOWN_KEYS: u32 = 8;

/// A kind of key that can be cached.
pub(super) trait CachedKey: Sized {
    /// Returns its row number in the database.
    fn row(&self) -> i64;
    /// Returns the hashes of its secrets; none if it is revoked.
    fn hashes(&self) -> Vec<[u8; 32]>;
    /// Reads the keys that were written after `version`.
    fn changed_since(
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

    async fn changed_since(
        store: &Store,
        version: i64,
    ) -> Result<CredentialChanges<Self>, StoreError> {
        store.credentials_since(version).await
    }
}

/// A cache of the keys of one kind.
#[derive(Debug)]
pub(super) struct KeyCache<K> {
    state: RwLock<CacheState<K>>,
    /// Held during a refresh, so that requests that wait for it find its result.
    refreshing: tokio::sync::Mutex<()>,
    refreshes_left: AtomicU32,
}

#[derive(Debug)]
struct CacheState<K> {
    by_hash: HashMap<[u8; 32], Arc<K>>,
    version: i64,
    /// [`Store::credential_writes`] at the last refresh.
    writes: u64,
    /// The time of the last regular refresh.
    refreshed_at: Option<Instant>,
    /// The number of times the cache was cleared. Changes that were read before the last clear are another store's.
    cleared: u64,
    /// [`Store::reconnections`] at the last refresh. A failover that lost the last writes of keys reuses their version
    /// numbers, so reading on from the known version would miss changes.
    reconnections: u64,
}

impl<K> Default for CacheState<K> {
    fn default() -> Self {
        Self {
            by_hash: HashMap::new(),
            version: ALL_CREDENTIALS,
            writes: 0,
            refreshed_at: None,
            cleared: 0,
            reconnections: 0,
        }
    }
}

impl<K> Default for KeyCache<K> {
    fn default() -> Self {
        let (state, refreshing, refreshes_left) = Default::default();
        Self { state, refreshing, refreshes_left }
    }
}

impl<K: CachedKey + Send + Sync> KeyCache<K> {
    /// Returns the key with this hash.
    pub(super) async fn find(
        &self,
        store: &Store,
        hash: &[u8; 32],
    ) -> Result<Option<Arc<K>>, StoreError> {
        let is_regular = {
            let state = self.read();
            let is_fresh = state.is_fresh(store);
            if is_fresh {
                let found = state.by_hash.get(hash);
                if found.is_some() || !self.take_refresh_permit() {
                    return Ok(found.cloned());
                }
            }
            !is_fresh
        };
        // `state` is not locked while the store is read: other requests use the cache meanwhile.
        let _refreshing = self.refreshing.lock().await;
        if !is_regular {
            self.refresh(store, None).await?;
        } else if !self.read().is_fresh(store) {
            // Of the requests that waited, only the first refreshes the cache.
            self.refresh(store, Some(monotonic_now())).await?;
            self.refreshes_left.store(MAX_REFRESHES_FOR_UNKNOWN_KEYS, Ordering::Relaxed);
        }
        Ok(self.read().by_hash.get(hash).cloned())
    }

    /// Reads changes from the store into the cache. `at` is the time of a regular refresh; `None` for an additional
    /// one, which does not reset the age of the cache.
    async fn refresh(&self, store: &Store, at: Option<Instant>) -> Result<(), StoreError> {
        loop {
            let reconnections = store.reconnections();
            if self.read().reconnections != reconnections {
                self.clear();
                self.write().reconnections = reconnections;
            }
            let (version, cleared) = {
                let state = self.read();
                (state.version, state.cleared)
            };
            // The count is taken before the read, so that a write in between causes another refresh.
            let writes = store.credential_writes();
            let changes = K::changed_since(store, version).await?;
            let mut state = self.write();
            if state.cleared == cleared {
                state.apply(changes);
                (state.writes, state.refreshed_at) = (writes, at.or(state.refreshed_at));
                return Ok(());
            }
        }
    }

    /// Empties the cache after the store was replaced.
    pub(super) fn clear(&self) {
        let mut state = self.write();
        let CacheState { cleared, reconnections, .. } = *state;
        *state = CacheState { cleared: cleared + 1, reconnections, ..CacheState::default() };
    }

    fn take_refresh_permit(&self) -> bool {
        let take = |left: u32| left.checked_sub(1);
        self.refreshes_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    fn read(&self) -> RwLockReadGuard<'_, CacheState<K>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, CacheState<K>> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: CachedKey> CacheState<K> {
    fn is_fresh(&self, store: &Store) -> bool {
        let is_young = self.refreshed_at.is_some_and(|at| !has_elapsed(at, MAX_CACHE_AGE));
        is_young && self.writes == store.credential_writes()
    }

    fn apply(&mut self, changes: CredentialChanges<K>) {
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

    /// A key whose secret is the number of earlier reads of the store.
    struct Numbered(u8);

    static READS: AtomicU8 = AtomicU8::new(0);

    impl CachedKey for Numbered {
        fn row(&self) -> i64 {
            1
        }

        fn hashes(&self) -> Vec<[u8; 32]> {
            vec![[self.0; 32]]
        }

        async fn changed_since(
            _: &Store,
            version: i64,
        ) -> Result<CredentialChanges<Self>, StoreError> {
            let credentials = vec![Self(READS.fetch_add(1, Ordering::Relaxed))];
            tokio::task::yield_now().await;
            Ok(CredentialChanges { version: version + 1, credentials })
        }
    }

    #[tokio::test]
    async fn changes_read_before_a_clear_are_read_again() {
        let (store, cache) = (Store::memory([1; 32]).unwrap(), KeyCache::<Numbered>::default());
        let mut find = Box::pin(cache.find(&store, &[0; 32]));
        assert!(poll!(&mut find).is_pending());
        cache.clear();
        assert!(find.await.unwrap().is_none(), "the first read was of another store");
        assert!(cache.find(&store, &[1; 32]).await.unwrap().is_some());
    }
}
