//! The format of the search index, independent of its tables. An entry is a term of a parcel. Entries are stored in
//! sorted *runs*, and a run in *pieces*, each of which is a row of the database.
//!
//! No order waits for the index. Terms arrive in random order, so if each order wrote to the index, it would change a
//! page of the database for each term. Instead, parcels are added some time after their creation, a run at a time, and
//! [`RUNS_PER_MERGE`] runs of a level are merged into one run of the next level. So every write appends. A search reads
//! all runs, which are few, and the parcels that are not in a run yet.

use parcelo_domain::search::TERM_END;

use super::search_hits::ListPosition;

// Small in tests, so that a few parcels fill several pieces, and runs of several levels.

/// Number of parcels in a new run.
pub(super) const PARCELS_PER_RUN: usize = if cfg!(test) { 8 } else { 128 };
/// Number of runs of a level that are merged into a run of the next level. A million parcels have some 45 runs.
pub(super) const RUNS_PER_MERGE: i64 = if cfg!(test) { 3 } else { 16 };
/// Number of a run's pieces that are read at a time for merging.
pub(super) const PIECES_PER_READ: usize = 3;
/// Size at which a piece is full. Two pieces fit a page of `SQLite`, four a page of `PostgreSQL`.
const PIECE_BYTES: usize = if cfg!(test) { 200 } else { 1_700 };
/// Size of a parcel's time and row at the end of an entry.
const POSITION_BYTES: usize = 16;

/// A term of a parcel: the tenant, the term, and the parcel's position, so that entries sort by all of them.
pub(super) type Entry = Vec<u8>;

/// Some adjacent entries of a run.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The first entry, which a search compares.
    pub(super) first: Entry,
    /// All entries, packed.
    pub(super) entries: Vec<u8>,
}

/// The bounds of a scope's entries whose terms begin with a text: from the first bound on, before the second.
pub(super) struct Bounds {
    pub(super) from: Entry,
    pub(super) to: Entry,
}

impl Bounds {
    pub(super) fn new(scope: &[u8], beginning: &str) -> Self {
        let from = [scope, beginning.as_bytes()].concat();
        // No text contains this byte.
        let to = [&from[..], &[0xff]].concat();
        Self { from, to }
    }

    /// Adds the positions of a piece's entries within the bounds.
    pub(super) fn add_positions(&self, piece: &[u8], positions: &mut Vec<ListPosition>) {
        for_each_entry(piece, |entry| {
            if entry >= &self.from[..] && entry < &self.to[..] {
                positions.extend(position(entry));
            }
        });
    }
}

pub(super) fn entry(scope: &[u8], term: &str, (created_at, parcel): ListPosition) -> Entry {
    // The end sorts before every character, so that a term precedes the longer terms that begin with it.
    [
        scope,
        term.as_bytes(),
        TERM_END.as_bytes(),
        &sortable_bytes(created_at),
        &sortable_bytes(parcel),
    ]
    .concat()
}

/// Returns the parcel's position in an entry.
pub(super) fn position(entry: &[u8]) -> Option<ListPosition> {
    let (_, position) = entry.split_last_chunk::<POSITION_BYTES>()?;
    let (created_at, parcel) = position.split_first_chunk()?;
    let number = |bytes| i64::from_be_bytes(bytes) ^ i64::MIN;
    Some((number(*created_at), number(parcel.try_into().ok()?)))
}

/// Returns a number as bytes with the same sort order.
pub(super) const fn sortable_bytes(number: i64) -> [u8; 8] {
    (number ^ i64::MIN).to_be_bytes()
}

