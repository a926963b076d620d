//! Clients with several API keys and languages over one transport, and keys that change while a program runs.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use parcelo::{
    ApiKey, Client, ErrorKind, Language, NextStep, RateLimit, Retry,
    calls::{Attempt, FailureClass, StopReason},
    journal::JournalFile,
    transport::Phase,
};

use crate::scripted_transport::{
    CREATED, RECORD, ScriptedTransport, Step, client_with, key, number, order, refusal, response,
};

fn api_key(text: &str) -> ApiKey {
    ApiKey::parse(&format!("pk_test_{text}")).unwrap()
}

/// Returns the value of a header in each request, without the prefix of API keys.
fn sent(script: &ScriptedTransport, header: &str) -> Vec<String> {
    let requests = script.sent_requests();
    let values = requests.iter().map(|request| request.headers()[header].to_str().unwrap());
    values.map(|value| value.trim_start_matches("pk_test_").to_owned()).collect()
}

/// Returns a closure that returns each of these keys once, and then fails.
fn one_after_another(
    keys: &[&str],
) -> impl Fn() -> Result<ApiKey, &'static str> + Send + Sync + use<> {
    let keys: VecDeque<_> = keys.iter().map(|text| api_key(text)).collect();
    let keys = Mutex::new(keys);
    move || keys.lock().unwrap().pop_front().ok_or("the vault is sealed")
}

#[tokio::test(start_paused = true)]
async fn each_client_of_a_transport_sends_its_own_key_and_language() {
    let (client, script) = client_with([response(200, RECORD)], |it| {
        it.header("x-gateway", "let-me-in").unwrap().user_agent_suffix("shop/1").unwrap()
    });
    let other = client.with_key(&api_key("other")).unwrap();
    let spanish = other.with_language(Language::Es);
    for client in [&client, &other, &spanish, &spanish.with_key(&key()).unwrap()] {
        client.tracking().get(&number()).await.unwrap();
    }
    let own = key().secret().trim_start_matches("pk_test_").to_owned();
    assert_eq!(sent(&script, "x-api-key"), [&own, "other", "other", &own]);
    assert_eq!(sent(&script, "accept-language"), ["en", "en", "es", "es"]);
    for request in script.sent_requests() {
        assert_eq!(request.headers()["x-gateway"], "let-me-in");
        assert!(request.headers()["user-agent"].to_str().unwrap().ends_with("shop/1"));
        assert!(request.headers()["x-api-key"].is_sensitive());
    }
    assert_eq!((spanish.language(), client.language()), (Language::Es, Language::En));
    assert!(!format!("{other:?}").contains("other"), "{other:?}");
}

