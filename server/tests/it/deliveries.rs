//! Webhooks of the real server process: the commands that manage them, and events that survive `kill -9`.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    http::{HeaderMap, StatusCode},
};
use parcelo::{
    model::{EventData, EventId, WebhookEvent},
    webhook::{ID, Webhook},
};
use serde_json::Value;
use tokio::{net::TcpListener, sync::watch};

use crate::{
    api::{Api, order, order_with_number},
    running::TestSetup,
    waiting::{LONG, until, wait_for_value},
};

const ENVIRONMENT: [&str; 2] = ["--environment", "sandbox"];

/// A webhook receiver that keeps the requests it gets. It can be made to stop answering.
#[derive(Clone)]
pub(crate) struct Receiver {
    pub(crate) url: String,
    requests: watch::Sender<Vec<(HeaderMap, Bytes)>>,
    is_answering: Arc<Mutex<bool>>,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let socket = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}/hook", socket.local_addr().unwrap());
        let (requests, is_answering) = (watch::Sender::new(Vec::new()), Arc::new(Mutex::new(true)));
        let receiver = Self { url, requests, is_answering };
        let shared = receiver.clone();
        let routes = Router::new().fallback(move |headers: HeaderMap, body: Bytes| async move {
            shared.requests.send_modify(|requests| requests.push((headers, body)));
            let is_answering = *shared.is_answering.lock().unwrap();
            if !is_answering {
                std::future::pending::<()>().await;
            }
            StatusCode::NO_CONTENT
        });
        tokio::spawn(async move { serve_routes(socket, routes).await });
        receiver
    }

    fn set_answering(&self, is_answering: bool) {
        *self.is_answering.lock().unwrap() = is_answering;
    }

    pub(crate) async fn wait_for(&self, enough: impl Fn(&[(HeaderMap, Bytes)]) -> bool) {
        let mut requests = self.requests.subscribe();
        let enough = requests.wait_for(|requests| enough(requests));
        tokio::time::timeout(LONG, enough).await.expect("the webhooks arrive").unwrap();
    }

    /// Returns `true` if the signature of the request at this index was made with this secret.
    pub(crate) fn is_signed(&self, index: usize, secret: &str) -> bool {
        let (headers, body) = self.requests.borrow()[index].clone();
        Webhook::new([secret]).unwrap().verify(&headers, &body).is_ok()
    }

    /// Returns the events, verified with the secret.
    pub(crate) fn events(&self, secret: &str) -> Vec<WebhookEvent> {
        let webhook = Webhook::new([secret]).unwrap();
        let read = |(headers, body): &(HeaderMap, Bytes)| {
            webhook.verify(headers, body).unwrap().event().unwrap()
        };
        self.requests.borrow().iter().map(read).collect()
    }
}

pub(crate) async fn serve_routes(socket: TcpListener, routes: Router) {
    let stop = parcelo_server::internals::Stop::default();
    parcelo_server::internals::Listener::start(socket, routes, stop).finish().await;
}

fn run_webhooks_command(setup: &TestSetup, command: &str, more: &[&str]) -> Value {
    setup.admin("webhooks", &[&[command], &ENVIRONMENT[..], more].concat())
}

fn event_id(headers: &HeaderMap) -> String {
    headers[ID].to_str().unwrap().to_owned()
}

