//! One call of an operation, and the HTTP request that each of its attempts sends.

use std::{ops::RangeInclusive, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method as HttpMethod, Uri, header::CONTENT_TYPE};
use parcelo_types::{
    IdempotencyKey, Operation,
    internal::{Idempotency, Method, header, hex},
};
use serde::Serialize;
use sha2::{Digest, Sha256};
use url::{Url, form_urlencoded::Serializer};

use super::{
    Client, Error, ErrorKind, body::ReadTimeout, builder::Headers, call_state::CallState,
    clock::Deadline, error::Texts,
};

/// Maximum size of JSON that is read: far more than any response of the service, none of which has more than 500 rows.
pub(super) const MAX_JSON_BYTES: u64 = 8 << 20;
/// Maximum size of a label that is read: far more than the tens of KB that a label takes.
const MAX_LABEL_BYTES: u64 = 16 << 20;

/// The destination of a call.
#[derive(Debug, Clone, Copy)]
enum Target<'a> {
    /// The operation's path, with this value of its parameter.
    Path(&'a str),
    /// A link from one of the service's responses, which opens without the key.
    Link(&'a Url),
    /// Any method and path under the service's address.
    Raw(&'a HttpMethod, &'a str),
}

/// A call of an operation.
#[derive(Debug)]
pub(super) struct Call<'a> {
    /// `None` when method and path belong to no operation.
    pub(super) operation: Option<Operation>,
    target: Target<'a>,
    query: &'a [(&'a str, &'a str)],
    body: Option<Bytes>,
    idempotency_key: Option<&'a IdempotencyKey>,
}

impl<'a> Call<'a> {
    pub(super) fn new(operation: Operation) -> Self {
        Self::with_target(Some(operation), Target::Path(""))
    }

    /// Returns a call of any method and path.
    pub(super) fn raw(method: &'a HttpMethod, path: &'a str, operation: Option<Operation>) -> Self {
        Self::with_target(operation, Target::Raw(method, path))
    }

    fn with_target(operation: Option<Operation>, target: Target<'a>) -> Self {
        Self { operation, target, query: &[], body: None, idempotency_key: None }
    }

    /// Sets the value in the braces of the operation's path.
    pub(super) fn path_parameter(self, parameter: &'a str) -> Self {
        Self { target: Target::Path(parameter), ..self }
    }

    /// Sets a link from one of the service's responses, in place of the operation's path.
    pub(super) fn link(self, link: &'a Url) -> Self {
        Self { target: Target::Link(link), ..self }
    }

    pub(super) fn query(self, query: &'a [(&'a str, &'a str)]) -> Self {
        Self { query, ..self }
    }

    /// Sets the body, serialised once, so that every attempt sends the same bytes.
    pub(super) fn json_body(self, body: &impl Serialize) -> Result<Self, Error> {
        const NOT_SERIALISABLE: Texts = (
            "The request cannot be written as JSON.",
            "La solicitud no se puede escribir en JSON.",
        );
        let body = serde_json::to_vec(body)
            .map_err(|_| Error::new(ErrorKind::Validation, NOT_SERIALISABLE))?;
        Ok(self.body(body.into()))
    }

    /// Sets a body that is serialised already.
    pub(super) fn body(self, body: Bytes) -> Self {
        Self { body: Some(body), ..self }
    }

    /// Sets the idempotency key in the body.
    pub(super) fn idempotency_key(self, key: &'a IdempotencyKey) -> Self {
        Self { idempotency_key: Some(key), ..self }
    }

    /// Returns the state of the call before it is sent.
    pub(super) fn initial_state(&self) -> CallState {
        CallState {
            attempts: 0,
            idempotency_key: self.idempotency_key.cloned(),
            is_write: self.is_write(),
            was_sent: false,
            outcome_unknown: false,
        }
    }

    /// Returns `true` if the call changes something.
    fn is_write(&self) -> bool {
        match self.operation {
            Some(operation) => operation.idempotency() != Idempotency::Reads,
            None => !self.method().is_safe(),
        }
    }

    /// Returns `true` if sending it twice has the effect of sending it once.
    fn is_repeatable(&self) -> bool {
        match self.operation {
            Some(operation) => operation.is_repeatable(),
            None => self.method().is_safe(),
        }
    }

    pub(super) fn method(&self) -> HttpMethod {
        match (self.target, self.operation.map(Operation::method)) {
            (Target::Raw(method, _), _) => method.clone(),
            (_, Some(Method::Post)) => HttpMethod::POST,
            (_, Some(Method::Get) | None) => HttpMethod::GET,
        }
    }

    /// Returns the request that every attempt sends.
    pub(super) fn prepare(&self, client: &Client) -> Result<PreparedRequest, Error> {
        const INVALID_ADDRESS: Texts = (
            "The address of the request is invalid.",
            "La dirección de la solicitud no es válida.",
        );
        let base = client.base_url();
        let uri = match self.target {
            Target::Path(parameter) => self.operation_url(base.as_str(), parameter),
            Target::Link(link) => link.as_str().to_owned(),
            Target::Raw(_, path) => join(base.as_str(), path),
        };
        let uri = Uri::try_from(uri)
            .map_err(|error| Error::config(INVALID_ADDRESS).with_source(error))?;
        Ok(PreparedRequest {
            method: self.method(),
            template: self.path_template(),
            uri,
            recipient: self.recipient(base),
            downloads_file: matches!(
                self.operation,
                Some(
                    Operation::DownloadLabel | Operation::BatchLabels | Operation::DownloadInvoice
                )
            ),
            is_repeatable: self.is_repeatable(),
            body: self.body.clone(),
        })
    }

