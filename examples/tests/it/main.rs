//! Runs every example as its reader would: as a process, with key and address in its environment, against the real
//! service. The tests advance the clock, and a "crash" is a kill.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod extractor;
mod kill_points;
mod readme;
mod suite;
mod transport;
#[path = "../../../server/tests/waiting/mod.rs"]
mod waiting;

use std::{
    collections::BTreeSet,
    env, fs,
    io::{BufRead, BufReader, Write},
    iter,
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use parcelo::{
    ApiKey, Client, ErrorCode, IdempotencyKey, Operation, OrderRequest, ParcelStatus,
    TrackingNumber, chrono::TimeDelta, model::Saved, webhook::Secret,
};
use parcelo_server::mock::{Clock, MockServer, sample};
use serde_json::json;
use tempfile::TempDir;
use waiting::{LONG, until};

/// A server and the folder where examples run.
struct Setup {
    server: MockServer,
    key: String,
    folder: TempDir,
}

impl Setup {
    async fn open() -> Self {
        Self::with_clock(Clock::frozen("2026-01-05T08:00:00Z")).await
    }

    async fn with_clock(clock: Clock) -> Self {
        let server = MockServer::builder().clock(clock).start().await;
        let key = server.key().countries(["EC"]).issue().secret().to_owned();
        Self { server, key, folder: tempfile::tempdir().unwrap() }
    }

    fn example(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = example_command(name);
        command.args(arguments).current_dir(&self.folder);
        command.env("PARCELO_API_KEY", &self.key).env("PARCELO_BASE_URL", self.server.url());
        command
    }

    /// Returns the output of an example that succeeds.
    fn run(&self, name: &str, arguments: &[&str]) -> String {
        let output = self.example(name, arguments).output().unwrap();
        assert!(output.status.success(), "{name}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns the message of an example that fails.
    fn run_failing(&self, name: &str, arguments: &[&str]) -> String {
        error_message(&self.example(name, arguments).output().unwrap())
    }

    fn client(&self) -> Client {
        self.server.client(&ApiKey::parse(&self.key).unwrap())
    }

    async fn parcels(&self) -> u64 {
        self.client().parcels().list().await.unwrap().meta.total
    }

    async fn order(&self, number: &str) -> TrackingNumber {
        let number = TrackingNumber::parse(number).unwrap();
        let mut order: OrderRequest = serde_json::from_str(sample::ORDER).unwrap();
        order.idempotency_key = IdempotencyKey::derive("examples", number.as_str());
        order.tracking_number = Some(number.clone());
        self.client().orders().create(&order).await.unwrap();
        number
    }
}

/// Returns the command of an example, with an empty environment.
fn example_command(name: &str) -> Command {
    // Cargo builds the examples beside the tests: target/debug/deps/it, target/debug/examples/NAME.
    let folder = env::current_exe().unwrap();
    let folder = folder.parent().and_then(Path::parent).unwrap().join("examples");
    let program = folder.join(name).with_extension(env::consts::EXE_EXTENSION);
    assert!(program.exists(), "first: cargo build -p parcelo-examples --examples");
    let mut command = Command::new(program);
    for variable in ["PARCELO_API_KEY", "PARCELO_BASE_URL", "PARCELO_WEBHOOK_SECRETS"] {
        command.env_remove(variable);
    }
    command
}

/// Returns the error message of a failed program, which has at least one line, and neither a panic nor debug output of
/// Rust.
fn error_message(output: &Output) -> String {
    let message = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(
        !message.is_empty() && !message.contains("panicked") && !message.contains("Error {"),
        "{message}"
    );
    message
}

fn start(mut command: Command) -> (Child, impl Iterator<Item = String>) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (read, lines) = mpsc::channel();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    thread::spawn(move || stdout.lines().try_for_each(|line| read.send(line.unwrap())));
    let lines = iter::from_fn(move || {
        let line = lines.recv_timeout(LONG);
        assert_ne!(
            line,
            Err(RecvTimeoutError::Timeout),
            "the example prints nothing more and does not end"
        );
        line.ok()
    });
    (child, lines)
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

const CALLERS: [(&str, &str); 5] = [
    ("create_order", "1001"),
    ("import_orders", "orders.csv"),
    ("track_until_delivered", "SB-SUCCESS-0001"),
    ("sqlite_journal", "orders.db"),
    ("worker", "orders.jsonl"),
];

#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_an_example_fails_with_a_reason() {
    let setup = Setup::open().await;
    for (name, argument) in CALLERS {
        let run = |key: Option<&str>, url: &str| {
            let mut command = example_command(name);
            command.arg(argument).current_dir(&setup.folder).env("PARCELO_BASE_URL", url);
            key.map(|key| command.env("PARCELO_API_KEY", key));
            error_message(&command.output().unwrap())
        };
        assert_eq!(run(None, setup.server.url()), "PARCELO_API_KEY is not set.\n", "{name}");
        let typo = run(Some("pk_tset_typo"), setup.server.url());
        assert!(typo.starts_with("PARCELO_API_KEY is not an API key: "), "{name}: {typo}");
        let address = run(Some(&setup.key), "nowhere");
        let refused = "The base URL is not an http or https address: ";
        assert!(address.starts_with(refused), "{name}: {address}");
        assert!(setup.example(name, &[]).output().unwrap().status.code() == Some(1), "{name}");
    }
    assert_eq!(
        error_message(&example_command("webhook_receiver").output().unwrap()),
        "set PARCELO_WEBHOOK_SECRETS\n"
    );
    assert_eq!(setup.parcels().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn create_order_creates_one_parcel_in_many_runs() {
    let setup = Setup::open().await;
    let first = setup.run("create_order", &["1001"]);
    let number = first.split(' ').next().unwrap();
    assert_eq!(first, format!("{number} is new\nits label is ./{number}.pdf\n"));
    assert!(
        fs::read(setup.folder.path().join(format!("{number}.pdf"))).unwrap().starts_with(b"%PDF")
    );
    let again = setup.run("create_order", &["1001"]);
    assert!(again.starts_with(&format!("{number} was created before\n")), "{again}");
    assert_eq!(setup.parcels().await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn create_order_explains_a_failure() {
    let setup = Setup::open().await;
    let table = [
        (ErrorCode::AuthInvalidApiKey, "check PARCELO_API_KEY and its rights\n"),
        (ErrorCode::ValidationFailed, "VALIDATION_FAILED (400): "),
        (ErrorCode::ServiceUnavailable, "run this again in "),
        (ErrorCode::AuthCountryNotAllowed, "check PARCELO_API_KEY and its rights\n"),
        (ErrorCode::IdempotencyConflict, "see orders().find(\"1001\")\n"),
    ];
    for (code, expected) in table {
        setup.server.faults().on(Operation::CreateOrder).error(code);
        let error_text = setup.run_failing("create_order", &["1001"]);
        assert!(error_text.starts_with(expected), "{error_text}");
        assert!(error_text.contains(&format!("{code} ({}): ", code.status())), "{error_text}");
        setup.server.faults().clear();
    }
    setup.server.faults().on(Operation::CreateOrder).after_commit().close();
    let unknown_outcome = setup.run_failing("create_order", &["1001"]);
    assert!(unknown_outcome.starts_with("run this again in 5 s\n"), "{unknown_outcome}");
    setup.server.faults().clear();
    assert!(setup.run("create_order", &["1001"]).contains(" was created before\n"));
    assert_eq!(setup.parcels().await, 1);
    let long = setup.run_failing("create_order", &[&"9".repeat(101)]);
    assert_eq!(long, "the request breaks the rules: externalOrderId TOO_LONG\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn import_orders_says_which_rows_an_earlier_run_created() {
    let setup = Setup::open().await;
    fs::copy(file("orders.csv"), setup.folder.path().join("orders.csv")).unwrap();
    setup.server.faults().on(Operation::CreateOrder).nth(2).error(ErrorCode::AuthCountryNotAllowed);
    let output = setup.example("import_orders", &["orders.csv"]).output().unwrap();
    let message = error_message(&output);
    assert!(message.ends_with(" correct the row or the key\n1 failed\n"), "{message}");
    assert_eq!(String::from_utf8(output.stdout).unwrap().matches("Created").count(), 2);
    let second = setup.run("import_orders", &["orders.csv"]);
    let outcomes = |word| second.lines().filter(|line| line.ends_with(word)).count();
    assert_eq!((outcomes("Created"), outcomes("Replayed")), (1, 2), "{second}");
    assert!(second.contains("row 1: ") && second.contains("row 3: "), "{second}");
    assert_eq!(setup.run("import_orders", &["orders.csv"]).matches("Replayed").count(), 3);
    assert_eq!(setup.parcels().await, 3);
    setup.server.assert_exactly_once();
}

#[tokio::test(flavor = "multi_thread")]
async fn import_orders_sends_nothing_of_a_file_with_a_wrong_row() {
    let setup = Setup::open().await;
    let good = fs::read_to_string(file("orders.csv")).unwrap();
    let table = [
        (good.replace("1.25", "heavy"), "nothing was sent: row 1: "),
        (
            good.replace("+593987654321", "12"),
            "nothing was sent: row 2: the request breaks the rules: receiver.phone ",
        ),
        (good.replace(",39.90", ""), "nothing was sent: row 3: "),
    ];
    for (text, expected) in table {
        fs::write(setup.folder.path().join("orders.csv"), text).unwrap();
        let error_text = setup.run_failing("import_orders", &["orders.csv"]);
        assert!(error_text.starts_with(expected), "{error_text}");
    }
    assert_eq!(setup.parcels().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn track_until_delivered_prints_each_event_once_and_ends() {
    let setup = Setup::open().await;
    let journeys = [
        (
            "SB-SUCCESS-0001",
            [
                "Order created",
                "Label generated",
                "In customs clearance",
                "In transit",
                "Out for delivery",
                "Delivered",
            ]
            .as_slice(),
            Some(0),
        ),
        (
            "SB-RTS-0001",
            [
                "Order created",
                "Label generated",
                "In transit",
                "Delivery attempted",
                "Returning to sender",
            ]
            .as_slice(),
            Some(1),
        ),
    ];
    for (number, events, code) in journeys {
        setup.order(number).await;
        let (mut child, mut lines) =
            start(setup.example("track_until_delivered", &[number, "0.02"]));
        for (place, event) in events.iter().enumerate() {
            if place > 1 {
                setup.server.clock().advance(Duration::from_secs(5 * 60)).await;
            }
            let line = lines.next().unwrap();
            assert!(line.contains(&format!("  {event}  ")), "{line}");
        }
        assert_eq!((lines.next(), child.wait().unwrap().code()), (None, code), "{number}");
    }
    assert!(
        setup
            .run_failing("track_until_delivered", &["SB-ABSENT-0001"])
            .starts_with("PARCEL_NOT_FOUND (404)")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_receiver_handles_each_signed_event_once() {
    let setup = Setup::with_clock(Clock::system()).await;
    let secret = setup.server.webhook_inbox().send_to("http://127.0.0.1:9/").expose();
    let old = Secret::from_random(&[7; 32]).expose();
    let mut receiver = setup.example("webhook_receiver", &["127.0.0.1:0"]);
    receiver.env("PARCELO_WEBHOOK_SECRETS", format!("{secret},{old}"));
    let (mut child, mut lines) = start(receiver);
    let url = lines.next().unwrap().split_off("listening on ".len());
    assert_eq!(
        setup.server.webhook_inbox().events(["parcel.created"]).send_to(&url).expose(),
        secret
    );

    let number = setup.order("SB-NORMAL-0001").await;
    setup.server.put_status(&number, ParcelStatus::PickedUp).await.unwrap();
    let printed = [lines.next().unwrap(), lines.next().unwrap(), lines.next().unwrap()];
    assert_eq!(
        printed,
        [
            format!("{number} is new"),
            format!("{number} is LABEL_GENERATED"),
            format!("{number} is PICKED_UP"),
        ]
    );
    let secret = Secret::parse(&secret).unwrap();
    let now = setup.server.clock().now().timestamp();
    let body = br#"{"event":"webhook.test","environment":"sandbox","timestamp":"2026-01-10T15:05:00.000Z","data":{}}"#;
    let send = |secret: &Secret, sent: i64| {
        let signature = secret.sign("evt_1", sent, body);
        let signed = format!(
            "webhook-id: evt_1\r\nwebhook-timestamp: {sent}\r\nwebhook-signature: {signature}\r\n"
        );
        post(&url, &signed, body)
    };
    assert_eq!(
        send(&Secret::from_random(&[8; 32]), now),
        "HTTP/1.1 400 Bad Request",
        "a stranger's"
    );
    assert_eq!(send(&secret, now - 301), "HTTP/1.1 400 Bad Request", "too old");
    assert_eq!(send(&secret, now), "HTTP/1.1 204 No Content", "in order");
    assert_eq!(send(&secret, now), "HTTP/1.1 400 Bad Request", "a copy");
    assert_eq!(send(&secret, now + 1), "HTTP/1.1 204 No Content", "a new attempt, not done again");
    child.kill().unwrap();
    assert_eq!(lines.collect::<Vec<_>>(), ["nothing to do about webhook.test"]);
    let refused = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    child.wait().unwrap();
    let reasons: Vec<_> = refused.lines().map(|line| line.split(':').nth(1).unwrap()).collect();
    assert!(
        reasons[0].contains("signature mismatch") && reasons[2].contains("replayed"),
        "{refused}"
    );
}

/// Sends a request and returns the first line of the response.
fn post(url: &str, headers: &str, body: &[u8]) -> String {
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(
        stream,
        "POST / HTTP/1.1\r\nhost: {address}\r\ncontent-length: {length}\r\n{headers}\r\n"
    )
    .unwrap();
    stream.write_all(body).unwrap();
    BufReader::new(stream).lines().next().unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_journal_ships_each_order_once() {
    let setup = Setup::open().await;
    let create = setup.server.faults().on(Operation::CreateOrder);
    create.nth(2).after_commit().latency(Duration::from_secs(3600));
    let (mut child, mut lines) = start(setup.example("sqlite_journal", &["orders.db"]));
    assert!(lines.next().unwrap().ends_with(" now"));
    until("the second parcel exists", async || setup.parcels().await == 2).await;
    child.kill().unwrap(); // the second order exists, but the program does not know it
    child.wait().unwrap();
    assert_eq!(lines.next(), None);

    let run = || {
        let output = setup.run("sqlite_journal", &["orders.db"]);
        let without_number = |line: &str| {
            let words: Vec<_> = line.split(' ').collect();
            format!("{} {}", words[0], words[2])
        };
        output.lines().map(without_number).collect::<Vec<_>>()
    };
    assert_eq!(run(), ["1002 resumed", "1001 before", "1002 before", "1003 now"]);
    assert_eq!(run(), ["1001 before", "1002 before", "1003 before"]);
    assert_eq!(setup.parcels().await, 3);
    setup.server.assert_exactly_once();
}

/// Returns the orders of a worker, with these ids.
fn worker_orders(ids: std::ops::Range<usize>) -> Vec<OrderRequest> {
    let order = |id: usize| {
        let mut order: OrderRequest = serde_json::from_str(sample::ORDER).unwrap();
        order.idempotency_key = IdempotencyKey::derive("worker", &id.to_string());
        (order.tracking_number, order.external_order_id) = (None, Some(id.to_string()));
        order
    };
    ids.map(order).collect()
}

fn order_lines(orders: &[OrderRequest]) -> String {
    orders.iter().map(|order| serde_json::to_string(order).unwrap() + "\n").collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_ships_orders_left_open_for_a_day_only_once() {
    let setup = Setup::with_clock(Clock::system()).await;
    let path = |name: &str| setup.folder.path().join(name);
    let old = setup.server.clock().now() - TimeDelta::hours(25);
    let orders = worker_orders(0..3);
    // The first was shipped but not recorded, the second never sent, and the third is new.
    let shipped = setup.client().orders().create(&orders[0]).await.unwrap();
    let number = &shipped.parcel.tracking_number;
    let entry = |order: usize| {
        let id = &orders[order].external_order_id;
        let order = Saved::new(&orders[order], old);
        json!({"orderId": id, "state": {"open": {"order": order, "apiKey": "", "sentUntil": old}}})
    };
    let entries = format!("{}\n{}\n", entry(0), entry(1));
    fs::write(path("orders.jsonl.journal"), entries).unwrap();
    fs::write(path("orders.jsonl"), order_lines(&orders)).unwrap();
    let output = setup.run("worker", &["orders.jsonl"]);
    assert_eq!(output.lines().count(), 3, "{output}");
    assert!(output.contains(&format!("0 {number}\n")), "{output}");
    assert_eq!(setup.parcels().await, 3);
    setup.server.assert_exactly_once();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_killed_ten_times_ships_each_order_once() {
    const ORDERS: usize = 120;
    let mut setup = Setup::with_clock(Clock::system()).await;
    setup.key = setup.server.key().countries(["EC"]).rate_limit(10_000).issue().secret().to_owned();
    let path = |name: &str| setup.folder.path().join(name);
    fs::write(path("orders.jsonl"), order_lines(&worker_orders(0..ORDERS))).unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    for kill in 0..10 {
        // One request is never answered, before its work or after it; the others go on.
        let fault = setup.server.faults().on_any().nth(random.u64(1..9));
        let fault = if kill % 2 == 0 { fault } else { fault.after_commit() };
        fault.latency(Duration::from_secs(3600));
        let (mut child, lines) = start(setup.example("worker", &["orders.jsonl"]));
        until("it waits", async || setup.server.faults().unused().is_empty()).await;
        child.kill().unwrap();
        drop(lines);
        assert!(!child.wait().unwrap().success());
    }
    let output = setup.run("worker", &["orders.jsonl"]);

    assert_eq!(setup.parcels().await, ORDERS as u64);
    setup.server.assert_exactly_once();
    let numbers: BTreeSet<_> =
        output.lines().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect();
    assert_eq!((output.lines().count(), numbers.len()), (ORDERS, ORDERS), "{output}");
    for number in numbers {
        let label = fs::read(path("labels").join(format!("{number}.pdf"))).unwrap();
        assert!(
            label.starts_with(b"%PDF") && label.trim_ascii_end().ends_with(b"%%EOF"),
            "{number}"
        );
    }
}