/// Environment variables that hide the trusted certificates of the machine, as in `debian:*-slim` and `scratch`.
const NO_ROOT_CERTIFICATES: [(&str, &str); 2] =
    [("SSL_CERT_FILE", "/nowhere/certificates"), ("SSL_CERT_DIR", "/nowhere")];

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_without_root_certificates_sends_webhooks() {
    let (setup, receiver) = (TestSetup::new(), Receiver::start().await);
    let mut running = setup.start_with(&NO_ROOT_CERTIFICATES, &[]);
    setup.new_key("sandbox");
    run_webhooks_command(&setup, "set", &["--url", &receiver.url]);
    run_webhooks_command(&setup, "test", &[]);
    // The first attempt is logged, whether it succeeds or not.
    let attempt = loop {
        let logged = run_webhooks_command(&setup, "deliveries", &[]);
        let attempt = logged[0]["attempts"][0].clone();
        if attempt.is_object() {
            break attempt;
        }
        assert!(running.is_alive(), "{}", setup.output());
    };
    assert_eq!(attempt["httpStatus"], 204, "{attempt}");
    running.stop();
    assert!(setup.output().contains("no root certificates"), "{}", setup.output());
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_are_managed_on_a_running_server() {
    let (setup, receiver) = (TestSetup::new(), Receiver::start().await);
    // A proxy would be asked for addresses that the server never checked.
    let proxies =
        ["HTTP_PROXY", "http_proxy", "ALL_PROXY"].map(|name| (name, "http://127.0.0.1:9"));
    let running = setup.start_with(&proxies, &[]);
    let api = running.api(&setup.new_key("sandbox").1);
    let set = run_webhooks_command(
        &setup,
        "set",
        &["--url", &receiver.url, "--events", "parcel.created"],
    );
    let secret = set["secret"].as_str().unwrap();
    assert_eq!((set["url"].as_str(), secret.len()), (Some(receiver.url.as_str()), 50));
    assert_eq!(set["events"], serde_json::json!(["parcel.status_changed", "parcel.created"]));
    let test = run_webhooks_command(&setup, "test", &[]);
    receiver.wait_for(|requests| requests.len() == 1).await;
    let event = receiver.events(secret).remove(0);
    assert_eq!(event.data, EventData::Test);
    assert_eq!(event.id.as_ref().map(EventId::as_str), test["eventId"].as_str());

    api.create_parcel(&order_with_number("order-0001", "SB-NORMAL-0001")).await;
    receiver.wait_for(|requests| requests.len() == 3).await;
    let shown = run_webhooks_command(&setup, "show", &[]);
    assert!(shown.get("secret").is_none() && shown["enabled"] == true, "{shown}");
    let again = run_webhooks_command(&setup, "set", &["--url", &receiver.url]);
    assert_eq!(again["secret"], set["secret"], "the secret stays the same at another address");
    let rotated = run_webhooks_command(&setup, "rotate-secret", &[]);
    assert_ne!(rotated["secret"], set["secret"]);

    assert_eq!(run_webhooks_command(&setup, "disable", &[])["disabledBy"], "OPERATOR");
    api.create_parcel(&order_with_number("order-0002", "SB-NORMAL-0002")).await;
    assert_eq!(run_webhooks_command(&setup, "enable", &[])["enabled"], true);
    let later = ["--since", "2999-01-01T00:00:00Z"];
    assert_eq!(run_webhooks_command(&setup, "replay", &later)["replayed"], 0);
    let earlier = ["--since", "2026-01-01T00:00:00Z"];
    assert_eq!(run_webhooks_command(&setup, "replay", &earlier)["replayed"], 1);
    receiver.wait_for(|requests| requests.len() == 4).await;
    for secret in [secret, rotated["secret"].as_str().unwrap()] {
        assert!(receiver.is_signed(3, secret), "old and new secret sign");
    }
    let logged = loop {
        let logged = run_webhooks_command(&setup, "deliveries", &["--limit", "1"]);
        if logged[0]["status"] == "DELIVERED" {
            break logged;
        }
    };
    let attempt = &logged[0]["attempts"][0];
    assert_eq!((attempt["attempt"].as_u64(), attempt["httpStatus"].as_u64()), (Some(1), Some(204)));
    assert_eq!(logged[0]["trackingNumber"], "SB-NORMAL-0002");
    let event = logged[0]["eventId"].as_str().unwrap();
    assert_eq!(run_webhooks_command(&setup, "replay", &["--event", event])["replayed"], 1);
    receiver.wait_for(|requests| requests.len() == 5).await;
    assert_eq!(event_id(&receiver.requests.borrow()[4].0), event);
    running.stop();
    assert!(!setup.output().contains("whsec_"), "{}", setup.output());
}

#[test]
fn the_webhooks_command_explains_wrong_arguments() {
    let setup = TestSetup::new();
    setup.admin("accounts", &["create", "default"]);
    let run = |arguments: &[&str]| {
        let (is_done, error) = setup.try_admin(&[&["webhooks"][..], arguments].concat());
        assert!(!is_done, "{arguments:?}");
        error
    };
    let set = |environment, url| run(&["set", "--environment", environment, "--url", url]);
    let typo = ["--environment", "sandbox", "--account", "defualt"];
    let table = [
        (
            run(&[&["set", "--url", "https://shop.example/hook"], &typo[..]].concat()),
            "no account is named defualt; `parcelo-server accounts list` shows them, and `parcelo-server accounts create`",
        ),
        (run(&[&["show"], &typo[..]].concat()), "no account is named defualt"),
        (set("production", "http://shop.example/hook"), "https"),
        (set("sandbox", "http://127.0.0.1:9/hook"), "add --sandbox-webhooks-allow-loopback"),
        (set("production", "https://10.0.0.7/hook"), "to public addresses only.\n"),
        (set("production", "https://[::ffff:10.0.0.7]/hook"), "to public addresses only.\n"),
        (set("sandbox", "http://169.254.169.254/latest"), "to public addresses only.\n"),
        (set("sandbox", "shop.example"), "URL"),
        (run(&["show", "--environment", "sandbox"]), "there is no"),
        (run(&["replay", "--environment", "sandbox", "--event", "7"]), "evt_"),
    ];
    for (message, word) in table {
        assert!(message.contains(word), "{message}");
    }
    let accounts = setup.admin("accounts", &["list"]);
    assert_eq!(accounts.as_array().unwrap().len(), 1, "a refused command creates no account");
    run_webhooks_command(&setup, "set", &["--url", "http://127.0.0.1:9/hook"]);
    let unknown = "evt_01JH8Z0000000000000000000A";
    let message = run(&["replay", "--environment", "sandbox", "--event", unknown]);
    assert!(message.contains("no event with this id"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_resent_if_the_server_dies_before_recording_it() {
    let (setup, receiver) = (TestSetup::new(), Receiver::start().await);
    let mut running = setup.start(&[]);
    let key = setup.new_key("sandbox").1;
    run_webhooks_command(&setup, "set", &["--url", &receiver.url]);
    receiver.set_answering(false);
    running.api(&key).create_parcel(&order_with_number("order-0001", "SB-NORMAL-0001")).await;
    receiver.wait_for(|requests| requests.len() == 1).await;
    running.kill();
    receiver.set_answering(true);
    let _restarted = setup.start(&[]);
    receiver.wait_for(|requests| requests.len() == 2).await;
    let requests = receiver.requests.borrow();
    assert_eq!(event_id(&requests[0].0), event_id(&requests[1].0));
    assert_eq!(requests[0].1, requests[1].1, "and the same bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_turned_off_by_the_server_is_reported() {
    let setup = TestSetup::new();
    let socket = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/their-secret-path", socket.local_addr().unwrap());
    let routes = Router::new().fallback(|| async { StatusCode::GONE });
    tokio::spawn(serve_routes(socket, routes));
    let running = setup.start(&[]);
    let api = running.api(&setup.new_key("sandbox").1);
    run_webhooks_command(&setup, "set", &["--url", &url]);
    api.create_parcel(&order_with_number("order-0001", "SB-NORMAL-0001")).await;
    let log = wait_for_value("the log says so", async || {
        let log = setup.output();
        log.contains("a webhook is off").then_some(log)
    });
    let log = log.await;
    let line = log.lines().find(|line| line.contains("a webhook is off")).unwrap();
    for word in ["WARN", "acc_", "sandbox", "GONE"] {
        assert!(line.contains(word), "{word}: {line}");
    }
    assert!(!log.contains("their-secret-path") && !log.contains("whsec_"), "{log}");
    api.create_parcel(&order_with_number("order-0002", "SB-NORMAL-0002")).await;
    let text = Api::new(running.url("admin")).get("/metrics").await.text();
    for sample in [
        "parcelo_webhook_deliveries_total{environment=\"sandbox\",outcome=\"gone\"} 1",
        "parcelo_webhooks_switched_off_total{environment=\"sandbox\",reason=\"GONE\"} 1",
        "parcelo_outbox_events{environment=\"sandbox\",state=\"held\"} 1",
        "parcelo_outbox_events{environment=\"sandbox\",state=\"pending\"} 0",
    ] {
        assert!(text.contains(sample), "{sample}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: `.ci/prove proofs` runs it"]
async fn an_endpoint_that_hangs_times_out_after_15_s_and_is_retried() {
    use parcelo_server::mock::Reply;
    let server = crate::embedded::start().await;
    let api = crate::api::Api::with_key(server.url(), &server.key().issue());
    let inbox = server.webhook_inbox().reply([Reply::hang()]).start().await;
    api.create_parcel(&order("order-0001")).await;
    server.clock().advance(Duration::from_secs(10)).await;
    let responses: Vec<_> = inbox.deliveries().iter().map(|delivery| delivery.status).collect();
    assert_eq!(responses, [0, 200]);
}

#[tokio::test(flavor = "multi_thread")]
async fn sandbox_webhooks_reach_loopback_with_a_flag_only() {
    let (setup, receiver) = (TestSetup::new(), Receiver::start().await);
    let without = ("PARCELO_SANDBOX_WEBHOOKS_ALLOW_LOOPBACK", "false");
    setup.admin("accounts", &["create", "default"]);
    run_webhooks_command(&setup, "set", &["--url", &receiver.url]);
    let running = setup.start_with(&[without], &[]);
    run_webhooks_command(&setup, "test", &[]);
    let attempted =
        || run_webhooks_command(&setup, "deliveries", &[])[0]["attempts"].get(0).is_some();
    until("a delivery was attempted", async || attempted()).await;
    assert!(receiver.requests.borrow().is_empty(), "the receiver got no request");
    drop(running);
    let _running = setup.start(&[]);
    run_webhooks_command(&setup, "test", &[]);
    receiver.wait_for(|requests| !requests.is_empty()).await;
}