#[tokio::test(start_paused = true)]
async fn clients_of_one_key_share_its_rate_limit_and_others_do_not() {
    let (client, script) = client_with([response(200, RECORD)], |it| {
        it.rate_limit(RateLimit::adaptive().burst(1).fail_fast())
    });
    let (number, other) = (number(), client.with_key(&api_key("other")).unwrap());
    client.tracking().get(&number).await.unwrap();
    let same = other.with_key(&key()).unwrap().with_language(Language::Es);
    let error = same.tracking().get(&number).await.unwrap_err();
    assert_eq!(error.stop_reason(), Some(StopReason::RateLimit));
    other.tracking().get(&number).await.unwrap();
    let again = client.with_key(&api_key("other")).unwrap();
    let error = again.tracking().get(&number).await.unwrap_err();
    assert_eq!(error.stop_reason(), Some(StopReason::RateLimit));
    assert_eq!(script.sent_requests().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn clients_of_one_key_share_its_retry_budget_and_others_do_not() {
    let retry = Retry::standard().budget(2 * 14, 0);
    let (client, _) = client_with([response(503, "")], |it| it.retry(retry));
    let other = client.with_key(&api_key("other")).unwrap();
    let same = other.with_key(&key()).unwrap();
    for (client, attempts) in [(&client, 3), (&same, 1), (&other, 3), (&client, 1)] {
        let error = client.health().await.unwrap_err();
        assert_eq!((error.attempts(), error.stop_reason()), (attempts, Some(StopReason::Budget)));
    }
}

#[test]
fn a_key_that_a_builder_would_refuse_is_refused_later_too() {
    let live = ApiKey::parse("pk_live_dummy").unwrap();
    let build = |address| {
        let (transport, key) = (ScriptedTransport::new([Step::Hang]), api_key("1"));
        Client::builder(key).transport(transport).base_url(address).unwrap().build().unwrap()
    };
    let table = [
        ("http://127.0.0.1:8080", None),
        ("https://api.parcelo.example", None),
        ("http://api.parcelo.example", Some("A live key must not be sent unencrypted")),
        ("https://sandbox.parcelo.example", Some("different environments")),
    ];
    for (address, why) in table {
        let refused = build(address).with_key(&live).err();
        assert_eq!(refused.is_some(), why.is_some(), "{address}");
        if let (Some(error), Some(why)) = (refused, why) {
            assert!(error.to_string().contains(why), "{error}");
        }
    }
    let client = build("https://api.parcelo.example").with_key(&live).unwrap();
    assert_eq!(client.environment(), live.environment());
}

#[tokio::test(start_paused = true)]
async fn a_call_keeps_its_key_and_the_next_one_reads_it_again() {
    let steps = [
        Step::Fail(Phase::MaybeSent),
        response(503, ""),
        response(401, refusal("AUTH_INVALID_KEY")),
        response(201, CREATED),
    ];
    let (client, script) =
        client_with(steps, |it| it.key_provider(one_after_another(&["1", "2", "3"])));
    let (order, stored) = (order(), client.clone());
    let creation = stored.orders().create(&order);
    assert!(script.sent_requests().is_empty());
    let error = creation.clone().await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Authentication, 3));
    creation.await.unwrap();
    assert_eq!(sent(&script, "x-api-key"), ["1", "1", "1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_cannot_be_read_ends_the_call_before_it_is_sent() {
    let attempts = Arc::new(Mutex::new(Vec::<Attempt>::new()));
    let log = Arc::clone(&attempts);
    let (client, script) = client_with([Step::Fail(Phase::MaybeSent)], |it| {
        it.key_provider(one_after_another(&["1"]))
            .retry(Retry::none())
            .on_attempt(move |attempt| log.lock().unwrap().push(attempt.clone()))
    });
    let order = order();
    client.orders().create(&order).await.unwrap_err();
    let error = client.orders().create(&order).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Config, 0));
    assert!(format!("{error:?}").contains("the vault is sealed"), "{error:?}");
    assert!(error.may_have_executed(), "by the first call");
    assert!(matches!(error.next_step(), NextStep::LookUp { .. }));
    assert_eq!(error.idempotency_key(), Some(&order.idempotency_key));
    assert_eq!(script.sent_requests().len(), 1);
    let last = attempts.lock().unwrap().pop().unwrap();
    assert_eq!((last.failure, last.kind), (Some(FailureClass::NotAdmitted), Some(error.kind())));

    let error = client.health().await.unwrap_err();
    assert_eq!((error.may_have_executed(), error.next_step()), (false, NextStep::Configure));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_was_set_replaces_the_provider() {
    let (client, script) = client_with([response(200, RECORD)], |it| {
        it.key_provider(one_after_another(&["provided"]))
    });
    let set = client.with_key(&api_key("set")).unwrap();
    let first = client.with_key(&key()).unwrap();
    for client in [&set, &first, &client] {
        client.with_language(Language::Es).tracking().get(&number()).await.unwrap();
    }
    let own = key().secret().trim_start_matches("pk_test_").to_owned();
    assert_eq!(sent(&script, "x-api-key"), ["set", &own, "provided"]);
}

#[tokio::test(start_paused = true)]
async fn a_shipment_has_one_key_for_all_its_calls() {
    let folder = tempfile::tempdir().unwrap();
    let journal = JournalFile::open(folder.path().join("orders.journal")).unwrap();
    let steps = [response(503, "").with_header("retry-after", "31"), response(201, CREATED)];
    let (client, script) =
        client_with(steps, |it| it.key_provider(one_after_another(&["1", "2", "3"])));
    let order = order().with_external_order_id("1001");
    client.orders().ship(&order, &journal).await.unwrap();
    assert_eq!(sent(&script, "x-api-key"), ["1", "1"]);

    let silent = client.with_retry(Retry::none()).orders().ship(&order, &journal).await.unwrap();
    assert_eq!(silent.tracking_number, number(), "the journal knows it");
    tokio::time::advance(Duration::from_secs(1)).await;
    client.orders().resume(&journal).await.unwrap();
    let other = order.with_external_order_id("1002");
    let error = client.orders().ship(&other, &journal).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Config, 0));
    assert!(journal_is_settled(&journal).await, "an order without a key is not saved");
}

async fn journal_is_settled(journal: &JournalFile) -> bool {
    use parcelo::journal::Journal;
    journal.open().await.unwrap().is_empty()
}
