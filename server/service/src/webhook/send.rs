//! Sends one message to one endpoint: without redirects, proxies or retries, and with short timeouts.

use std::{
    error::Error as StdError,
    io,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use futures_util::future::BoxFuture;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use parcelo_domain::{
    TraceContext,
    webhooks::{AllowedHosts, DeliveryError, EndpointResponse, USER_AGENT, check_url},
};
use parcelo_system::clock::monotonic_now;

use super::{
    WebhookTransport,
    resolver::{HostNotAllowed, Resolver},
};
use crate::service::Delivery;

/// Maximum time until the head of an endpoint's response has arrived.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time to read the response's body after its head; enough for 16 KiB.
const BODY_TIMEOUT: Duration = Duration::from_millis(500);
/// Maximum number of bytes of a response that are read.
const MAX_RESPONSE_BYTES: usize = 16 * 1_024;

/// The transport over HTTP. It has a client for each set of allowed hosts, created with the first message, since
/// most embedded servers send none.
#[derive(Debug, Default)]
pub(crate) struct HttpTransport(Mutex<Vec<(AllowedHosts, reqwest::Client)>>);

impl WebhookTransport for HttpTransport {
    fn send<'a>(
        &'a self,
        delivery: &'a Delivery,
    ) -> BoxFuture<'a, (i64, Result<EndpointResponse, DeliveryError>)> {
        Box::pin(async move {
            let start = monotonic_now();
            let response = read_response(self.attempt(delivery)).await;
            let taken = monotonic_now().saturating_duration_since(start);
            (i64::try_from(taken.as_millis()).unwrap_or(i64::MAX), response)
        })
    }
}

impl HttpTransport {
    async fn attempt(&self, delivery: &Delivery) -> Result<reqwest::Response, DeliveryError> {
        // The settings may have changed since the endpoint was set up.
        let allowed_hosts = delivery.allowed_hosts;
        let url = check_url(&delivery.url, allowed_hosts).map_err(|_| DeliveryError::NotAllowed)?;
        let mut request =
            self.client(allowed_hosts)?.post(url).header(CONTENT_TYPE, "application/json");
        for (name, value) in &delivery.headers {
            request = request.header(*name, value);
        }
        if let Some(parent) = &delivery.traceparent {
            request = request.header(TraceContext::HEADER, parent);
        }
        let response = request.body(delivery.body.clone()).send().await;
        response.map_err(|error| classify_error(&error))
    }

    fn client(&self, allowed_hosts: AllowedHosts) -> Result<reqwest::Client, DeliveryError> {
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, client)) = clients.iter().find(|(known, _)| *known == allowed_hosts) {
            return Ok(client.clone());
        }
        let client = build_client(Resolver::new(allowed_hosts)).map_err(|error| {
            tracing::error!(%error, "the HTTP client for webhooks could not be set up");
            DeliveryError::NotConnected
        })?;
        clients.push((allowed_hosts, client.clone()));
        Ok(client)
    }
}

/// Waits for an endpoint's response. The timeout covers the head only, because only the status
/// decides.
async fn read_response(
    attempt: impl Future<Output = Result<reqwest::Response, DeliveryError>>,
) -> Result<EndpointResponse, DeliveryError> {
    let head = tokio::time::timeout(ATTEMPT_TIMEOUT, attempt).await;
    let mut response = head.unwrap_or(Err(DeliveryError::TimedOut))?;
    let retry_after = response.headers().get(RETRY_AFTER);
    let retry_after = retry_after.and_then(|text| text.to_str().ok()).map(str::to_owned);
    let status = response.status().as_u16();
    Ok(EndpointResponse { status, retry_after, body_prefix: read_body_prefix(&mut response).await })
}

/// Creates a client that opens a new connection for each message. A pooled one might have been closed unnoticed, and
/// would bypass the check of the addresses that the name has now.
fn build_client(resolver: Resolver) -> reqwest::Result<reqwest::Client> {
    let builder = || {
        reqwest::Client::builder()
            .user_agent(USER_AGENT)
            // Features that another crate in the build enables for reqwest stay off here: endpoints see HTTP/1.1,
            // and their responses are read without decompression.
            .http1_only()
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_max_idle_per_host(0)
            .dns_resolver(resolver)
    };
    // Without root certificates the build fails, even for receivers on plain http.
    builder().build().or_else(|error| {
        tracing::warn!(
            %error,
            "no root certificates can be read here (the package ca-certificates, SSL_CERT_FILE or \
             SSL_CERT_DIR): webhooks trust the bundled ones"
        );
        with_bundled_roots(builder())
    })
}

/// Creates a client that trusts Mozilla's authorities instead of the machine's.
fn with_bundled_roots(builder: reqwest::ClientBuilder) -> reqwest::Result<reqwest::Client> {
    let bundled = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter();
    let roots = bundled.map(|root| reqwest::Certificate::from_der(root));
    builder.tls_certs_only(roots.collect::<Result<Vec<_>, _>>()?).build()
}

/// Reads the beginning of the body. A body that breaks off, or does not end in time, does not matter: only the
/// status decides.
async fn read_body_prefix(response: &mut reqwest::Response) -> Vec<u8> {
    let mut read = Vec::new();
    let reading = async {
        while read.len() < MAX_RESPONSE_BYTES
            && let Ok(Some(chunk)) = response.chunk().await
        {
            read.extend_from_slice(&chunk);
        }
    };
    let _timed_out = tokio::time::timeout(BODY_TIMEOUT, reading).await;
    read.truncate(MAX_RESPONSE_BYTES);
    read
}

