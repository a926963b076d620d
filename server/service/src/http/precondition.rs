//! Conditional requests: a caller may have a file already, or want another version of it.

use axum::http::{HeaderMap, HeaderName, header};
use sha2::{Digest, Sha256};

use super::body;

/// The result of `If-Match` and `If-None-Match` (RFC 9110, 13).
pub(super) enum Precondition {
    /// The file is sent.
    Met,
    /// The caller has it already.
    Unchanged,
    /// The caller wants another version of it.
    Failed,
}

impl Precondition {
    /// Evaluates the headers for a file with this tag.
    pub(super) fn for_tag(headers: &HeaderMap, etag: &str) -> Self {
        let header = |name: &HeaderName| body::header_text(headers, name);
        let matches = |tag: &str| tag == "*" || tag == etag;
        // None of our tags contains a comma, so splitting at commas is enough.
        let tags =
            |list: &str| list.split(',').map(|tag| tag.trim().to_owned()).collect::<Vec<_>>();
        // `If-Match` needs a strong tag: a weak one only says that two files are equivalent.
        let is_met =
            header(&header::IF_MATCH).is_none_or(|list| tags(&list).iter().any(|tag| matches(tag)));
        let matches_weakly = |tag: &String| matches(tag.strip_prefix("W/").unwrap_or(tag));
        match header(&header::IF_NONE_MATCH) {
            _ if !is_met => Self::Failed,
            Some(list) if tags(&list).iter().any(matches_weakly) => Self::Unchanged,
            Some(_) | None => Self::Met,
        }
    }
}

/// Returns the tag of these bytes: the same for the same bytes.
pub(super) fn etag(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    let hex: Vec<_> = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("\"{}\"", hex.concat())
}
