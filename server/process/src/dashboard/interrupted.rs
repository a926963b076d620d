//! The page on which a session ended. After signing in, the browser returns to it, and its form is shown with the
//! fields that were filled in. The form is never sent automatically, because the user may have changed their mind, or
//! may be someone else.

use parcelo_service::http::body::parse_environment;
use parcelo_types::Environment;
use url::form_urlencoded;

use super::{
    PATH_PREFIX,
    fields::{FormFields, TOKEN},
    frame::Section,
};

/// Names of the hidden fields of the sign-in form that hold the interrupted page.
const NEXT_FIELD: &str = "next";
const FILLED_FIELD: &str = "filled";
/// Maximum length of an address to return to. A longer address is replaced by the overview's.
const MAX_ADDRESS_BYTES: usize = 1000;
/// Maximum length of the form that the sign-in form repeats in a hidden field, so that a password still fits.
const MAX_FILLED_BYTES: usize = 4 * 1024;

/// A page that has a form with text fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FormPage {
    NewKey,
    Webhook(Environment),
    Settings,
    Parcels,
}

impl FormPage {
    const ALL: [Self; 5] = [
        Self::NewKey,
        Self::Webhook(Environment::Production),
        Self::Webhook(Environment::Sandbox),
        Self::Settings,
        Self::Parcels,
    ];

    /// Returns the page's path.
    pub(super) const fn path(self) -> &'static str {
        match self {
            Self::NewKey => "/dashboard/keys/new",
            Self::Webhook(Environment::Production) => "/dashboard/webhooks/production",
            Self::Webhook(Environment::Sandbox) => "/dashboard/webhooks/sandbox",
            Self::Settings => "/dashboard/settings",
            Self::Parcels => "/dashboard/parcels",
        }
    }
}

/// A page and the fields that were filled in there.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct InterruptedPage {
    /// An address of the dashboard; empty for the overview.
    pub(super) next: String,
    /// The form's fields as a browser encodes them.
    pub(super) filled: String,
}

impl InterruptedPage {
    /// Creates the record of a page that was requested.
    pub(super) fn from_page(address: &str) -> Self {
        let address = address.trim_end_matches('?');
        let next = if is_dashboard_url(address) && address != PATH_PREFIX { address } else { "" };
        Self { next: next.to_owned(), filled: String::new() }
    }

    /// Creates the record of a form that was sent to this path.
    pub(super) fn from_form(path: &str, fields: &FormFields) -> Self {
        let page = Self::from_page(form_page_path(path));
        // A page's buttons are forms too, but have no text fields.
        let is_button = path.starts_with(&page.next) && path != page.next;
        let encoded = fields.encode_without(TOKEN);
        let has_form = form_page(&page.next).is_some() || is_parcel(&page.next);
        let is_kept = !is_button && has_form && encoded.len() <= MAX_FILLED_BYTES;
        Self { filled: if is_kept { encoded } else { String::new() }, ..page }
    }

    /// Reads the page from the sign-in form, or from the address of the sign-in page.
    pub(super) fn from_fields(fields: &FormFields) -> Self {
        let page = Self::from_page(fields.text(NEXT_FIELD));
        let filled = fields.text(FILLED_FIELD);
        let filled = if filled.len() > MAX_FILLED_BYTES { "" } else { filled };
        Self { filled: filled.to_owned(), ..page }
    }

    /// Returns the address of the sign-in page that leads back here. No address contains fields.
    pub(super) fn sign_in_address(&self, sign_in: &str) -> String {
        if self.next.is_empty() {
            return sign_in.to_owned();
        }
        let mut query =
            form_urlencoded::Serializer::for_suffix(format!("{sign_in}?"), sign_in.len() + 1);
        query.append_pair(NEXT_FIELD, &self.next).finish()
    }

    /// Returns the address to which the browser goes after signing in.
    pub(super) fn address(&self) -> &str {
        if self.next.is_empty() { PATH_PREFIX } else { &self.next }
    }

    /// Returns `true` if the form was a button of a parcel's page, which has no text fields.
    pub(super) fn is_button(&self) -> bool {
        !self.filled.is_empty() && is_parcel(&self.next)
    }

    /// Returns the page whose form was interrupted, and its fields.
    pub(super) fn filled_form(&self) -> Option<(FormPage, FormFields)> {
        let page = form_page(&self.next).filter(|_| !self.filled.is_empty())?;
        Some((page, FormFields::parse(self.filled.as_bytes())))
    }
}

/// Returns the page with the form that is sent to a path.
fn form_page_path(path: &str) -> &str {
    if path == Section::Keys.path() {
        return FormPage::NewKey.path();
    }
    let is_button = |page: &FormPage| {
        let below = path.strip_prefix(page.path());
        matches!(page, FormPage::Webhook(_) | FormPage::Settings)
            && below.is_some_and(|below| below.starts_with('/'))
    };
    FormPage::ALL.iter().find(|page| is_button(page)).map_or(path, |page| page.path())
}

/// Returns the page with a form at this address.
fn form_page(address: &str) -> Option<FormPage> {
    FormPage::ALL.into_iter().find(|page| page.path() == address)
}

/// Returns `true` for the page of a parcel, whose buttons are sent to its own address.
fn is_parcel(address: &str) -> bool {
    let below = address.strip_prefix(FormPage::Parcels.path());
    let mut parts = below.unwrap_or_default().split('/').skip(1);
    parts.next().and_then(parse_environment).is_some()
        && parts.next().is_some_and(|number| !number.is_empty() && !number.contains('?'))
        && parts.next().is_none()
}

