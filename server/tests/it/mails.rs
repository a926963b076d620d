//! E-mails: those of the mock server, as a test reads them, and those of the real server, sent through a relay that
//! accepts them, refuses them or does not respond.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use parcelo::ApiKey;
use parcelo_server::mock::{MockServer, ReceivedMail};
use rusqlite::Connection;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

use crate::{
    api::{Api, order, order_with_number, send, with},
    embedded::start_with_key,
    running::{RunningServer, TestSetup},
    waiting::{LONG, until, wait_for_value},
};

const MINUTES: Duration = Duration::from_secs(60);
const RECEIVER: &str = "luis@example.org";
const SENDER: &str = "ana@example.org";

/// Adds the e-mail addresses of receiver and sender to an order.
fn with_email_addresses(order: Value) -> Value {
    let order = with(order, "/receiver/email", RECEIVER.into());
    with(order, "/sender/email", SENDER.into())
}

/// Creates an order with this tracking number and the e-mail addresses.
async fn create_with_emails(api: &Api, key: &str, number: &str) {
    api.create_parcel(&with_email_addresses(order_with_number(key, number))).await;
}

fn subjects(mails: &[ReceivedMail]) -> Vec<(String, String)> {
    mails.iter().map(|mail| (mail.to.clone(), mail.subject.clone())).collect()
}

#[tokio::test]
async fn receivers_get_an_e_mail_a_minute_after_each_step() {
    let (server, api) = start_with_key().await;
    create_with_emails(&api, "order-0001", "SB-SUCCESS-0001").await;
    server.clock().advance(60 * MINUTES).await;
    let mails = server.mails();
    let expected =
        ["Su paquete está en camino", "Su paquete está en reparto", "Su paquete fue entregado"]
            .map(|text| (RECEIVER.to_owned(), format!("[Sandbox] {text}: SB-SUCCESS-0001")));
    assert_eq!(subjects(&mails), expected);
    let mut ids: Vec<_> = mails.iter().map(|mail| mail.id.clone()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 3, "one for each event");
    for mail in &mails {
        assert_eq!(mail.language, "es");
        assert!(mail.text.contains(&format!("{}/track/SB-SUCCESS-0001?lang=es", server.url())));
    }
}

