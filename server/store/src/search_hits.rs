//! The search algorithm, independent of the engine that stores the terms. It intersects the parcels of one word with
//! the parcels of the next, and loads parcels only if that is not enough. Its reads are bounded. If it reaches a bound,
//! the answer says that it may be incomplete.

use parcelo_domain::{
    Millis, ParcelListRow, State,
    search::{SearchWord, SearchableOrder},
};
use parcelo_types::internal::ListQuery;

/// Maximum number of terms that are read for a word. A word with more parcels would not narrow the search down; 50,000
/// terms are read in some 4 ms (`benches/search.rs`).
pub(super) const MAX_TERMS: usize = if cfg!(test) { 1_000 } else { 50_000 };
/// Maximum number of parcels that are loaded to be checked one by one.
pub(super) const MAX_LOADED: usize = 1_000;
/// Maximum number of parcels outside the index that a search checks. If there are more, the answer says so.
pub(super) const MAX_UNINDEXED: usize = 1_000;
/// Maximum number of parcels that are cheaper to load than to intersect with the parcels of another word.
const MAX_CHEAP_TO_LOAD: usize = 300;

/// A page of search results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchPage {
    /// The page's parcels, newest first.
    pub parcels: Vec<ParcelListRow>,
    /// Number of parcels found.
    pub total: u64,
    /// `false` if there may be more parcels than were found.
    pub is_complete: bool,
}

/// A parcel's position in a list: the time of its creation, and its row.
pub(super) type ListPosition = (i64, i64);

/// The parcels that have all words so far.
pub(super) struct Intersection {
    /// Sorted positions; `None` until a word has narrowed the search down.
    positions: Option<Vec<ListPosition>>,
    /// `true` if a word was skipped.
    has_skipped_words: bool,
    from: i64,
    to: i64,
}

impl Intersection {
    pub(super) fn new(query: &ListQuery) -> Self {
        let (from, to) = bounds(query);
        Self { positions: None, has_skipped_words: false, from, to }
    }

    /// Returns `true` if the parcels of another word are worth reading. Otherwise the word is skipped.
    pub(super) fn needs_next_word(&mut self) -> bool {
        let is_few =
            self.positions.as_ref().is_some_and(|positions| positions.len() <= MAX_CHEAP_TO_LOAD);
        self.has_skipped_words |= is_few;
        !is_few
    }

    /// Intersects the remaining parcels with those of a word. `None` means that the word has too many.
    pub(super) fn intersect(&mut self, word: Option<Vec<ListPosition>>) {
        let Some(word) = word else {
            self.has_skipped_words = true;
            return;
        };
        let (from, to) = (self.from, self.to);
        let mut word: Vec<ListPosition> =
            word.into_iter().filter(|position| (from..to).contains(&position.0)).collect();
        word.sort_unstable();
        word.dedup();
        if let Some(positions) = &self.positions {
            word.retain(|position| positions.binary_search(position).is_ok());
        }
        self.positions = Some(word);
    }

    /// Returns the remaining parcels, and `true` if they must be loaded and checked. The parcels are `None` if no word
    /// narrowed the search down.
    pub(super) fn into_positions(self) -> (Option<Vec<ListPosition>>, bool) {
        (self.positions, self.has_skipped_words)
    }
}

/// The parcels that were found for the alternatives so far.
pub(super) struct SearchHits {
    /// Sorted positions, without duplicates.
    positions: Vec<ListPosition>,
    pub(super) is_complete: bool,
}

impl SearchHits {
    pub(super) const fn new() -> Self {
        Self { positions: Vec::new(), is_complete: true }
    }

    /// Adds the loaded parcels that have all words and match the query.
    pub(super) fn add_wanted(
        &mut self,
        loaded: &[(ListPosition, LoadedParcel)],
        words: &[SearchWord],
        query: &ListQuery,
    ) {
        let (from, to) = bounds(query);
        let in_time = |position: &ListPosition| (from..to).contains(&position.0);
        let wanted = loaded
            .iter()
            .filter(|(position, one)| in_time(position) && one.is_wanted(words, query));
        self.add(wanted.map(|(position, _)| *position));
    }

    pub(super) fn add(&mut self, positions: impl IntoIterator<Item = ListPosition>) {
        let before = self.positions.len();
        self.positions.extend(positions);
        if self.positions.len() > before {
            self.positions.sort_unstable();
            self.positions.dedup();
        }
    }

    pub(super) fn total(&self) -> u64 {
        self.positions.len() as u64
    }

    /// Returns the rows of a page, newest first.
    pub(super) fn page(&self, query: &ListQuery) -> Vec<i64> {
        let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
        let pages = usize::try_from(query.page - 1).unwrap_or(usize::MAX);
        let newest = self.positions.iter().rev().skip(pages.saturating_mul(limit));
        newest.take(limit).map(|(_, row)| *row).collect()
    }
}

/// Returns the newest parcels, as many as may be loaded, and `true` if there are no others.
pub(super) fn newest_to_load(mut positions: Vec<ListPosition>) -> (Vec<ListPosition>, bool) {
    positions.sort_unstable_by(|one, other| other.cmp(one));
    let are_all = positions.len() <= MAX_LOADED;
    positions.truncate(MAX_LOADED);
    (positions, are_all)
}

/// Returns the bounds of a query's times of creation: the first time, and the first time after the last.
pub(super) fn bounds(query: &ListQuery) -> (i64, i64) {
    let millis = |time| Millis::from(time).0;
    (query.created_from.map_or(i64::MIN, millis), query.created_to.map_or(i64::MAX, millis))
}

/// Returns `true` if a query has a filter that only a parcel's row can answer.
pub(super) const fn has_filters(query: &ListQuery) -> bool {
    query.status.is_some() || query.country.is_some() || query.external_order_id.is_some()
}

/// A parcel that was loaded to be checked.
pub(super) struct LoadedParcel {
    pub(super) number: String,
    pub(super) state: State,
    pub(super) country: String,
    pub(super) external_order_id: Option<String>,
    pub(super) order: SearchableOrder,
    pub(super) awb: Option<String>,
}

impl LoadedParcel {
    /// Returns `true` if the parcel has all words and matches the query.
    pub(super) fn is_wanted(&self, words: &[SearchWord], query: &ListQuery) -> bool {
        let terms = self.order.searchable_fields(&self.number).terms();
        words.iter().all(|word| word.matches(&terms, self.awb.as_deref()))
            && query
                .status
                .as_ref()
                .is_none_or(|status| State::from_status(status) == Some(self.state))
            && query.country.is_none_or(|country| country.as_str() == self.country)
            && query
                .external_order_id
                .as_ref()
                .is_none_or(|id| Some(id) == self.external_order_id.as_ref())
    }
}
