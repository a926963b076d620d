//! The headers of any HTTP library, as bytes.

use super::WebhookError;

/// The headers of a message. It is implemented for `http::HeaderMap` (axum, hyper, warp) and for slices of names
/// and values; implement it for others.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use parcelo::webhook::Headers;
///
/// struct Lambda(BTreeMap<String, String>); // the type of your platform
///
/// impl Headers for Lambda {
///     fn values<'h>(&'h self, name: &str) -> Vec<&'h [u8]> {
///         let named = self.0.iter().filter(|(given, _)| given.eq_ignore_ascii_case(name));
///         named.map(|(_, value)| value.as_bytes()).collect()
///     }
/// }
/// # let headers = Lambda([("Webhook-Id".to_owned(), "evt_1".to_owned())].into());
/// # assert_eq!(headers.values("webhook-id"), [b"evt_1"]);
/// ```
pub trait Headers {
    /// Returns all values of a header; `name` is in lower case.
    fn values<'h>(&'h self, name: &str) -> Vec<&'h [u8]>;
}

impl Headers for http::HeaderMap {
    fn values<'h>(&'h self, name: &str) -> Vec<&'h [u8]> {
        self.get_all(name).iter().map(http::HeaderValue::as_bytes).collect()
    }
}

impl<N: AsRef<str>, V: AsRef<[u8]>> Headers for [(N, V)] {
    fn values<'h>(&'h self, name: &str) -> Vec<&'h [u8]> {
        let named = self.iter().filter(|(given, _)| given.as_ref().eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_ref()).collect()
    }
}

/// Returns the value of a header that must appear once.
pub(super) fn single_value<'h>(
    headers: &'h (impl Headers + ?Sized),
    name: &'static str,
) -> Result<&'h [u8], WebhookError> {
    match headers.values(name).as_slice() {
        [] => Err(WebhookError::HeaderMissing(name)),
        [value] => Ok(value),
        [_, ..] => Err(WebhookError::HeaderRepeated(name)),
    }
}