/// Classifies an error. The result does not contain the URL, which may hold a secret of the receiver.
fn classify_error(error: &reqwest::Error) -> DeliveryError {
    let causes = || {
        std::iter::successors(error.source(), |cause: &&(dyn StdError + 'static)| (*cause).source())
    };
    if causes().any(<dyn StdError>::is::<HostNotAllowed>) {
        DeliveryError::NotAllowed
    } else if causes().any(is_untrusted) {
        DeliveryError::Untrusted
    } else if error.is_connect() {
        DeliveryError::NotConnected
    } else if error.is_timeout() {
        DeliveryError::TimedOut
    } else {
        DeliveryError::Broken
    }
}

/// Returns `true` for a certificate that is not trusted. I/O errors wrap it without returning it as their source.
fn is_untrusted(cause: &(dyn StdError + 'static)) -> bool {
    if let Some(error) = cause.downcast_ref::<rustls::Error>() {
        return matches!(error, rustls::Error::InvalidCertificate(_));
    }
    let io: Option<&io::Error> = cause.downcast_ref();
    io.and_then(io::Error::get_ref).is_some_and(|inner| is_untrusted(inner))
}

#[cfg(test)]
mod tests {
    use std::{
        net::SocketAddr,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use futures_util::{FutureExt, StreamExt, stream};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;

    /// Receives a response whose head comes after the given time, and whose body never ends.
    async fn receive_slowly(head_after: Duration) -> Result<EndpointResponse, DeliveryError> {
        read_response(async move {
            tokio::time::sleep(head_after).await;
            let start = stream::iter([Ok::<_, std::io::Error>("start")]);
            let body = reqwest::Body::wrap_stream(start.chain(stream::pending()));
            Ok(http::Response::builder().status(202).body(body).unwrap().into())
        })
        .await
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_body_does_not_fail_a_delivery() {
        for millis in [0, 14_400, 14_600, 14_999] {
            let response = receive_slowly(Duration::from_millis(millis)).await.unwrap();
            assert_eq!(
                (response.status, response.body_prefix.as_slice()),
                (202, &b"start"[..]),
                "{millis}"
            );
        }
        assert_eq!(
            receive_slowly(Duration::from_millis(15_001)).await,
            Err(DeliveryError::TimedOut)
        );
    }

    /// Other crates in this workspace enable gzip and HTTP/2 for reqwest.
    #[tokio::test]
    async fn a_message_does_not_accept_compressed_responses() {
        let socket = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}/hook", socket.local_addr().unwrap());
        let client = build_client(Resolver::new(AllowedHosts::PublicAndLoopback)).unwrap();
        let response = tokio::spawn(client.post(url).send());
        let (mut caller, _) = socket.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            assert_ne!(caller.read_buf(&mut head).await.unwrap(), 0);
        }
        caller.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
        response.await.unwrap().unwrap();
        let head = String::from_utf8(head).unwrap().to_lowercase();
        assert!(head.starts_with("post /hook http/1.1"), "{head}");
        assert!(!head.contains("accept-encoding"), "{head}");
    }

    #[cfg(feature = "tls")]
    #[tokio::test]
    async fn a_certificate_that_is_not_trusted_is_told_from_a_failed_connection() {
        use crate::mock::MockServer;

        let untrusted = MockServer::builder().tls().start().await;
        // It answers the handshake in plain HTTP.
        let plain = MockServer::start().await;
        let client = build_client(Resolver::new(AllowedHosts::PublicAndLoopback)).unwrap();
        let table = [
            (untrusted.url().to_owned(), DeliveryError::Untrusted),
            (plain.url().replace("http://", "https://"), DeliveryError::NotConnected),
        ];
        for (url, expected) in table {
            let error = client.post(&url).send().await.unwrap_err();
            assert_eq!(classify_error(&error), expected, "{url}: {error:?}");
        }
    }

    #[tokio::test]
    async fn a_name_that_changes_after_the_check_is_not_followed() {
        static LOOKUPS: AtomicUsize = AtomicUsize::new(0);
        let socket = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = socket.local_addr().unwrap().port();
        let receiver = tokio::spawn(async move {
            let (mut caller, _) = socket.accept().await.unwrap();
            caller.read_buf(&mut Vec::new()).await.unwrap();
            caller.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
            socket
        });
        let resolver = Resolver::with_lookup(AllowedHosts::PublicAndLoopback, |_| {
            let first = LOOKUPS.fetch_add(1, Ordering::Relaxed) == 0;
            let address: [u8; 4] = if first { [127, 0, 0, 1] } else { [169, 254, 169, 254] };
            async move { Ok(vec![SocketAddr::from((address, 0))]) }.boxed()
        });
        let client = build_client(resolver).unwrap();
        let send = || client.post(format!("http://shop.example:{port}/hook")).send();
        assert_eq!(send().await.unwrap().status(), 204);
        let socket = receiver.await.unwrap();
        assert_eq!(classify_error(&send().await.unwrap_err()), DeliveryError::NotAllowed);
        assert!(socket.accept().now_or_never().is_none(), "no one called again");
    }
}
