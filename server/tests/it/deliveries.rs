//! Webhooks of the real server process: its admin commands, and no event lost over kill -9.

use std::{
    collections::BTreeSet,
    process::Command,
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
    api::{Api, numbered, order},
    running::{BINARY, House},
    waiting::{LONG, found, until},
};

const ENVIRONMENT: [&str; 2] = ["--environment", "sandbox"];

/// A receiver: what came, and whether it answers.
#[derive(Clone)]
pub(crate) struct Receiver {
    pub(crate) url: String,
    came: watch::Sender<Vec<(HeaderMap, Bytes)>>,
    answers: Arc<Mutex<bool>>,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let socket = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}/hook", socket.local_addr().unwrap());
        let (came, answers) = (watch::Sender::new(Vec::new()), Arc::new(Mutex::new(true)));
        let receiver = Self { url, came, answers };
        let desk = receiver.clone();
        let routes = Router::new().fallback(move |headers: HeaderMap, body: Bytes| async move {
            desk.came.send_modify(|came| came.push((headers, body)));
            let answers = *desk.answers.lock().unwrap();
            if !answers {
                std::future::pending::<()>().await;
            }
            StatusCode::NO_CONTENT
        });
        tokio::spawn(async move { axum_serve(socket, routes).await });
        receiver
    }

    fn answer(&self, answers: bool) {
        *self.answers.lock().unwrap() = answers;
    }

    pub(crate) async fn wait_for(&self, enough: impl Fn(&[(HeaderMap, Bytes)]) -> bool) {
        let mut came = self.came.subscribe();
        let enough = came.wait_for(|came| enough(came));
        tokio::time::timeout(LONG, enough).await.expect("the webhooks come").unwrap();
    }

    /// Whether what came in this place is signed with the secret.
    pub(crate) fn is_signed(&self, place: usize, secret: &str) -> bool {
        let (headers, body) = self.came.borrow()[place].clone();
        Webhook::new([secret]).unwrap().verify(&headers, &body).is_ok()
    }

    /// What came, verified with the secret.
    pub(crate) fn events(&self, secret: &str) -> Vec<WebhookEvent> {
        let webhook = Webhook::new([secret]).unwrap();
        let read = |(headers, body): &(HeaderMap, Bytes)| {
            webhook.verify(headers, body).unwrap().event().unwrap()
        };
        self.came.borrow().iter().map(read).collect()
    }
}

async fn axum_serve(socket: TcpListener, routes: Router) {
    let stop = parcelo_server::internals::Stop::default();
    parcelo_server::internals::Listener::start(socket, routes, stop).finish().await;
}

fn webhooks(house: &House, command: &str, more: &[&str]) -> Value {
    house.webhooks(&[&[command], &ENVIRONMENT[..], more].concat())
}

fn id(headers: &HeaderMap) -> String {
    headers[ID].to_str().unwrap().to_owned()
}

