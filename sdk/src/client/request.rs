//! The request of a call: before it is sent, and as each attempt sends it.

use std::{fmt, ops::RangeInclusive, time::Duration};

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

/// A request that is not sent yet: its operation, address, body and idempotency key. `Debug` shows neither the address,
/// which contains tracking numbers, nor the body.
#[derive(Clone)]
pub(super) struct UnsentRequest {
    /// `None` when method and path belong to no operation.
    pub(super) operation: Option<Operation>,
    pub(super) method: HttpMethod,
    url: String,
    /// The path without its parameters, for logs.
    pub(super) template: &'static str,
    recipient: Recipient,
    body: Option<Bytes>,
    idempotency_key: Option<IdempotencyKey>,
}

impl UnsentRequest {
    /// Returns a request of an operation whose path has no parameter.
    pub(super) fn new(client: &Client, operation: Operation) -> Self {
        Self::with_parameter(client, operation, "")
    }

    /// Returns a request of an operation, with the value in the braces of its path.
    pub(super) fn with_parameter(client: &Client, operation: Operation, parameter: &str) -> Self {
        let method = match operation.method() {
            Method::Get => HttpMethod::GET,
            Method::Post => HttpMethod::POST,
        };
        Self::at(join(client.base_url(), &operation.path_of(parameter)), method, Some(operation))
    }

    /// Returns a request of a label by a link from one of the service's responses, which opens without the key.
    pub(super) fn of_link(client: &Client, link: &Url) -> Self {
        let is_of_service = link.origin() == client.base_url().origin();
        Self {
            template: "{labelUrl}",
            recipient: if is_of_service { Recipient::PublicLink } else { Recipient::OtherOrigin },
            ..Self::at(link.as_str().to_owned(), HttpMethod::GET, Some(Operation::DownloadLabel))
        }
    }

    /// Returns a request of any method and path under the service's address.
    pub(super) fn raw(
        client: &Client,
        method: HttpMethod,
        path: &str,
        operation: Option<Operation>,
    ) -> Self {
        Self::at(join(client.base_url(), path), method, operation)
    }

    fn at(url: String, method: HttpMethod, operation: Option<Operation>) -> Self {
        Self {
            operation,
            method,
            url,
            template: operation.map_or("{path}", Operation::path),
            recipient: Recipient::Service,
            body: None,
            idempotency_key: None,
        }
    }

    /// Adds a query to an address that has none.
    pub(super) fn query<'q>(self, query: impl IntoIterator<Item = (&'q str, &'q str)>) -> Self {
        let mut query = query.into_iter().peekable();
        if query.peek().is_none() {
            return self;
        }
        let mut url = self.url;
        url.push('?');
        let start = url.len();
        Self { url: Serializer::for_suffix(url, start).extend_pairs(query).finish(), ..self }
    }

    /// Sets the body, serialised once, so that every attempt sends the same bytes.
    pub(super) fn json_body(self, body: &impl Serialize) -> Result<Self, Error> {
        const NOT_SERIALISABLE: Texts = (
            "The request cannot be written as JSON.",
            "La solicitud no se puede escribir en JSON.",
        );
        // Most orders fit, so that the buffer does not grow while they are written.
        let mut json = Vec::with_capacity(1024);
        serde_json::to_writer(&mut json, body)
            .map_err(|_| Error::new(ErrorKind::Validation, NOT_SERIALISABLE))?;
        Ok(self.body(json.into()))
    }

    /// Sets a body that is serialised already.
    pub(super) fn body(self, body: Bytes) -> Self {
        Self { body: Some(body), ..self }
    }

    /// Sets the idempotency key in the body.
    pub(super) fn idempotency_key(self, key: &IdempotencyKey) -> Self {
        Self { idempotency_key: Some(key.clone()), ..self }
    }

    /// Returns `true` if the request changes something.
    fn is_write(&self) -> bool {
        match self.operation {
            Some(operation) => operation.idempotency() != Idempotency::Reads,
            None => !self.method.is_safe(),
        }
    }

    /// Returns `true` if sending it twice has the effect of sending it once.
    fn is_repeatable(&self) -> bool {
        match self.operation {
            Some(operation) => operation.is_repeatable(),
            None => self.method.is_safe(),
        }
    }

    /// Returns the request that every attempt sends, and the state of its call before the first one.
    pub(super) fn prepare(self) -> Result<(PreparedRequest, CallState), Error> {
        const INVALID_ADDRESS: Texts = (
            "The address of the request is invalid.",
            "La dirección de la solicitud no es válida.",
        );
        let (is_repeatable, is_write) = (self.is_repeatable(), self.is_write());
        let uri = Uri::try_from(self.url)
            .map_err(|error| Error::config(INVALID_ADDRESS).with_source(error))?;
        let request = PreparedRequest {
            method: self.method,
            template: self.template,
            uri,
            recipient: self.recipient,
            downloads_file: matches!(
                self.operation,
                Some(
                    Operation::DownloadLabel | Operation::BatchLabels | Operation::DownloadInvoice
                )
            ),
            is_repeatable,
            body: self.body,
        };
        let state = CallState {
            attempts: 0,
            idempotency_key: self.idempotency_key,
            is_write,
            was_sent: false,
            outcome_unknown: false,
        };
        Ok((request, state))
    }
}

impl fmt::Debug for UnsentRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.template)
    }
}

/// Returns a path under the service's address.
fn join(base: &Url, path: &str) -> String {
    let base = base.as_str().trim_end_matches('/');
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
    fn the_address_is_base_path_and_query() {
        let path = "/api/v1/tracking/EC7K2M9QX4T8WD0";
        for base in
            ["http://h", "http://h/", "http://h:81/a/b", "http://h:81/a/b/", "http://[::1]:9"]
        {
            let url = join(&Url::parse(base).unwrap(), path);
            assert_eq!(url, format!("{}{path}", base.trim_end_matches('/')));
            let request = UnsentRequest::at(url.clone(), HttpMethod::GET, None);
            assert_eq!(request.clone().query([]).url, url);
            let queried = request.query([("format", "PDF"), ("odd", "a b&c=ñ")]);
            assert_eq!(queried.url, url + "?format=PDF&odd=a+b%26c%3D%C3%B1");
        }
    }
}
