//! One call of an operation: what goes into its HTTP request, the same for every attempt.

use std::{ops::RangeInclusive, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method as HttpMethod, Uri, header::CONTENT_TYPE};
use serde::Serialize;
use sha2::{Digest, Sha256};
use url::{Url, form_urlencoded::Serializer};

use super::{Client, Error, ErrorKind, body::Pace, clock::Deadline, headers::Headers};
use crate::model::{Idempotency, IdempotencyKey, Method, Operation, header};

/// The most bytes of JSON that an honest answer has.
pub(super) const LONGEST_JSON: u64 = 8 << 20;
const LONGEST_FILE: u64 = 16 << 20;

/// Where a call goes.
#[derive(Debug, Clone, Copy)]
enum Target<'a> {
    /// To the operation's path, with what stands in its braces.
    Path(&'a str),
    /// To a link that the service gave out, which opens without the key.
    Link(&'a Url),
    /// To whatever the caller names, under the service's address.
    Raw(&'a HttpMethod, &'a str),
}

/// A call of an operation.
#[derive(Debug)]
pub(super) struct Call<'a> {
    /// None when the caller names a method and path that are no operation's.
    pub(super) operation: Option<Operation>,
    target: Target<'a>,
    query: &'a [(&'a str, &'a str)],
    body: Option<Bytes>,
    pub(super) idempotency_key: Option<&'a IdempotencyKey>,
}

impl<'a> Call<'a> {
    pub(super) fn new(operation: Operation) -> Self {
        Self::of(Some(operation), Target::Path(""))
    }

    /// A call that is known by its method and path alone.
    pub(super) fn raw(method: &'a HttpMethod, path: &'a str, operation: Option<Operation>) -> Self {
        Self::of(operation, Target::Raw(method, path))
    }

    fn of(operation: Option<Operation>, target: Target<'a>) -> Self {
        Self { operation, target, query: &[], body: None, idempotency_key: None }
    }

    /// What stands in the braces of the operation's path.
    pub(super) fn parameter(self, parameter: &'a str) -> Self {
        Self { target: Target::Path(parameter), ..self }
    }

    /// A link that the service gave out, instead of the operation's own path.
    pub(super) fn link(self, link: &'a Url) -> Self {
        Self { target: Target::Link(link), ..self }
    }

    pub(super) fn query(self, query: &'a [(&'a str, &'a str)]) -> Self {
        Self { query, ..self }
    }

    /// The body, serialised here and never again, so that every attempt sends the same bytes.
    pub(super) fn body(self, body: &impl Serialize) -> Result<Self, Error> {
        const UNWRITABLE: (&str, &str) = (
            "The request cannot be written as JSON.",
            "La solicitud no se puede escribir en JSON.",
        );
        let body =
            serde_json::to_vec(body).map_err(|_| Error::new(ErrorKind::Validation, UNWRITABLE))?;
        Ok(self.bytes(body.into()))
    }

    /// A body that is written already.
    pub(super) fn bytes(self, body: Bytes) -> Self {
        Self { body: Some(body), ..self }
    }

    /// The key that the body holds.
    pub(super) fn keyed(self, key: &'a IdempotencyKey) -> Self {
        Self { idempotency_key: Some(key), ..self }
    }

    /// Whether the call changes something.
    pub(super) fn writes(&self) -> bool {
        match self.operation {
            Some(operation) => operation.idempotency() != Idempotency::Reads,
            None => !self.method().is_safe(),
        }
    }

    /// Whether sending it twice is as good as once.
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

    /// What every attempt sends.
    pub(super) fn draft(&self, client: &Client) -> Result<Draft, Error> {
        const UNSENDABLE: (&str, &str) =
            ("The request has no valid address.", "La solicitud no tiene una dirección válida.");
        let address = match self.target {
            Target::Path(parameter) => self.address(client.base_url().as_str(), parameter),
            Target::Link(link) => link.as_str().to_owned(),
            Target::Raw(_, path) => under(client.base_url().as_str(), path),
        };
        let address =
            Uri::try_from(address).map_err(|fault| Error::config(UNSENDABLE).because(fault))?;
        Ok(Draft {
            method: self.method(),
            template: self.template(),
            address,
            to: self.recipient(client.base_url()),
            file: self.operation == Some(Operation::DownloadLabel),
            repeatable: self.is_repeatable(),
            body: self.body.clone(),
        })
    }

