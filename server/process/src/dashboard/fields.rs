//! The fields of submitted forms, and the checks that a form comes from the dashboard.

use axum::{body::Body, http::HeaderMap};
use parcelo_domain::Refusal;
use parcelo_service::http::{Api, HttpRefusal, MAX_BODY_BYTES, body::has_content_type, read_body};
use parcelo_types::ErrorCode;
use url::{Url, form_urlencoded};

/// Name of the field with the token that binds a form to its holder.
pub(super) const TOKEN: &str = "form";

/// The fields of a form.
#[derive(Default, Clone)]
pub(super) struct FormFields(Vec<(String, String)>);

impl FormFields {
    /// Reads a form, and refuses one that comes from another site.
    pub(super) async fn read(headers: &HeaderMap, body: Body) -> Result<Self, HttpRefusal> {
        let is_form = has_content_type(headers, "application/x-www-form-urlencoded");
        if !is_same_origin(headers) || !is_form {
            return Err(ErrorCode::FormNotAccepted.into());
        }
        Ok(Self::parse(&read_body(body, MAX_BODY_BYTES).await.map_err(Refusal::from)?))
    }

    /// Parses the fields of a URL-encoded form or query.
    pub(super) fn parse(text: &[u8]) -> Self {
        Self(form_urlencoded::parse(text).into_owned().collect())
    }

    /// Refuses a form whose token was not issued for this cookie.
    pub(super) fn check_token(&self, api: &Api, cookie: &str) -> Result<(), HttpRefusal> {
        if api.service.is_form_token(cookie, self.text(TOKEN)) {
            Ok(())
        } else {
            Err(ErrorCode::FormNotAccepted.into())
        }
    }

    /// Encodes all fields except `without`, as a browser does.
    pub(super) fn encode_without(&self, without: &str) -> String {
        let mut encoded = form_urlencoded::Serializer::new(String::new());
        encoded.extend_pairs(self.0.iter().filter(|(name, _)| name != without));
        encoded.finish()
    }

    /// Returns the value of a field, or an empty text if it is missing.
    pub(super) fn text(&self, name: &str) -> &str {
        self.all(name).next().unwrap_or_default()
    }

    /// Returns all values that were chosen under a name.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Returns `false` if the browser's headers say that the form comes from another origin. A page cannot forge these
/// headers. The token of the form is checked in any case.
fn is_same_origin(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = text("sec-fetch-site") {
        return site == "same-origin";
    }
    let (Some(origin), Some(host)) = (text("origin"), text("host")) else { return true };
    let Ok(origin) = Url::parse(origin) else { return false };
    // A proxy may end TLS, so the scheme is not compared.
    let site = |scheme: &str| Url::parse(&format!("{scheme}://{host}")).ok();
    site(origin.scheme()).is_some_and(|site| site.origin() == origin.origin())
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn a_form_from_another_origin_is_refused() {
        let table: [(&[(&str, &str)], bool); 9] = [
            (&[], true),
            (&[("sec-fetch-site", "same-origin"), ("origin", "null")], true),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "cross-site")], false),
            (&[("sec-fetch-site", "none")], false),
            (&[("host", "127.0.0.1:8082"), ("origin", "http://127.0.0.1:8082")], true),
            (&[("host", "parcelo.example"), ("origin", "https://parcelo.example")], true),
            (&[("host", "127.0.0.1:8082"), ("origin", "http://127.0.0.1:8083")], false),
            (&[("host", "127.0.0.1:8082"), ("origin", "null")], false),
        ];
        for (pairs, is_same) in table {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            assert_eq!(is_same_origin(&headers), is_same, "{pairs:?}");
        }
    }
}
