//! One call of an operation: what goes into its HTTP request, the same for every attempt.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method as HttpMethod, header::CONTENT_TYPE};
use serde::Serialize;
use tokio::time::Instant;
use url::form_urlencoded::Serializer;

use super::{Client, Error, ErrorKind, body::Pace};
use crate::{Idempotency, IdempotencyKey, Method, Operation};

/// The most bytes of JSON that an honest answer has.
pub(super) const LONGEST_JSON: u64 = 8 << 20;
const LONGEST_FILE: u64 = 16 << 20;

/// A call of an operation.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) operation: Operation,
    parameter: &'a str,
    query: &'a [(&'a str, &'a str)],
    body: Option<Bytes>,
    pub(super) idempotency_key: Option<&'a IdempotencyKey>,
}

impl<'a> Call<'a> {
    pub(super) fn new(operation: Operation) -> Self {
        Self { operation, parameter: "", query: &[], body: None, idempotency_key: None }
    }

    /// What stands in the braces of the operation's path.
    pub(super) fn parameter(self, parameter: &'a str) -> Self {
        Self { parameter, ..self }
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
        Ok(Self { body: Some(body.into()), ..self })
    }

    /// The key that the body holds.
    pub(super) fn keyed(self, key: &'a IdempotencyKey) -> Self {
        Self { idempotency_key: Some(key), ..self }
    }

    /// Whether the call changes something.
    pub(super) fn writes(&self) -> bool {
        self.operation.idempotency() != Idempotency::Reads
    }

    /// The most bytes that an honest answer has.
    pub(super) fn longest_answer(&self) -> u64 {
        if self.is_file() { LONGEST_FILE } else { LONGEST_JSON }
    }

    /// How long the answer's body may take: a file as long as it keeps coming, JSON until `end`.
    pub(super) fn pace(&self, end: Instant, idle: Duration) -> Pace {
        if self.is_file() { Pace::Each(idle) } else { Pace::By(end) }
    }

    fn is_file(&self) -> bool {
        self.operation == Operation::DownloadLabel
    }

    /// The request that every attempt sends.
    pub(super) fn request(&self, client: &Client) -> Result<http::Request<Bytes>, Error> {
        const UNSENDABLE: (&str, &str) =
            ("The request has no valid address.", "La solicitud no tiene una dirección válida.");
        let mut request = http::Request::builder()
            .method(match self.operation.method() {
                Method::Get => HttpMethod::GET,
                Method::Post => HttpMethod::POST,
            })
            .uri(self.address(client.base_url().as_str()))
            .body(self.body.clone().unwrap_or_default())
            .map_err(|fault| Error::config(UNSENDABLE).because(fault))?;
        *request.headers_mut() = client.headers().clone();
        if self.body.is_some() {
            request
                .headers_mut()
                .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        Ok(request)
    }

    fn address(&self, base: &str) -> String {
        let mut address = base.trim_end_matches('/').to_owned();
        address.push_str(&self.operation.path_of(self.parameter));
        if self.query.is_empty() {
            return address;
        }
        address.push('?');
        let start = address.len();
        Serializer::for_suffix(address, start).extend_pairs(self.query).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_base_path_parameter_and_query() {
        let call = Call::new(Operation::GetTracking).parameter("EC7K2M9QX4T8WD0");
        let path = "/api/v1/tracking/EC7K2M9QX4T8WD0";
        for base in
            ["http://h", "http://h/", "http://h:81/a/b", "http://h:81/a/b/", "http://[::1]:9"]
        {
            let expected = format!("{}{path}", base.trim_end_matches('/'));
            assert_eq!(call.address(base), expected);
        }
        let query = [("format", "PDF"), ("odd", "a b&c=ñ")];
        let asked = Call::new(Operation::Health).query(&query);
        assert_eq!(
            asked.address("http://h"),
            "http://h/api/v1/health?format=PDF&odd=a+b%26c%3D%C3%B1"
        );
    }
}
