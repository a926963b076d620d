//! The proxy of requests: a configured one, or that of the environment. A proxy of the environment is used only for
//! encrypted requests to other machines, because it could read the API key in all others.

use std::{env, fmt};

use reqwest::NoProxy;
use url::Url;

use super::{Error, Texts};
use crate::client::address::is_loopback;

/// The choice of a client's proxy.
#[derive(Clone, Default)]
pub(super) enum ProxyRule {
    /// The proxy of `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, for https to other machines.
    #[default]
    Environment,
    /// No proxy.
    Direct,
    /// This proxy, for every request.
    Through(Url),
}

/// Hides the address, which may have a password.
impl fmt::Debug for ProxyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Environment => "Environment",
            Self::Direct => "Direct",
            Self::Through(_) => "Through(***)",
        })
    }
}

/// This machine, in the syntax of `NO_PROXY`.
const LOOPBACK: &str = "localhost,127.0.0.0/8,::1,::ffff:127.0.0.0/104";

impl ProxyRule {
    pub(super) fn through(address: &str) -> Result<Self, Error> {
        let url =
            Url::parse(address).map_err(|error| Error::config(INVALID_PROXY).with_source(error))?;
        if matches!(url.scheme(), "http" | "https") && url.has_host() {
            Ok(Self::Through(url))
        } else {
            Err(Error::config(INVALID_PROXY))
        }
    }

    /// Returns `true` if an unencrypted request would leave this machine through the proxy.
    pub(super) fn is_remote(&self) -> bool {
        matches!(self, Self::Through(proxy) if !is_loopback(proxy))
    }

    pub(super) fn apply(&self, client: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
        self.apply_with(client, |name| env::var(name).ok())
    }

    fn apply_with(
        &self,
        client: reqwest::ClientBuilder,
        read: impl Fn(&str) -> Option<String>,
    ) -> reqwest::ClientBuilder {
        let proxy = match self {
            Self::Environment => from_environment(read),
            Self::Direct => None,
            // It was parsed as a URL before, so this does not fail.
            Self::Through(proxy) => reqwest::Proxy::all(proxy.as_str()).ok(),
        };
        // Without this, reqwest would read the environment itself.
        let client = client.no_proxy();
        match proxy {
            Some(proxy) => client.proxy(proxy),
            None => client,
        }
    }
}

/// Returns the environment's proxy for https; an invalid address counts as none.
fn from_environment(read: impl Fn(&str) -> Option<String>) -> Option<reqwest::Proxy> {
    let first = |names: &[&str]| names.iter().find_map(|name| read(name));
    let proxy = first(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])?;
    let exceptions = first(&["no_proxy", "NO_PROXY"]).unwrap_or_default();
    let exceptions = NoProxy::from_string(&format!("{LOOPBACK},{exceptions}"));
    Some(reqwest::Proxy::https(proxy).ok()?.no_proxy(exceptions))
}

const INVALID_PROXY: Texts = (
    "Invalid proxy: expected an http or https address.",
    "Proxy no válido: se espera una dirección http o https.",
);

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;

    async fn listener() -> (TcpListener, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        (listener, address)
    }

    /// Accepts a connection, responds with an error, and returns the first line that was received.
    async fn first_line(listener: &TcpListener) -> String {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 1024];
        let length = socket.read(&mut buffer).await.unwrap();
        socket.write_all(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        String::from_utf8_lossy(&buffer[..length]).lines().next().unwrap().to_owned()
    }

    /// Sends a request to `address`. Returns `true` if it arrives at the proxy, `false` if at the target; and its first
    /// line.
    async fn request_route(
        rule: &ProxyRule,
        variables: &[&str],
        address: Option<&str>,
    ) -> (bool, String) {
        let ((proxy, at), (target, there)) = (listener().await, listener().await);
        let read = |name: &str| variables.contains(&name).then(|| at.clone());
        let rule = match rule {
            ProxyRule::Through(_) => &ProxyRule::through(&at).unwrap(),
            rule => rule,
        };
        let client = rule.apply_with(reqwest::Client::builder(), read).build().unwrap();
        let request = client.get(address.unwrap_or(&there)).send();
        let request = tokio::spawn(request);
        let arrived = tokio::select! {
            line = first_line(&proxy) => (true, line),
            line = first_line(&target) => (false, line),
        };
        let _ = request.await;
        (arrived.0, arrived.1.replace(there.trim_start_matches("http://"), "target"))
    }

    #[tokio::test]
    async fn plain_http_and_loopback_ignore_the_environment_proxy() {
        const ALL: [&str; 6] =
            ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
        let given = ProxyRule::through("http://127.0.0.1:1").unwrap();
        let direct = (false, "GET / HTTP/1.1".to_owned());
        let (environment, none) = (ProxyRule::Environment, ProxyRule::Direct);
        assert_eq!(request_route(&environment, &ALL, None).await, direct);
        assert_eq!(request_route(&none, &ALL, None).await, direct);
        assert_eq!(
            request_route(&given, &[], None).await,
            (true, "GET http://target/ HTTP/1.1".to_owned())
        );
        let encrypted = Some("https://api.parcelo.example/x");
        let tunnel = (true, "CONNECT api.parcelo.example:443 HTTP/1.1".to_owned());
        for variable in &ALL[2..] {
            assert_eq!(
                request_route(&environment, &[variable], encrypted).await,
                tunnel,
                "{variable}"
            );
        }
        assert_eq!(request_route(&given, &[], encrypted).await, tunnel);
    }

    #[test]
    fn a_proxy_must_be_a_url_and_its_password_is_hidden() {
        for bad in ["", "proxy", "ftp://proxy", "socks5://proxy:1", "http://"] {
            assert!(ProxyRule::through(bad).is_err(), "{bad}");
        }
        let rule = ProxyRule::through("http://user:CANARY@proxy.example:3128").unwrap();
        assert!(!format!("{rule:?}").contains("CANARY"));
        assert!(rule.is_remote());
        assert!(!ProxyRule::through("http://127.0.0.1:3128").unwrap().is_remote());
    }
}
