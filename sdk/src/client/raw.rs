//! Raw calls by method and path, for programs that pass on what their user types, and for operations that this version
//! does not know yet.

use bytes::Bytes;
use http::{Method, header::CONTENT_TYPE};
use parcelo_types::{IdempotencyKey, Operation};
use serde::de::DeserializeOwned;
use url::Url;

use super::{
    Call, Client, Error, Reply, body::BodyReader, error::Texts, reply::WithoutSuccess,
    request::UnsentRequest,
};

/// The response to [`Client::raw`], unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawResponse {
    /// The HTTP status, a success.
    pub status: u16,
    /// The `Content-Type` of the body.
    pub content_type: Option<String>,
    /// The body, at most 8 MiB.
    pub body: Bytes,
}

impl Client {
    /// Calls a path of the service with the API key and under its rate limit. Known operations are retried as the
    /// typed calls are, and everything else if its method only reads. Prefer the typed calls.
    ///
    /// The path begins with a slash and may have a query; a body is sent as JSON. Observers see the attempts if
    /// method and path are those of an operation.
    ///
    /// Errors: `Config` when the method is invalid or the path leads elsewhere, and those of every call.
    ///
    /// ```no_run
    /// # async fn example(client: parcelo::Client) -> Result<(), parcelo::Error> {
    /// let response = client.raw("GET", "/api/v1/parcels?limit=1", None).await?;
    /// println!("{} {:?}", response.status, response.body);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(hidden)]
    pub fn raw(&self, method: &str, path: &str, body: Option<Bytes>) -> Call<Reply<RawResponse>> {
        let request = Method::from_bytes(method.as_bytes())
            .map_err(|error| Error::config(INVALID_METHOD).with_source(error))
            .and_then(|method| self.raw_request(method, path))
            .map(|request| {
                let key = body.as_deref().and_then(find_key);
                let request = key.iter().fold(request, UnsentRequest::idempotency_key);
                body.into_iter().fold(request, UnsentRequest::body)
            });
        Call::new(self.clone(), request, |client, request| Box::pin(client.raw_response(request)))
    }

    /// Reads a path of the service that this version has no method for, as a type of your own: the whole
    /// body, with its envelope if it has one.
    ///
    /// It is a read like any other, with the API key, the rate limit and retries. The path begins with a slash,
    /// may have a query, and leads to the service only.
    ///
    /// Errors: `Config` when the path leads elsewhere, `Decode` when the body does not match the type, and
    /// those of every call.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// #[derive(serde::Deserialize)]
    /// #[serde(rename_all = "camelCase")]
    /// struct Me {
    ///     key_name: String,
    /// }
    ///
    /// let me = client.get::<Me>("/api/v1/health").await?;
    /// println!("{}, at {:?}", me.key_name, me.meta().headers.get("date"));
    /// assert!(client.get::<Me>("https://elsewhere.example/").await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn get<T: DeserializeOwned + 'static>(&self, path: &str) -> Call<Reply<T>> {
        let request = self.raw_request(Method::GET, path);
        Call::new(self.clone(), request, |client, request| {
            Box::pin(async {
                let reply: Reply<WithoutSuccess<T>> = client.json(request).await?;
                Ok(reply.map(|body| body.0))
            })
        })
    }

    fn raw_request(&self, method: Method, path: &str) -> Result<UnsentRequest, Error> {
        if !is_path_under(path, self.base_url()) {
            return Err(Error::config(INVALID_PATH));
        }
        let operation = find_operation(&method, path);
        Ok(UnsentRequest::raw(self, method, path, operation))
    }

    async fn raw_response(self, request: UnsentRequest) -> Result<Reply<RawResponse>, Error> {
        let (response, mut execution) = self.execute(request, BodyReader::read_all).await?;
        execution.mark_executed();
        execution.finish(None);
        let content_type = response.headers.get(CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let (status, body) = (response.status.as_u16(), response.body.clone());
        let value = RawResponse { status, content_type, body };
        Ok(Reply::new(value, execution.operation, response, &execution.state))
    }
}