#[tokio::test]
async fn senders_get_alerts_in_the_language_of_their_country() {
    let (server, api) = start_with_key().await;
    create_with_emails(&api, "order-0001", "SB-CUSTOMS-0001").await;
    server.clock().advance(12 * MINUTES).await;
    let held = server.mails();
    let expected = [
        (RECEIVER, "Su paquete está retenido en la aduana"),
        (SENDER, "A parcel is held at customs"),
    ];
    let mut expected =
        expected.map(|(to, text)| (to.to_owned(), format!("[Sandbox] {text}: SB-CUSTOMS-0001")));
    let mut found = subjects(&held);
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_burst_of_events_is_one_e_mail() {
    let (server, api) = start_with_key().await;
    create_with_emails(&api, "order-0001", "SB-PARCEL-0001").await;
    let number = parcelo::TrackingNumber::parse("SB-PARCEL-0001").unwrap();
    server.put_status(&number, parcelo::ParcelStatus::Delivered).await.unwrap();
    assert_eq!(server.mails(), [], "it waits for more");
    server.clock().advance(2 * MINUTES).await;
    let mails = server.mails();
    assert_eq!(mails.len(), 1, "{:?}", subjects(&mails));
    assert!(mails[0].subject.contains("fue entregado"), "{}", mails[0].subject);
}

#[tokio::test]
async fn an_unsubscribed_address_stays_so_even_after_a_reset() {
    let (server, api) = start_with_key().await;
    create_with_emails(&api, "order-0001", "SB-SUCCESS-0001").await;
    server.clock().advance(12 * MINUTES).await;
    let [first] = &server.mails()[..] else { panic!("{:?}", subjects(&server.mails())) };
    let link = first.unsubscribe_url.strip_prefix(server.url()).unwrap();
    assert!(!link.contains("luis") && !link.contains('@'), "{link}");
    let visitor = Api::new(server.url());
    // A mail scanner opens every link in an e-mail.
    for _ in 0..3 {
        let page = send(visitor.request("GET", link).header("accept", "text/html")).await;
        assert_eq!(page.status, 200);
        assert!(page.text().contains("method=\"post\""), "{}", page.text());
        assert_eq!(page.header("referrer-policy"), "no-referrer");
        assert!(page.header("content-security-policy").contains("form-action 'self'"));
    }
    assert_eq!(send(visitor.request("HEAD", link)).await.status, 200);
    server.clock().advance(10 * MINUTES).await;
    let sent = server.mails().len();
    assert!(sent > 1, "opening the link does not unsubscribe");

    let click = visitor.request("POST", link).body("List-Unsubscribe=One-Click");
    let click = click.header("content-type", "application/x-www-form-urlencoded");
    assert_eq!(send(click).await.status, 200);
    server.clock().advance(60 * MINUTES).await;
    assert_eq!(server.mails().len(), sent, "{:?}", subjects(&server.mails()));

    server.reset().await;
    assert_eq!(server.mails(), []);
    create_with_emails(&api, "order-0002", "SB-SUCCESS-0002").await;
    server.clock().advance(60 * MINUTES).await;
    assert_eq!(server.mails(), []);
    // Other receivers of the account still get e-mails.
    let other = with(
        order_with_number("order-0003", "SB-SUCCESS-0003"),
        "/receiver/email",
        "eva@example.org".into(),
    );
    api.create_parcel(&other).await;
    server.clock().advance(60 * MINUTES).await;
    assert!(server.mails().iter().all(|mail| mail.to == "eva@example.org"));
    assert_eq!(server.mails().len(), 3);
}

#[tokio::test]
async fn a_button_unsubscribes_and_a_wrong_link_does_nothing() {
    let (server, api) = start_with_key().await;
    create_with_emails(&api, "order-0001", "SB-SUCCESS-0001").await;
    server.clock().advance(12 * MINUTES).await;
    let mails = server.mails();
    let link = mails[0].unsubscribe_url.strip_prefix(server.url()).unwrap();
    let visitor = Api::new(server.url());
    let page = async |method: &str, path: &str| {
        let request = visitor.request(method, path).header("accept", "text/html");
        let response = send(request).await;
        (response.status, response.text())
    };
    for (language, question, done) in [
        ("es", "¿Dejar de recibir estos correos?", "No habrá más correos"),
        ("en", "Stop these e-mails?", "No more e-mails"),
    ] {
        let path = format!("{link}?lang={language}");
        let (status, text) = page("GET", &path).await;
        assert!(status == 200 && text.contains(question), "{text}");
        let (status, text) = page("POST", &path).await;
        assert!(status == 200 && text.contains(done) && !text.contains("<form"), "{text}");
    }
    for wrong in [
        format!("{link}A"),
        link.replace("/unsubscribe/", "/unsubscribe/A"),
        "/unsubscribe/x".to_owned(),
    ] {
        for method in ["GET", "POST"] {
            let (status, text) = page(method, &wrong).await;
            assert!(status == 404 && !text.contains("<form"), "{method} {wrong}: {status}");
        }
        assert_eq!(send(visitor.request("POST", &wrong)).await.refusal().0, 404);
    }
}

#[tokio::test]
async fn suites_in_any_language_read_the_e_mails_over_http() {
    let controlled =
        MockServer::builder().start_controlled(([127, 0, 0, 1], 0).into()).await.unwrap();
    let server = &*controlled;
    let api = Api::with_key(server.url(), &server.key().issue());
    create_with_emails(&api, "order-0001", "SB-SUCCESS-0001").await;
    server.clock().advance(60 * MINUTES).await;
    let control = Api::new(server.url());
    let shown = control.get("/__mock/mails").await.json();
    let shown = shown["mails"].as_array().unwrap();
    assert_eq!(shown.len(), 3);
    for (shown, mail) in shown.iter().zip(server.mails()) {
        assert_eq!(shown["to"], RECEIVER);
        assert_eq!(shown["subject"], mail.subject);
        assert_eq!(shown["html"], mail.html);
        assert_eq!(shown["unsubscribeUrl"], mail.unsubscribe_url);
    }
    assert_eq!(send(control.request("POST", "/__mock/reset")).await.status, 200);
    assert_eq!(control.get("/__mock/mails").await.json()["mails"], json!([]));
}

/// The relay's reply to the dot that ends a message.
#[derive(Debug, Clone, Copy)]
enum MessageReply {
    /// No reply; the connection stays open.
    Silence,
    /// `250`.
    Accept,
    /// `451`: the message is to be sent again later.
    Defer,
}

/// A relay on this machine that records every message.
#[derive(Clone)]
struct Relay {
    port: u16,
    messages: Arc<Mutex<Vec<String>>>,
    replies: Arc<Mutex<VecDeque<MessageReply>>>,
    /// A recipient that the relay rejects as unknown.
    unknown: &'static str,
}

impl Relay {
    async fn start(unknown: &'static str, replies: impl IntoIterator<Item = MessageReply>) -> Self {
        let socket = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = socket.local_addr().unwrap().port();
        let replies = Arc::new(Mutex::new(replies.into_iter().collect()));
        let relay = Self { port, messages: Arc::default(), replies, unknown };
        let shared = relay.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = socket.accept().await {
                let relay = shared.clone();
                tokio::spawn(async move { relay.serve_connection(stream).await });
            }
        });
        relay
    }

    async fn serve_connection(&self, stream: TcpStream) -> Option<()> {
        let mut stream = BufReader::new(stream);
        let mut reply = "220 relay.test".to_owned();
        loop {
            stream.get_mut().write_all(format!("{reply}\r\n").as_bytes()).await.ok()?;
            let mut line = String::new();
            if stream.read_line(&mut line).await.ok()? == 0 {
                return None;
            }
            reply = match line.split(' ').next()?.trim_end() {
                "DATA" => {
                    stream.get_mut().write_all(b"354 go on\r\n").await.ok()?;
                    self.read_message(&mut stream).await?.to_owned()
                }
                "RCPT" if !self.unknown.is_empty() && line.contains(self.unknown) => {
                    format!("550 5.1.1 <{}> is unknown", self.unknown)
                }
                _ => "250 ok".to_owned(),
            };
        }
    }

    async fn read_message(&self, stream: &mut BufReader<TcpStream>) -> Option<&str> {
        let mut message = String::new();
        while !message.ends_with("\r\n.\r\n") {
            if stream.read_line(&mut message).await.ok()? == 0 {
                return None;
            }
        }
        self.messages.lock().unwrap().push(message);
        let dot = self.replies.lock().unwrap().pop_front();
        match dot.unwrap_or(MessageReply::Accept) {
            MessageReply::Accept => Some("250 2.0.0 taken"),
            MessageReply::Defer => Some("451 4.3.2 come back later"),
            MessageReply::Silence => std::future::pending().await,
        }
    }

    /// Waits for this many messages and returns them.
    async fn messages(&self, count: usize) -> Vec<String> {
        wait_for_value("the messages arrive", async || {
            let messages = self.messages.lock().unwrap().clone();
            (messages.len() >= count).then_some(messages)
        })
        .await
    }

    fn smtp_flags(&self) -> Vec<String> {
        let url = format!("smtp://127.0.0.1:{}", self.port);
        let pairs = [
            ("--smtp-url", url.as_str()),
            ("--mail-from", "Shop <parcels@shop.example>"),
            ("--base-url", "https://parcelo.example"),
        ];
        pairs.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value.to_owned()]).collect()
    }

    fn serve(&self, setup: &TestSetup) -> RunningServer {
        let flags = self.smtp_flags();
        let flags: Vec<_> = flags.iter().map(String::as_str).collect();
        setup.start_with(&[("PARCELO_LOG", "info")], &flags)
    }
}

