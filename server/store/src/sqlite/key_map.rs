//! A map in memory from part of an idempotency key to the ids of the rows that may hold the key. It only ever answers
//! "perhaps this row" or "no row"; the caller compares the whole key in the row.
//!
//! It holds 40 of a key's 128 bits: eight choose the table, 32 are the tag. So the map may answer with another key's
//! row, which is harmless (with 8 million keys, one look-up in 140,000 reads a row for nothing). An entry takes 12
//! bytes, or 15 to 30 with the free places of its table; the whole key would take twice that.
//!
//! Keys are hashes without a secret, so a caller can find, by trying, keys whose low bits agree. The place of an entry
//! is therefore derived from a hash of the tag with a secret that each process draws, so that no caller can fill one
//! place. Many keys with one tag take a million million tries each, and each key gains only a read of one row by its
//! id.

use std::{
    hash::{BuildHasher as _, RandomState},
    sync::{Mutex, MutexGuard, PoisonError},
};

use hashbrown::HashTable;
use parcelo_domain::RecordKey;

/// Number of tables. Each table doubles separately, so that a caller waits for only a 256th of all keys to move (under
/// a millisecond with 8 million keys), and memory for the old and the new table is needed for a 256th at a time.
const TABLES: usize = 256;
/// Divisor of a table's capacity. A table that uses less than this share of its capacity gives memory back.
const SHRINK_BELOW: usize = 4;

/// The map. Every method takes one table's lock at a time.
pub(super) struct KeyMap {
    tables: Box<[Mutex<HashTable<Entry>>; TABLES]>,
    hasher: RandomState,
}

/// The part of a key that the map holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KeyPart(pub(super) [u8; 5]);

impl From<&RecordKey> for KeyPart {
    fn from(key: &RecordKey) -> Self {
        // The first five of 16 bytes always exist.
        Self(key.0.first_chunk().copied().unwrap_or_default())
    }
}

/// A key's tag and its row, as bytes, because with alignment an entry would take 16.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Entry {
    tag: [u8; 4],
    id: [u8; 8],
}

impl Entry {
    const fn id(&self) -> i64 {
        i64::from_ne_bytes(self.id)
    }
}

impl KeyMap {
    pub(super) fn new() -> Self {
        let tables = Box::new(std::array::from_fn(|_| Mutex::default()));
        Self { tables, hasher: RandomState::new() }
    }

    /// Returns `true` if a row may hold the key.
    pub(super) fn contains(&self, key: KeyPart) -> bool {
        let (table, tag) = self.lock_table(key);
        table.find(self.hash(tag), |entry| entry.tag == tag).is_some()
    }

    /// Returns the rows that may hold the key, newest first.
    pub(super) fn rows(&self, key: KeyPart) -> Vec<i64> {
        let (table, tag) = self.lock_table(key);
        let found = table.iter_hash(self.hash(tag)).filter(|entry| entry.tag == tag);
        let mut rows: Vec<_> = found.map(Entry::id).collect();
        drop(table);
        rows.sort_unstable_by_key(|id| std::cmp::Reverse(*id));
        rows
    }

    /// Adds a row of the key, and returns `true` if it was new.
    pub(super) fn insert(&self, key: KeyPart, id: i64) -> bool {
        let (mut table, tag) = self.lock_table(key);
        let (entry, hash) = (Entry { tag, id: id.to_ne_bytes() }, self.hash(tag));
        let is_new = table.find(hash, |known| *known == entry).is_none();
        if is_new {
            table.insert_unique(hash, entry, |known| self.hash(known.tag));
        }
        is_new
    }

    /// Removes all rows before `id`.
    pub(super) fn remove_before(&self, id: i64) {
        for table in &*self.tables {
            let mut table = lock(table);
            table.retain(|entry| entry.id() >= id);
            if table.len() < table.capacity() / SHRINK_BELOW {
                let room = table.len() * 2;
                table.shrink_to(room, |entry| self.hash(entry.tag));
            }
        }
    }

    /// Removes everything.
    pub(super) fn clear(&self) {
        self.remove_before(i64::MAX);
    }

    /// Returns the number of rows that it holds.
    pub(super) fn len(&self) -> usize {
        self.tables.iter().map(|table| lock(table).len()).sum()
    }

    /// Returns the key's table, locked, and its tag.
    fn lock_table(&self, key: KeyPart) -> (MutexGuard<'_, HashTable<Entry>>, [u8; 4]) {
        let KeyPart([tag @ .., table]) = key;
        #[expect(clippy::indexing_slicing, reason = "a byte is below 256")]
        let table = &self.tables[usize::from(table)];
        (lock(table), tag)
    }

    fn hash(&self, tag: [u8; 4]) -> u64 {
        self.hasher.hash_one(u32::from_ne_bytes(tag))
    }
}

fn lock(table: &Mutex<HashTable<Entry>>) -> MutexGuard<'_, HashTable<Entry>> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(rng: &mut fastrand::Rng) -> KeyPart {
        KeyPart(std::array::from_fn(|_| rng.u8(..)))
    }

    fn bytes(map: &KeyMap) -> usize {
        let tables: usize = map.tables.iter().map(|table| lock(table).allocation_size()).sum();
        tables + size_of::<[Mutex<HashTable<Entry>>; TABLES]>()
    }

    #[test]
    fn a_key_has_the_rows_that_were_added_and_no_others() {
        let (map, mut rng) = (KeyMap::new(), fastrand::Rng::with_seed(1));
        let keys: Vec<_> = (0..20_000).map(|_| key(&mut rng)).collect();
        assert!((1..).zip(&keys).all(|(id, key)| map.insert(*key, id)));
        assert!((1..).zip(&keys).all(|(id, key)| map.rows(*key) == [id]));
        assert!((1..).zip(&keys).all(|(id, key)| !map.insert(*key, id)), "known already");
        assert_eq!(map.len(), 20_000);
        assert!((0..20_000).all(|_| map.rows(key(&mut rng)).is_empty()));
    }

    #[test]
    fn keys_with_equal_prefixes_share_rows_newest_first() {
        let map = KeyMap::new();
        let (mut one, mut other) = ([7; 16], [7; 16]);
        (one[5], other[5]) = (1, 2);
        let [one, other] = [one, other].map(|key| KeyPart::from(&RecordKey(key)));
        assert!(map.insert(one, 3) && map.insert(other, 9) && map.insert(one, 5));
        assert_eq!((map.rows(one), map.rows(other)), (vec![9, 5, 3], vec![9, 5, 3]));
        map.remove_before(5);
        assert_eq!(map.rows(one), [9, 5]);
        map.clear();
        assert_eq!((map.rows(one), map.len()), (vec![], 0));
    }

    #[test]
    fn a_key_takes_at_most_32_bytes_and_gives_them_back() {
        let (map, mut rng) = (KeyMap::new(), fastrand::Rng::with_seed(2));
        for id in 1..=300_000 {
            map.insert(key(&mut rng), id);
            if id >= 20_000 && id % 20_000 == 0 {
                let each = bytes(&map) / map.len();
                assert!(each <= 32, "{each} bytes each at {id}");
            }
        }
        let full = bytes(&map);
        map.remove_before(290_000);
        assert!(bytes(&map) < full / 8, "{} of {full} bytes", bytes(&map));
    }
}