/// As in `debian:*-slim` and `scratch`: the machine trusts no one.
const NO_ROOTS: [(&str, &str); 2] =
    [("SSL_CERT_FILE", "/nowhere/certificates"), ("SSL_CERT_DIR", "/nowhere")];

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_without_root_certificates_sends_webhooks() {
    let (house, receiver) = (House::new(), Receiver::start().await);
    let mut running = house.start_with(&NO_ROOTS, &[]);
    house.new_key("sandbox");
    webhooks(&house, "set", &["--url", &receiver.url]);
    webhooks(&house, "test", &[]);
    // However it ends, the first attempt is logged.
    let attempt = loop {
        let logged = webhooks(&house, "deliveries", &[]);
        let attempt = logged[0]["attempts"][0].clone();
        if attempt.is_object() {
            break attempt;
        }
        assert!(running.is_alive(), "{}", house.output());
    };
    assert_eq!(attempt["httpStatus"], 204, "{attempt}");
    running.stop();
    assert!(house.output().contains("no root certificates"), "{}", house.output());
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_are_set_tested_watched_and_replayed_while_the_server_runs() {
    let (house, receiver) = (House::new(), Receiver::start().await);
    // A proxy would be asked for addresses that were never judged.
    let proxies =
        ["HTTP_PROXY", "http_proxy", "ALL_PROXY"].map(|name| (name, "http://127.0.0.1:9"));
    let running = house.start_with(&proxies, &[]);
    let api = running.api(&house.new_key("sandbox").1);
    let set = webhooks(&house, "set", &["--url", &receiver.url, "--events", "parcel.created"]);
    let secret = set["secret"].as_str().unwrap();
    assert_eq!((set["url"].as_str(), secret.len()), (Some(receiver.url.as_str()), 50));
    assert_eq!(set["events"], serde_json::json!(["parcel.status_changed", "parcel.created"]));
    let test = webhooks(&house, "test", &[]);
    receiver.wait_for(|came| came.len() == 1).await;
    assert_eq!(receiver.events(secret)[0].data, EventData::Test);
    assert_eq!(
        receiver.events(secret)[0].id.as_ref().map(EventId::as_str),
        test["eventId"].as_str()
    );

    api.created(&numbered("order-0001", "SB-NORMAL-0001")).await;
    receiver.wait_for(|came| came.len() == 3).await;
    let shown = webhooks(&house, "show", &[]);
    assert!(shown.get("secret").is_none() && shown["enabled"] == true, "{shown}");
    let again = webhooks(&house, "set", &["--url", &receiver.url]);
    assert_eq!(again["secret"], set["secret"], "another address is no other secret");
    let rotated = webhooks(&house, "rotate-secret", &[]);
    assert_ne!(rotated["secret"], set["secret"]);

    assert_eq!(webhooks(&house, "disable", &[])["disabledBy"], "OPERATOR");
    api.created(&numbered("order-0002", "SB-NORMAL-0002")).await;
    assert_eq!(webhooks(&house, "enable", &[])["enabled"], true);
    let later = ["--since", "2999-01-01T00:00:00Z"];
    assert_eq!(webhooks(&house, "replay", &later)["replayed"], 0);
    let earlier = ["--since", "2026-01-01T00:00:00Z"];
    assert_eq!(webhooks(&house, "replay", &earlier)["replayed"], 1);
    receiver.wait_for(|came| came.len() == 4).await;
    for secret in [secret, rotated["secret"].as_str().unwrap()] {
        assert!(receiver.is_signed(3, secret), "old and new secret sign");
    }
    let logged = loop {
        let logged = webhooks(&house, "deliveries", &["--limit", "1"]);
        if logged[0]["status"] == "DELIVERED" {
            break logged;
        }
    };
    let attempt = &logged[0]["attempts"][0];
    assert_eq!((attempt["attempt"].as_u64(), attempt["httpStatus"].as_u64()), (Some(1), Some(204)));
    assert_eq!(logged[0]["trackingNumber"], "SB-NORMAL-0002");
    let event = logged[0]["eventId"].as_str().unwrap();
    assert_eq!(webhooks(&house, "replay", &["--event", event])["replayed"], 1);
    receiver.wait_for(|came| came.len() == 5).await;
    assert_eq!(id(&receiver.came.borrow()[4].0), event);
    running.stop();
    assert!(!house.output().contains("whsec_"), "{}", house.output());
}

#[test]
fn a_command_says_what_is_wrong() {
    let house = House::new();
    house.accounts(&["create", "default"]);
    let run = |arguments: &[&str]| {
        let mut process = Command::new(BINARY);
        process.env_clear().arg("webhooks").args(arguments);
        let output = process.args(["--database", &house.database()]).output().unwrap();
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
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
    for (said, word) in table {
        assert!(said.contains(word), "{said}");
    }
    let accounts = house.accounts(&["list"]);
    assert_eq!(accounts.as_array().unwrap().len(), 1, "what is refused makes no account");
    webhooks(&house, "set", &["--url", "http://127.0.0.1:9/hook"]);
    let nobodys = "evt_01JH8Z0000000000000000000A";
    let said = run(&["replay", "--environment", "sandbox", "--event", nobodys]);
    assert!(said.contains("no event with this id"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_between_post_and_mark_sends_the_same_event_again() {
    let (house, receiver) = (House::new(), Receiver::start().await);
    let mut running = house.start(&[]);
    let key = house.new_key("sandbox").1;
    webhooks(&house, "set", &["--url", &receiver.url]);
    receiver.answer(false);
    running.api(&key).created(&numbered("order-0001", "SB-NORMAL-0001")).await;
    receiver.wait_for(|came| came.len() == 1).await;
    running.kill();
    receiver.answer(true);
    let _restarted = house.start(&[]);
    receiver.wait_for(|came| came.len() == 2).await;
    let came = receiver.came.borrow();
    assert_eq!(id(&came[0].0), id(&came[1].0));
    assert_eq!(came[0].1, came[1].1, "and the same bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_is_switched_off_is_heard_of() {
    let house = House::new();
    let socket = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/their-secret-path", socket.local_addr().unwrap());
    let routes = Router::new().fallback(|| async { StatusCode::GONE });
    tokio::spawn(axum_serve(socket, routes));
    let running = house.start(&[]);
    let api = running.api(&house.new_key("sandbox").1);
    webhooks(&house, "set", &["--url", &url]);
    api.created(&numbered("order-0001", "SB-NORMAL-0001")).await;
    let said = found("the log says so", async || {
        let said = house.output();
        said.contains("a webhook is off").then_some(said)
    });
    let said = said.await;
    let line = said.lines().find(|line| line.contains("a webhook is off")).unwrap();
    for word in ["WARN", "acc_", "sandbox", "GONE"] {
        assert!(line.contains(word), "{word}: {line}");
    }
    assert!(!said.contains("their-secret-path") && !said.contains("whsec_"), "{said}");
    api.created(&numbered("order-0002", "SB-NORMAL-0002")).await;
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

/// Kills under load; `PARCELO_KILLS` sets another number.
fn kills() -> u32 {
    std::env::var("PARCELO_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(50)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: `.ci/prove proofs` runs it"]
async fn no_event_of_an_acknowledged_order_is_lost_over_kills() {
    let (house, receiver) = (House::new(), Receiver::start().await);
    let unlimited = ["--sandbox-rate-limit", "1000000"];
    let mut running = house.start(&unlimited);
    let key = house.new_key("sandbox").1;
    webhooks(&house, "set", &["--url", &receiver.url]);
    let mut random = fastrand::Rng::with_seed(1);
    let mut created = BTreeSet::new();
    for cycle in 0..kills() {
        let api = running.api(&key);
        let load = tokio::spawn(async move {
            let mut acknowledged = Vec::new();
            for count in 0.. {
                let order = order(&format!("kill-{cycle}-{count}"));
                let path = parcelo::Operation::CreateOrder.path();
                let request = api.request("POST", path).header("content-type", "application/json");
                match crate::api::try_send(request.body(order.to_string())).await {
                    Ok(answer) => acknowledged.push(answer.json()),
                    Err(_) => break,
                }
            }
            acknowledged
        });
        tokio::time::sleep(Duration::from_millis(random.u64(20..200))).await;
        running.kill();
        let number =
            |answer: &Value| answer["parcel"]["trackingNumber"].as_str().unwrap().to_owned();
        created.extend(load.await.unwrap().iter().map(number));
        running = house.start(&unlimited);
    }
    let told = |came: &[(HeaderMap, Bytes)]| -> BTreeSet<String> {
        let number = |body: &Bytes| {
            let event: Value = serde_json::from_slice(body).unwrap();
            event["data"]["trackingNumber"].as_str().unwrap().to_owned()
        };
        came.iter().map(|(_, body)| number(body)).collect()
    };
    receiver.wait_for(|came| told(came).is_superset(&created)).await;
    let came = receiver.came.borrow();
    let ids: BTreeSet<_> = came.iter().map(|(headers, _)| id(headers)).collect();
    assert_eq!(ids.len(), told(&came).len(), "each parcel's event has one id");
    println!(
        "{} events over {} kills: 0 lost, {} sent again",
        ids.len(),
        kills(),
        came.len() - ids.len()
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: `.ci/prove proofs` runs it"]
async fn an_endpoint_that_hangs_is_given_15_s_and_tried_again() {
    use parcelo_server::mock::Reply;
    let server = crate::embedded::start().await;
    let api = crate::api::Api::with_key(server.url(), &server.key().issue());
    let inbox = server.webhook_inbox().reply([Reply::hang()]).start().await;
    api.created(&order("order-0001")).await;
    server.clock().advance(Duration::from_secs(10)).await;
    let answers: Vec<_> = inbox.deliveries().iter().map(|delivery| delivery.status).collect();
    assert_eq!(answers, [0, 200]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sandboxs_webhooks_reach_this_machine_with_a_flag_only() {
    let (house, receiver) = (House::new(), Receiver::start().await);
    let without = ("PARCELO_SANDBOX_WEBHOOKS_ALLOW_LOOPBACK", "false");
    house.accounts(&["create", "default"]);
    webhooks(&house, "set", &["--url", &receiver.url]);
    let running = house.start_with(&[without], &[]);
    webhooks(&house, "test", &[]);
    let attempted = || webhooks(&house, "deliveries", &[])[0]["attempts"].get(0).is_some();
    until("it was tried", async || attempted()).await;
    assert!(receiver.came.borrow().is_empty(), "no one was called");
    drop(running);
    let _running = house.start(&[]);
    webhooks(&house, "test", &[]);
    receiver.wait_for(|came| !came.is_empty()).await;
}