/// Packs sorted entries into pieces. Each entry omits the bytes that it has in common with the previous entry.
pub(super) fn pack(entries: &[Entry]) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut before: &[u8] = &[];
    for entry in entries {
        let begins = pieces.last().is_none_or(|piece| piece.entries.len() >= PIECE_BYTES);
        if begins {
            pieces.push(Piece { first: entry.clone(), entries: Vec::new() });
            before = &[];
        }
        let common = before.iter().zip(entry).take_while(|(one, other)| one == other).count();
        let common = u8::try_from(common).unwrap_or(u8::MAX);
        // Terms are much shorter than the largest length that fits.
        let rest = entry.iter().skip(common.into()).take(u16::MAX.into());
        if let Some(piece) = pieces.last_mut() {
            piece.entries.push(common);
            piece.entries.extend(u16::try_from(rest.len()).unwrap_or(u16::MAX).to_le_bytes());
            piece.entries.extend(rest);
        }
        before = entry;
    }
    pieces
}

/// Returns the entries of a piece.
pub(super) fn unpack(piece: &[u8]) -> Vec<Entry> {
    let mut entries = Vec::new();
    for_each_entry(piece, |entry| entries.push(entry.to_vec()));
    entries
}

/// Passes each entry of a piece to `take`, in order. A damaged piece ends at the damage, which is logged: parcels in
/// the rest of the piece are not found, but nothing else is affected.
fn for_each_entry(piece: &[u8], mut take: impl FnMut(&[u8])) {
    let (mut entry, mut rest) = (Entry::new(), piece);
    while !rest.is_empty() {
        let Some(next) = read_entry(rest, &mut entry) else {
            tracing::error!(bytes = piece.len(), "a piece of the search's index is damaged");
            return;
        };
        take(&entry);
        rest = next;
    }
}

/// Turns `entry`, the previous entry, into the next entry, read from the start of `bytes`. Returns the bytes after it.
fn read_entry<'p>(bytes: &'p [u8], entry: &mut Entry) -> Option<&'p [u8]> {
    let (&[common, low, high], rest) = bytes.split_first_chunk::<3>()?;
    let (own, rest) = rest.split_at_checked(u16::from_le_bytes([low, high]).into())?;
    if usize::from(common) > entry.len() {
        return None;
    }
    entry.truncate(common.into());
    entry.extend(own);
    Some(rest)
}

/// Returns a piece without some of its entries, or `None` if it has none of those entries.
pub(super) fn remove_entries(piece: &[u8], is_gone: impl Fn(&Entry) -> bool) -> Option<Vec<Piece>> {
    let mut entries = unpack(piece);
    let before = entries.len();
    entries.retain(|entry| !is_gone(entry));
    (entries.len() < before || before == 0).then(|| pack(&entries))
}

