//! Headers that the integrator adds: sent with every request to the service, and with no request to another host.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use http::HeaderValue;
use parcelo::{Client, ClientBuilder, transport::Phase};

use crate::scripted_transport::{CREATED, ScriptedTransport, Step, key, order, response};

const AGENT: &str = concat!("parcelo-rust/", env!("CARGO_PKG_VERSION"));

/// Returns a client that adds headers, the requests that it sends, and the number of times that the computed header was
/// computed.
fn client(steps: impl IntoIterator<Item = Step>) -> (Client, ScriptedTransport, Arc<AtomicU32>) {
    let (script, computed) = (ScriptedTransport::client(steps).1, Arc::<AtomicU32>::default());
    let count = Arc::clone(&computed);
    let number = move || Some(HeaderValue::from(count.fetch_add(1, Ordering::SeqCst) + 1));
    let add = |builder: ClientBuilder| {
        builder
            .header("x-gateway-token", "CANARY")?
            .header_with("x-attempt", number)?
            .header_with("x-none", || None)?
            .user_agent_suffix("my-shop/2.1 (staging)")
    };
    let builder = Client::builder(key()).base_url("https://api.parcelo.example").unwrap();
    let builder = add(builder.label_hosts(["labels.parcelo.example"])).unwrap();
    (builder.transport(script.clone()).build().unwrap(), script, computed)
}

#[tokio::test(start_paused = true)]
async fn custom_headers_are_sent_with_every_attempt() {
    let (client, script, computed) =
        client([Step::Fail(Phase::NotSent), response(503, ""), response(201, CREATED)]);
    client.orders().create(&order()).await.unwrap();
    assert_eq!(script.sent_requests().len(), 3);
    for (sent, attempt) in script.sent_requests().iter().zip(["1", "2", "3"]) {
        let of = |name| sent.headers().get_all(name).iter().collect::<Vec<_>>();
        assert_eq!(of("x-gateway-token"), ["CANARY"]);
        assert_eq!(of("x-attempt"), [attempt], "one value for each attempt");
        assert_eq!(of("x-none"), [""; 0]);
        assert_eq!(of("user-agent"), [format!("{AGENT} my-shop/2.1 (staging)").as_str()]);
        assert_eq!(of("x-api-key"), [key().secret()]);
        assert_eq!(of("content-type"), ["application/json"]);
        let shown = format!("{:?}", sent.headers());
        assert!(!shown.contains("CANARY") && !shown.contains(key().secret()), "{shown}");
    }
    assert_eq!(computed.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn custom_headers_are_not_sent_to_a_label_host() {
    let (client, script, computed) = client([response(200, "%PDF-")]);
    for host in ["labels.parcelo.example", "api.parcelo.example:8443", "api.parcelo.example"] {
        let link = format!("https://{host}/files/a.pdf?sig=x");
        let label = client.labels().download_link(&link).bytes().await;
        assert_eq!(label.is_ok(), !host.ends_with(":8443"), "{host}");
    }
    let sent = script.sent_requests();
    let (away, home) = (&sent[0], &sent[1]);
    assert_eq!(away.uri().host(), Some("labels.parcelo.example"));
    let names: Vec<_> = away.headers().keys().map(http::HeaderName::as_str).collect();
    assert_eq!(names, ["accept-language", "user-agent"]);
    assert_eq!(away.headers()["user-agent"], AGENT);
    // The service's origin gets the headers for its gateway, but no key.
    assert_eq!(home.uri().host(), Some("api.parcelo.example"));
    assert_eq!(home.headers()["x-gateway-token"], "CANARY");
    assert!(!home.headers().contains_key("x-api-key"));
    assert_eq!((sent.len(), computed.load(Ordering::SeqCst)), (2, 1));
}
