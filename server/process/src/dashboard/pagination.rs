//! Pagination of long lists.

use super::fields::FormFields;

/// Number of the last page that an address can name.
const MAX_PAGE: u32 = 1_000_000;

/// The links to the neighbouring pages.
pub(super) struct Pagination {
    pub(super) newer: Option<String>,
    pub(super) older: Option<String>,
    /// The page's number and the number of pages, if pages are counted.
    pub(super) position: Option<String>,
}

impl Pagination {
    pub(super) fn new(page: u32, has_older: bool, address: impl Fn(u32) -> String) -> Self {
        Self {
            newer: (page > 1).then(|| address(page - 1)),
            older: has_older.then(|| address(page + 1)),
            position: None,
        }
    }

    /// Returns `true` if there is another page.
    pub(super) fn has_other_pages(&self) -> bool {
        self.newer.is_some() || self.older.is_some()
    }
}

/// Returns the page that the query names, or the first page.
pub(super) fn requested_page(query: &FormFields) -> u32 {
    query.text("page").parse().unwrap_or(1).clamp(1, MAX_PAGE)
}

/// Returns the number of entries on the previous pages.
pub(super) fn offset(page: u32, page_size: usize) -> usize {
    usize::try_from(page - 1).unwrap_or(usize::MAX).saturating_mul(page_size)
}

/// Returns the address of a page of a list that has no other query.
pub(super) fn address(path: &str, page: u32) -> String {
    if page > 1 { format!("{path}?page={page}") } else { path.to_owned() }
}