/// Returns the entries after `after` in the runs being merged, as far as all runs were read; no entries if the merge is
/// done. Each run is passed as the piece in which `after` is, or would be, and the next pieces.
pub(super) fn merge(after: &[u8], runs: &[Vec<Vec<u8>>]) -> Vec<Entry> {
    let mut until: Option<Entry> = None;
    let mut merged = Vec::new();
    for pieces in runs {
        let entries: Vec<Entry> = pieces.iter().flat_map(|piece| unpack(piece)).collect();
        if pieces.len() == PIECES_PER_READ
            && let Some(last) = entries.last()
            && until.as_ref().is_none_or(|until| last < until)
        {
            until = Some(last.clone());
        }
        merged.extend(entries.into_iter().filter(|entry| entry.as_slice() > after));
    }
    if let Some(until) = until {
        merged.retain(|entry| *entry <= until);
    }
    merged.sort_unstable();
    merged.dedup();
    merged
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entries(parcels: std::ops::Range<i64>) -> Vec<Entry> {
        let mut entries: Vec<_> = parcels
            .flat_map(|parcel| ["nsb", "wana", "wanabel"].map(|term| (term, parcel)))
            .map(|(term, parcel)| entry(&sortable_bytes(1), term, (1_000 - parcel, parcel)))
            .collect();
        entries.sort_unstable();
        entries
    }

    #[test]
    fn an_entry_sorts_by_scope_then_term_then_position() {
        let sorted = [
            entry(&sortable_bytes(-1), "wz", (9, 9)),
            entry(&sortable_bytes(1), "wana", (i64::MIN, 5)),
            entry(&sortable_bytes(1), "wana", (-1, 5)),
            entry(&sortable_bytes(1), "wana", (7, 4)),
            entry(&sortable_bytes(1), "wana", (7, 5)),
            entry(&sortable_bytes(1), "wanabel", (0, 0)),
            entry(&sortable_bytes(2), "n", (0, 0)),
        ];
        assert!(sorted.is_sorted());
        assert_eq!(position(&sorted[2]), Some((-1, 5)));
        assert_eq!(position(b"short"), None);
    }

    #[test]
    fn bounds_match_one_scope_and_a_term_prefix() {
        let pieces = pack(&entries(0..300));
        assert!(pieces.len() > 3, "several pieces, or this shows little");
        let count = |scope: i64, beginning| {
            let bounds = Bounds::new(&sortable_bytes(scope), beginning);
            let mut positions = Vec::new();
            for piece in &pieces {
                bounds.add_positions(&piece.entries, &mut positions);
            }
            positions.len()
        };
        let found = [count(1, "wana"), count(1, "wanab"), count(1, "wanax"), count(2, "wana")];
        assert_eq!(found, [600, 300, 0, 0]);
    }

    #[test]
    fn a_damaged_piece_ends_where_it_is_damaged() {
        let all = entries(0..3);
        let piece = pack(&all).remove(0).entries;
        for end in 0..piece.len() {
            let left = unpack(&piece[..end]);
            assert!(left.len() < all.len() && all.starts_with(&left), "{end}");
        }
        assert!(unpack(&[9, 0, 0]).is_empty(), "in common with nothing");
        let gone = remove_entries(&[9, 0, 0], |_| false);
        assert_eq!(gone, Some(Vec::new()), "nothing is left of it when it is met");
    }

    #[test]
    fn removing_the_last_entry_removes_the_piece() {
        let all = entries(0..2);
        let piece = pack(&all).remove(0);
        let rest = remove_entries(&piece.entries, |entry| *entry == all[0]).unwrap();
        assert_eq!(unpack(&rest[0].entries), all[1..]);
        assert_eq!(rest[0].first, all[1]);
        assert_eq!(
            remove_entries(&rest[0].entries, |entry| *entry == all[0]),
            None,
            "it is not in there"
        );
        let last = pack(&all[..1]).remove(0);
        assert_eq!(remove_entries(&last.entries, |_| true), Some(Vec::new()));
    }

    /// Merges runs as the stores do: each run is read from the piece of the last merged entry on.
    fn merge_all(runs: &[Vec<Piece>]) -> Vec<Entry> {
        let mut merged: Vec<Entry> = Vec::new();
        loop {
            let after = merged.last().cloned().unwrap_or_default();
            let sources: Vec<Vec<Vec<u8>>> = runs
                .iter()
                .map(|run| {
                    let from = run.iter().rposition(|piece| piece.first <= after).unwrap_or(0);
                    let pieces = run.iter().skip(from).take(PIECES_PER_READ);
                    pieces.map(|piece| piece.entries.clone()).collect()
                })
                .collect();
            let next = merge(&after, &sources);
            if next.is_empty() {
                return merged;
            }
            merged.extend(next);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn packed_and_merged_entries_are_complete_and_in_order(
            mut runs in prop::collection::vec(
                prop::collection::vec(prop::collection::vec(any::<u8>(), 16..400), 0..60), 0..6,
            ),
        ) {
            let mut all: Vec<_> = runs.concat();
            all.sort_unstable();
            all.dedup();
            for run in &mut runs {
                run.sort_unstable();
                run.dedup();
            }
            let packed: Vec<_> = runs.iter().map(|run| pack(run)).collect();
            for (run, pieces) in runs.iter().zip(&packed) {
                let unpacked: Vec<_> =
                    pieces.iter().flat_map(|piece| unpack(&piece.entries)).collect();
                prop_assert_eq!(&unpacked, run);
            }
            prop_assert_eq!(merge_all(&packed), all);
        }
    }
}