    /// The path without its parameters, for logs.
    pub(super) fn template(&self) -> &'static str {
        if self.is_linked() {
            "{labelUrl}"
        } else {
            self.operation.map_or("{path}", Operation::path)
        }
    }

    fn recipient(&self, base: &Url) -> Recipient {
        match self.target {
            Target::Path(_) | Target::Raw(..) => Recipient::Service,
            Target::Link(link) if link.origin() == base.origin() => Recipient::Public,
            Target::Link(_) => Recipient::Stranger,
        }
    }

    fn is_linked(&self) -> bool {
        matches!(self.target, Target::Link(_))
    }

    fn address(&self, base: &str, parameter: &str) -> String {
        let path = self.operation.map(|operation| operation.path_of(parameter));
        let mut address = under(base, &path.unwrap_or_default());
        if self.query.is_empty() {
            return address;
        }
        address.push('?');
        let start = address.len();
        Serializer::for_suffix(address, start).extend_pairs(self.query).finish()
    }
}

/// The address of a path.
fn under(base: &str, path: &str) -> String {
    let base = base.trim_end_matches('/');
    let mut address = String::with_capacity(base.len() + path.len() + 64);
    address.push_str(base);
    address.push_str(path);
    address
}

/// Who reads a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Recipient {
    /// The service.
    Service,
    /// What the service shows to everybody who has a link: without the key, and outside its rate limit.
    Public,
    /// Another origin, by a link too.
    Stranger,
}

/// What every attempt of a call sends: the same bytes to the same place.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) method: HttpMethod,
    pub(super) template: &'static str,
    address: Uri,
    to: Recipient,
    /// The answer is a file.
    file: bool,
    /// Sending it twice is as good as once.
    pub(super) repeatable: bool,
    body: Option<Bytes>,
}

impl Draft {
    /// The request of one attempt.
    pub(super) fn request(&self, client: &Client) -> http::Request<Bytes> {
        let mut request = http::Request::new(self.body.clone().unwrap_or_default());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.address.clone();
        *request.headers_mut() = self.headers(client.headers());
        if self.body.is_some() {
            let json = HeaderValue::from_static("application/json");
            request.headers_mut().insert(CONTENT_TYPE, json);
        }
        request
    }

    fn headers(&self, headers: &Headers) -> HeaderMap {
        match self.to {
            Recipient::Service => headers.home(),
            Recipient::Public => {
                let mut headers = headers.home();
                headers.remove(header::API_KEY);
                headers
            }
            Recipient::Stranger => headers.away(),
        }
    }

    /// What tells the request from every other one: with another key, to another place, of other bytes.
    pub(super) fn digest(&self, client: &Client) -> String {
        let secret = client.headers().secret();
        let (address, body) = (self.address.to_string(), self.body.as_deref());
        let mut hash = Sha256::new();
        for part in [secret, address.as_bytes(), body.unwrap_or_default()] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let digest = hash.finalize();
        let digits = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
    }

    /// Whether the key's rate limit counts it.
    pub(super) fn takes_turns(&self) -> bool {
        self.to == Recipient::Service
    }

    /// How many bytes an honest answer has; a file has some.
    pub(super) fn answer_size(&self) -> RangeInclusive<u64> {
        if self.file { 1..=LONGEST_FILE } else { 0..=LONGEST_JSON }
    }

    /// How long the answer's body may take: a file as long as it keeps coming, JSON until `end`.
    pub(super) fn pace(&self, end: Deadline, idle: Duration) -> Pace {
        if self.file { Pace::Each(idle) } else { Pace::By(end) }
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
            assert_eq!(call.address(base, "EC7K2M9QX4T8WD0"), expected);
        }
        let query = [("format", "PDF"), ("odd", "a b&c=ñ")];
        let asked = Call::new(Operation::Health).query(&query);
        assert_eq!(
            asked.address("http://h", ""),
            "http://h/api/v1/health?format=PDF&odd=a+b%26c%3D%C3%B1"
        );
    }
}
