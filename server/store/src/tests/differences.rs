//! Differential tests: the same random history of calls must get the same answers from a file, in memory and from
//! PostgreSQL.

use super::{
    conformance::{self, SECRET},
    first_seed,
    histories::History,
};
use crate::Store;

/// Methods that a history does not call, or whose answers differ for a reason.
const EXEMPT: &[(&str, &str)] = &[
    ("commit_idempotent", "a commit that returns its body"),
    ("outbox_changed", "it returns nothing, and waits for another call"),
    ("truncate_log", "a file's log is its own"),
    ("release_stranded", "a safety net, which finds nothing as long as the locks work"),
    ("claim_requests", "a file has one server, so every claim is granted"),
    ("send_heartbeat", "a file has one server, so there is nothing to count"),
    ("begin_login", "a file counts failures in memory"),
    ("take_back_login", "a file counts failures in memory"),
    ("remember_login", "a file counts failures in memory"),
    ("size", "each engine stores rows in its own way"),
    ("writer_answers", "it reads nothing: `true` unless the writer is stuck"),
];

/// Default number of histories; `PARCELO_HISTORIES` overrides it.
const HISTORIES: u64 = 6;
const STEPS: usize = 150;

#[test]
fn every_method_is_in_the_histories() {
    // Without whitespace, because a long call has its method on a separate line.
    let histories: String = include_str!("histories.rs").split_whitespace().collect();
    for name in conformance::methods() {
        let calls = [format!("store.{name}("), format!("store.{name}::<")];
        let is_called = calls.iter().any(|call| histories.contains(call));
        let is_exempt = EXEMPT.iter().any(|(exempt, _)| *exempt == name);
        assert!(is_called != is_exempt, "{name}: call it in a history, or give a reason not to");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_store_gives_the_same_answers_to_a_history() {
    let count = std::env::var("PARCELO_HISTORIES").ok().and_then(|count| count.parse().ok());
    let first = first_seed();
    for seed in first..first + count.unwrap_or(HISTORIES) {
        compare(seed).await;
    }
}

async fn compare(seed: u64) {
    let (file, _folder) = conformance::file();
    let mut stores = vec![("memory", Store::memory(SECRET).unwrap()), ("a file", file)];
    stores.extend(conformance::postgres().await.map(|(store, ())| ("PostgreSQL", store)));
    let mut histories: Vec<_> = stores.iter().map(|_| History::new(seed)).collect();
    for step in 0..=STEPS {
        let mut answers = Vec::new();
        for ((name, store), history) in stores.iter().zip(&mut histories) {
            let answer =
                if step == 0 { history.begin(store).await } else { history.step(store).await };
            answers.push((*name, answer));
        }
        let (first, expected) = &answers[0];
        for (name, answer) in &answers[1..] {
            assert_eq!(
                answer, expected,
                "{name} and {first} differ at step {step}: run it again with PARCELO_SEED={seed}"
            );
        }
    }
    let expected = histories[0].read_all_data(&stores[0].1).await;
    for ((name, store), history) in stores.iter().zip(&histories).skip(1) {
        for (answer, expected) in history.read_all_data(store).await.iter().zip(&expected) {
            assert_eq!(answer, expected, "{name} at the end: PARCELO_SEED={seed}");
        }
    }
    for (_, store) in stores {
        store.close().await;
    }
}