    /// Returns the path without its parameters, for logs.
    pub(super) fn path_template(&self) -> &'static str {
        match self.target {
            Target::Link(_) => "{labelUrl}",
            Target::Path(_) | Target::Raw(..) => self.operation.map_or("{path}", Operation::path),
        }
    }

    fn recipient(&self, base: &Url) -> Recipient {
        match self.target {
            Target::Path(_) | Target::Raw(..) => Recipient::Service,
            Target::Link(link) if link.origin() == base.origin() => Recipient::PublicLink,
            Target::Link(_) => Recipient::OtherOrigin,
        }
    }

    fn operation_url(&self, base: &str, parameter: &str) -> String {
        let path = self.operation.map(|operation| operation.path_of(parameter));
        let mut url = join(base, &path.unwrap_or_default());
        if self.query.is_empty() {
            return url;
        }
        url.push('?');
        let start = url.len();
        Serializer::for_suffix(url, start).extend_pairs(self.query).finish()
    }
}

/// Returns a path under the service's address.
fn join(base: &str, path: &str) -> String {
    let base = base.trim_end_matches('/');
    // The capacity includes a query, so that adding one does not allocate again.
    let mut url = String::with_capacity(base.len() + path.len() + 64);
    url.push_str(base);
    url.push_str(path);
    url
}

/// The recipient of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Recipient {
    /// The API of the service.
    Service,
    /// A public page of the service behind a link: it needs no key and does not count towards the rate limit.
    PublicLink,
    /// Another origin, to which a link leads.
    OtherOrigin,
}

/// The request that every attempt of a call sends: the same bytes to the same address.
#[derive(Debug)]
pub(super) struct PreparedRequest {
    pub(super) method: HttpMethod,
    pub(super) template: &'static str,
    uri: Uri,
    recipient: Recipient,
    downloads_file: bool,
    /// Sending it twice has the effect of sending it once.
    pub(super) is_repeatable: bool,
    body: Option<Bytes>,
}

impl PreparedRequest {
    /// Returns the HTTP request of one attempt.
    pub(super) fn to_http(&self, headers: &Headers) -> http::Request<Bytes> {
        let mut request = http::Request::new(self.body.clone().unwrap_or_default());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers(headers);
        if self.body.is_some() {
            let json = HeaderValue::from_static("application/json");
            request.headers_mut().insert(CONTENT_TYPE, json);
        }
        request
    }

    fn headers(&self, headers: &Headers) -> HeaderMap {
        match self.recipient {
            Recipient::Service => headers.to_service(),
            Recipient::PublicLink => {
                let mut headers = headers.to_service();
                headers.remove(header::API_KEY);
                headers
            }
            Recipient::OtherOrigin => headers.to_other_origin(),
        }
    }

    /// Returns a digest that differs for every API key, address and body.
    pub(super) fn digest(&self, headers: &Headers) -> String {
        let (uri, body) = (self.uri.to_string(), self.body.as_deref().unwrap_or_default());
        let mut hash = Sha256::new();
        for part in [headers.api_key(), uri.as_bytes(), body] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hex(&hash.finalize())
    }

    /// Returns `true` if it counts towards the key's rate limit.
    pub(super) fn is_rate_limited(&self) -> bool {
        self.recipient == Recipient::Service
    }

    /// Returns the permitted size of the response's body; a label is not empty.
    pub(super) fn body_size(&self) -> RangeInclusive<u64> {
        if self.downloads_file { 1..=MAX_LABEL_BYTES } else { 0..=MAX_JSON_BYTES }
    }

    /// Returns the limit for reading the response's body: a label while chunks arrive, JSON until the attempt's deadline.
    pub(super) fn read_timeout(&self, deadline: Deadline, idle: Duration) -> ReadTimeout {
        if self.downloads_file {
            ReadTimeout::BetweenChunks(idle)
        } else {
            ReadTimeout::WholeBody(deadline)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_base_path_parameter_and_query() {
        let call = Call::new(Operation::GetTracking);
        let path = "/api/v1/tracking/EC7K2M9QX4T8WD0";
        for base in
            ["http://h", "http://h/", "http://h:81/a/b", "http://h:81/a/b/", "http://[::1]:9"]
        {
            let expected = format!("{}{path}", base.trim_end_matches('/'));
            assert_eq!(call.operation_url(base, "EC7K2M9QX4T8WD0"), expected);
        }
        let query = [("format", "PDF"), ("odd", "a b&c=ñ")];
        let queried = Call::new(Operation::Health).query(&query);
        assert_eq!(
            queried.operation_url("http://h", ""),
            "http://h/api/v1/health?format=PDF&odd=a+b%26c%3D%C3%B1"
        );
    }
}