const INVALID_METHOD: Texts = (
    "Invalid HTTP method: expected GET, for example.",
    "Método HTTP no válido: se espera, por ejemplo, GET.",
);
const INVALID_PATH: Texts = (
    "Invalid path: expected one under the service's address that begins with a slash, such as /api/v1/health.",
    "Ruta no válida: se espera una bajo la dirección del servicio que empiece con una barra, como /api/v1/health.",
);

/// Returns `true` for a path under the service's address, without a fragment and without `..`.
fn is_path_under(path: &str, base: &Url) -> bool {
    let plain = path.bytes().all(|byte| byte.is_ascii_graphic() && !b"\\#".contains(&byte));
    let address = format!("{}{path}", base.as_str().trim_end_matches('/'));
    let prefix = base.path().trim_end_matches('/');
    path.starts_with('/')
        && !path.starts_with("//")
        && plain
        && Url::parse(&address).is_ok_and(|url| {
            url.origin() == base.origin()
                && url.as_str() == address
                && url.path().starts_with(prefix)
        })
}

/// Returns the operation that has this method and path.
fn find_operation(method: &Method, path: &str) -> Option<Operation> {
    let path = path.split('?').next().unwrap_or_default();
    let fits = |known: &&Operation| {
        let (known, given) = (known.path().split('/'), path.split('/'));
        let same = |(known, given): (&str, &str)| {
            known == given || (known.starts_with('{') && !given.is_empty())
        };
        known.clone().count() == given.clone().count() && known.zip(given).all(same)
    };
    let of_method =
        Operation::ALL.iter().filter(|known| known.method().as_str() == method.as_str());
    // A fixed path also matches an operation whose last segment is a parameter, so fixed paths are tried first.
    of_method.filter(fits).min_by_key(|known| known.path().contains('{')).copied()
}

/// Returns the idempotency key in a JSON body.
fn find_key(body: &[u8]) -> Option<IdempotencyKey> {
    let body: serde_json::Value = serde_json::from_slice(body).ok()?;
    IdempotencyKey::parse(body.get("idempotencyKey")?.as_str()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_under_the_base_url_are_called() {
        let table = [
            ("/api/v1/health", true),
            ("/api/v1/parcels?limit=1&status=VOIDED", true),
            ("/", true),
            ("", false),
            ("api/v1/health", false),
            ("//evil.example/x", false),
            ("https://evil.example/x", false),
            ("@evil.example/x", false),
            (".evil.example/x", false),
            ("/a b", false),
            ("/a\r\nX: y", false),
            ("/a#b", false),
            ("/\\evil.example", false),
            ("/../other", false),
            ("/a/%2e%2e/%2e%2e/other", false),
        ];
        for base in ["http://127.0.0.1:8081", "https://h/base/", "https://h/base"] {
            let base = Url::parse(base).unwrap();
            for (path, is_under_base) in table {
                assert_eq!(is_path_under(path, &base), is_under_base, "{base} {path:?}");
            }
        }
    }

    #[test]
    fn an_operation_is_recognised_by_method_and_path() {
        for operation in Operation::ALL {
            let method = Method::from_bytes(operation.method().as_str().as_bytes()).unwrap();
            let path = operation.path_of("batch-1");
            assert_eq!(find_operation(&method, &path), Some(*operation), "{path}");
            assert_eq!(find_operation(&method, &format!("{path}?a=b/c")), Some(*operation));
            assert_eq!(find_operation(&Method::DELETE, &path), None);
        }
        assert_eq!(find_operation(&Method::GET, "/api/v1/labels/"), None);
        assert_eq!(find_operation(&Method::GET, "/healthz"), None);
    }

    #[test]
    fn the_idempotency_key_is_found_in_the_body() {
        let key = |body: &str| find_key(body.as_bytes()).map(|key| key.as_str().to_owned());
        assert_eq!(key(r#"{"idempotencyKey":"order-0001"}"#).as_deref(), Some("order-0001"));
        for none in ["", "[]", "{}", r#"{"idempotencyKey":1}"#] {
            assert_eq!(key(none), None, "{none}");
        }
    }
}
