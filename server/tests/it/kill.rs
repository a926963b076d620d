//! Orders are created exactly once: under a thousand duplicates, and under `kill -9` at any moment.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use parcelo::{ApiKey, Operation};
use tokio::task::JoinSet;

use crate::{
    api::{Answer, Api, order, try_send},
    running::{RunningServer, TestSetup},
};

const UNLIMITED: [&str; 2] = ["--sandbox-rate-limit", "1000000"];

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: `.ci/prove proofs` runs it"]
async fn one_of_1000_duplicates_creates_even_after_a_kill() {
    let setup = TestSetup::new();
    let mut running = setup.start(&UNLIMITED);
    let key = setup.new_key("sandbox").1;
    let answers = send_duplicates(&running, &key).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 1);
    assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 999);
    assert!(answers.iter().all(|answer| answer.bytes == answers[0].bytes));
    running.kill();
    let restarted = setup.start(&UNLIMITED);
    for answer in send_duplicates(&restarted, &key).await {
        assert_eq!((answer.status, &answer.bytes), (200, &answers[0].bytes));
    }
}

async fn send_duplicates(running: &RunningServer, key: &ApiKey) -> Vec<Answer> {
    let api = running.api(key);
    let mut tasks = JoinSet::new();
    for _ in 0..1_000 {
        let api = api.clone();
        tasks.spawn(async move { api.create(&order("order-0001")).await });
    }
    tasks.join_all().await
}

/// The clients' own records: idempotency key and tracking number of each acknowledged order.
type AcknowledgedOrders = Arc<Mutex<BTreeMap<String, String>>>;

/// Returns the number of rounds, each of load and a `kill -9`; `PARCELO_KILLS` overrides it.
fn kill_count() -> u32 {
    std::env::var("PARCELO_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(10)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: `.ci/prove proofs` runs it"]
async fn kill_9_under_load_neither_loses_nor_doubles_an_order() {
    let setup = TestSetup::new();
    let acknowledged = AcknowledgedOrders::default();
    let mut running = setup.start(&UNLIMITED);
    let key = setup.new_key("sandbox").1;
    let mut random = fastrand::Rng::with_seed(1);
    for cycle in 0..kill_count() {
        let load = start_load(&running, &key, cycle, &acknowledged);
        tokio::time::sleep(Duration::from_millis(random.u64(20..400))).await;
        running.kill();
        let sent = load.join_all().await.into_iter().flatten().collect::<Vec<_>>();
        running = setup.start(&UNLIMITED);
        check_all(&running.api(&key), &sent, &acknowledged).await;
    }
    let acknowledged = acknowledged.lock().unwrap();
    let numbers: std::collections::BTreeSet<_> = acknowledged.values().collect();
    assert_eq!(numbers.len(), acknowledged.len(), "no two orders share a parcel");
    println!("{} orders survived {} kills: 0 lost, 0 doubled", acknowledged.len(), kill_count());
}

/// Starts 16 clients that send order after order until the server is gone; each returns the keys it sent.
fn start_load(
    running: &RunningServer,
    key: &ApiKey,
    cycle: u32,
    acknowledged: &AcknowledgedOrders,
) -> JoinSet<Vec<String>> {
    let mut load = JoinSet::new();
    for client in 0..16 {
        let (api, acknowledged) = (running.api(key), Arc::clone(acknowledged));
        load.spawn(async move {
            let mut sent = Vec::new();
            for count in 0.. {
                let key = format!("kill-{cycle}-{client}-{count}");
                sent.push(key.clone());
                match create(&api, &key).await {
                    Some(number) => acknowledged.lock().unwrap().insert(key, number),
                    None => break,
                };
            }
            sent
        });
    }
    load
}

/// Creates an order. Returns its tracking number if it was acknowledged.
async fn create(api: &Api, key: &str) -> Option<String> {
    let request = api.request("POST", Operation::CreateOrder.path());
    let request = request.header("content-type", "application/json").body(order(key).to_string());
    let answer = try_send(request).await.ok()?;
    assert!(matches!(answer.status, 200 | 201), "{}", answer.text());
    Some(answer.json()["parcel"]["trackingNumber"].as_str().unwrap().to_owned())
}

/// Sends every order again. Acknowledged orders must get the same response, and the others must exist once.
async fn check_all(api: &Api, sent: &[String], acknowledged: &AcknowledgedOrders) {
    for key in sent {
        let number = create(api, key).await.expect("the restarted server answers");
        let known = acknowledged.lock().unwrap().insert(key.clone(), number.clone());
        assert!(known.is_none_or(|known| known == number), "{key} became another parcel");
        assert_eq!(create(api, key).await, Some(number.clone()), "{key}");
        assert_eq!(api.track(&number).await.status, 200, "{number}");
    }
}