fn header(message: &str, name: &str) -> String {
    let line = message.lines().find(|line| line.starts_with(&format!("{name}: ")));
    line.unwrap_or_else(|| panic!("{name}: {message}")).to_owned()
}

/// A setup on a database file, in which e-mails can be made due at once.
struct MailSetup(TestSetup);

impl MailSetup {
    fn new() -> Self {
        Self(TestSetup::on_file("what is due is moved in the file, since e-mails wait a minute"))
    }

    fn open_database(&self) -> Connection {
        let database = self.0.database();
        let file = Connection::open(database.strip_prefix("sqlite:").unwrap()).unwrap();
        file.busy_timeout(LONG).unwrap();
        file
    }

    /// Makes all e-mails due, as if a minute had passed or a lease had ended.
    fn make_due(&self) {
        self.open_database().execute("UPDATE mails SET due = 1 WHERE due IS NOT NULL", []).unwrap();
    }

    /// Returns the number of all e-mails, and of those with this status.
    fn count_with_status(&self, status: u8) -> (i64, i64) {
        let sql = "SELECT count(*), count(*) FILTER (WHERE status = ?1) FROM mails";
        self.open_database().query_row(sql, [status], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
    }

    async fn wait_for_status(&self, status: u8, count: i64) {
        until("that many e-mails have the status", async || {
            self.count_with_status(status).1 == count
        })
        .await;
    }
}

/// The stored status of an e-mail that was sent.
const SENT: u8 = 1;
const BOUNCED: u8 = 2;
const UNSUBSCRIBED: u8 = 13;

/// Creates an order in production and has a carrier scan it.
async fn push_scan(
    running: &RunningServer,
    setup: &TestSetup,
    key: &ApiKey,
    name: &str,
    status: &str,
) {
    let api = Api::with_key(running.url("production"), key);
    let number = api.create_parcel(&with_email_addresses(order(name))).await;
    let created =
        setup.admin("carriers", &["create", "--environment", "production", "--name", name]);
    let now = chrono::Utc::now().to_rfc3339();
    let event = json!({ "eventId": name, "trackingNumber": number, "status": status, "occurredAt": now, "location": "Quito, EC" });
    let results = api.push_events(created["key"].as_str().unwrap(), json!([event])).await;
    assert_eq!(results[0]["outcome"], "APPLIED", "{results}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_e_mail_of_a_killed_server_is_resent_with_the_same_id() {
    let (setup, relay) = (MailSetup::new(), Relay::start("", [MessageReply::Silence]).await);
    let mut running = relay.serve(&setup.0);
    let key = setup.0.new_key("production").1;
    push_scan(&running, &setup.0, &key, "order-0001", "PICKED_UP").await;
    setup.make_due();
    let first = relay.messages(1).await;
    running.kill();
    let running = relay.serve(&setup.0);
    setup.make_due();
    let both = relay.messages(2).await;
    assert_eq!(header(&both[0], "Message-ID"), header(&first[0], "Message-ID"));
    assert_eq!(header(&both[1], "Message-ID"), header(&first[0], "Message-ID"));
    setup.wait_for_status(SENT, 1).await;
    // The relay is known to have accepted it, so it is not sent a third time.
    setup.make_due();
    running.stop();
    assert_eq!(relay.messages(2).await.len(), 2);
    for name in ["List-Unsubscribe", "List-Unsubscribe-Post", "Auto-Submitted", "Date"] {
        header(&first[0], name);
    }
    assert_eq!(header(&first[0], "From"), "From: Shop <parcels@shop.example>");
    let output = setup.0.output();
    assert!(output.contains("e-mails are on"), "{output}");
    assert!(!output.contains(RECEIVER) && !output.contains(SENDER), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bounced_address_gets_no_more_e_mails() {
    let (setup, relay) = (MailSetup::new(), Relay::start(RECEIVER, []).await);
    let running = relay.serve(&setup.0);
    let key = setup.0.new_key("production").1;
    push_scan(&running, &setup.0, &key, "order-0001", "PICKED_UP").await;
    setup.make_due();
    setup.wait_for_status(BOUNCED, 1).await;
    push_scan(&running, &setup.0, &key, "order-0002", "PICKED_UP").await;
    setup.make_due();
    setup.wait_for_status(UNSUBSCRIBED, 1).await;
    let metrics = Api::new(running.url("admin")).get("/metrics").await.text();
    let bounced = r#"parcelo_mails_total{environment="production",outcome="bounced"} 1"#;
    assert!(metrics.contains(bounced), "{metrics}");
    running.stop();
    assert_eq!(relay.messages(0).await, Vec::<String>::new());
    let output = setup.0.output();
    assert!(output.contains("550 5.1.1 at RCPT TO"), "{output}");
    assert!(!output.contains(RECEIVER), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn e_mails_that_the_relay_does_not_take_are_counted_while_they_wait() {
    let (setup, relay) = (MailSetup::new(), Relay::start("", [MessageReply::Defer]).await);
    let running = relay.serve(&setup.0);
    let key = setup.0.new_key("production").1;
    let metrics = async || Api::new(running.url("admin")).get("/metrics").await.text();
    let waiting = |count| format!("parcelo_mails_waiting{{environment=\"production\"}} {count}\n");
    assert!(metrics().await.contains(&waiting(0)));
    push_scan(&running, &setup.0, &key, "order-0001", "PICKED_UP").await;
    setup.make_due();
    until("the relay has deferred it", async || {
        metrics().await.contains(r#"{environment="production",outcome="failed"} 1"#)
    })
    .await;
    let held = metrics().await;
    assert!(held.contains(&waiting(1)), "{held}");
    assert!(held.contains("parcelo_mail_age_seconds{environment=\"production\"} "), "{held}");
    setup.make_due();
    setup.wait_for_status(SENT, 1).await;
    assert!(metrics().await.contains(&waiting(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn parcels_older_than_the_e_mail_switch_send_none() {
    let (setup, relay) = (MailSetup::new(), Relay::start("", []).await);
    let running = setup.0.start_with(&[("PARCELO_LOG", "info")], &[]);
    let key = setup.0.new_key("production").1;
    push_scan(&running, &setup.0, &key, "order-0001", "PICKED_UP").await;
    running.stop();
    assert!(setup.0.output().contains("e-mails are off"), "{}", setup.0.output());
    assert_eq!(setup.count_with_status(0), (0, 0));
    let running = relay.serve(&setup.0);
    push_scan(&running, &setup.0, &key, "order-0002", "PICKED_UP").await;
    setup.make_due();
    assert_eq!(relay.messages(1).await.len(), 1);
    running.stop();
    assert_eq!(setup.count_with_status(SENT), (1, 1));
}

#[test]
fn wrong_e_mail_flags_are_named_at_the_start() {
    let setup = TestSetup::new();
    let from = ["--mail-from", "parcels@shop.example"];
    let table = [
        ("smtp://localhost", &[][..], "needs --base-url"),
        (
            "smtp://shop:s3cret@relay.example",
            &["--base-url", "https://parcelo.example"],
            "PARCELO_SMTP_PASSWORD",
        ),
    ];
    for (url, more, part) in table {
        let output = setup.command().args(["--smtp-url", url]).args(from).args(more).output();
        let output = output.unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && text.contains(part), "{url}: {text}");
        assert!(!text.contains("s3cret"), "{text}");
    }
}