/// Returns `true` only for a URL of the dashboard to which it is safe to redirect. Browsers read `//host`, `/\host` and
/// URLs with control characters as other sites.
fn is_dashboard_url(address: &str) -> bool {
    let Some(below) = address.strip_prefix(PATH_PREFIX) else { return false };
    let path = below.split('?').next().unwrap_or_default();
    let is_below = below.is_empty() || below.starts_with(['/', '?']);
    let is_printable = address.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    let has_no_traversal =
        !path.contains("//") && !path.split('/').any(|part| part.starts_with('.'));
    let is_not_sign_in = !path.starts_with("/sign-");
    address.len() <= MAX_ADDRESS_BYTES
        && is_below
        && is_printable
        && has_no_traversal
        && is_not_sign_in
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signing_in_redirects_to_dashboard_pages_only() {
        let long = format!("/dashboard/{}", "a".repeat(1000));
        let table = [
            ("/dashboard/parcels?environment=sandbox&page=2", true),
            ("/dashboard/parcels/sandbox/SB-SUCCESS-0001", true),
            ("/dashboard?lang=es", true),
            ("", false),
            ("/", false),
            ("/dashboards", false),
            ("/dashboard", false),
            ("/dashboard?", false),
            ("//evil.example/dashboard", false),
            ("https://evil.example/dashboard/keys", false),
            ("/dashboard//evil.example", false),
            ("/dashboard/../admin", false),
            ("/dashboard/./keys", false),
            ("/dashboard\\@evil.example", false),
            ("/dashboard/keys\r\nset-cookie: a=1", false),
            ("/dashboard/\u{202e}keys", false),
            ("/dashboard/sign-out", false),
            ("/dashboard/sign-in?next=/dashboard/keys", false),
            ("javascript:alert(1)", false),
            (&long, false),
        ];
        for (address, is_kept) in table {
            let interrupted = InterruptedPage::from_page(address);
            assert_eq!(interrupted.next == address && !address.is_empty(), is_kept, "{address:?}");
            assert!(is_kept || interrupted.address() == PATH_PREFIX, "{address:?}");
        }
    }

    #[test]
    fn a_form_is_restored_on_its_own_page() {
        let sent = FormFields::parse(b"form=token&name=Shop+%26+Co&codes=EC&codes=MX");
        let table = [
            ("/dashboard/keys", "/dashboard/keys/new", Some(FormPage::NewKey)),
            ("/dashboard/settings", "/dashboard/settings", Some(FormPage::Settings)),
            ("/dashboard/parcels", "/dashboard/parcels", Some(FormPage::Parcels)),
            (
                "/dashboard/webhooks/sandbox",
                "/dashboard/webhooks/sandbox",
                Some(FormPage::Webhook(Environment::Sandbox)),
            ),
            ("/dashboard/webhooks/production/test", "/dashboard/webhooks/production", None),
            ("/dashboard/keys/key_1/revoke", "/dashboard/keys/key_1/revoke", None),
            ("/dashboard/settings/password", "/dashboard/settings", None),
            (
                "/dashboard/parcels/sandbox/SB-SUCCESS-0001",
                "/dashboard/parcels/sandbox/SB-SUCCESS-0001",
                None,
            ),
            ("/dashboard/parcels/labels", "/dashboard/parcels/labels", None),
            ("/dashboard/sign-out", "", None),
        ];
        for (path, next, page) in table {
            let interrupted = InterruptedPage::from_form(path, &sent);
            assert_eq!(interrupted.next, next, "{path}");
            let form = interrupted.filled_form();
            assert_eq!(form.as_ref().map(|(page, _)| *page), page, "{path}");
            assert_eq!(interrupted.is_button(), path.ends_with("0001"), "{path}");
            if let Some((_, filled)) = form {
                let without_token = "name=Shop+%26+Co&codes=EC&codes=MX";
                assert_eq!(filled.encode_without(""), without_token);
            }
        }
    }

    #[test]
    fn oversized_urls_and_forms_are_dropped() {
        let sent = format!("name={}", "a".repeat(MAX_FILLED_BYTES));
        let interrupted =
            InterruptedPage::from_form("/dashboard/settings", &FormFields::parse(sent.as_bytes()));
        assert_eq!(
            (interrupted.next.as_str(), interrupted.filled_form().is_none()),
            ("/dashboard/settings", true)
        );
        let mut returned_fields = form_urlencoded::Serializer::new(String::new());
        returned_fields
            .append_pair(NEXT_FIELD, "/dashboard/settings")
            .append_pair(FILLED_FIELD, &sent);
        let returned_fields = FormFields::parse(returned_fields.finish().as_bytes());
        assert_eq!(InterruptedPage::from_fields(&returned_fields).filled, "");
    }

    #[test]
    fn the_sign_in_url_names_the_interrupted_page() {
        let page =
            |address| InterruptedPage::from_page(address).sign_in_address("/dashboard/sign-in");
        assert_eq!(page("/dashboard"), "/dashboard/sign-in");
        assert_eq!(
            page("/dashboard/parcels?page=2&from=2026-01-01"),
            "/dashboard/sign-in?next=%2Fdashboard%2Fparcels%3Fpage%3D2%26from%3D2026-01-01"
        );
    }
}
