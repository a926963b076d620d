//! Tests of every refusal as the service sends it: each code of the catalogue, in both languages.

use std::{collections::BTreeMap, path::Path, pin::pin, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, Bytes},
    http::{Request, header},
    routing::get,
};
use futures_util::{poll, stream};
use http_body_util::BodyExt;
use parcelo_domain::{
    Changes, Countries, Event, IdempotencyRecord, Millis, RecordKey, Secrets, State, StoreOp,
    Tenant, access,
    audit::Actor,
    credentials::{AdminScope, ApiKeyScope, CarrierScope},
    legacy::LegacySchedule,
    sample::{self, TEST_AUTHOR},
};
use parcelo_service::{
    http::{Api, HttpRefusal, router, routes::open_routes},
    service::{CredentialIssuer, Limits, NewKeyRequest, Service, Settings},
};
use parcelo_store::{
    Store,
    test_util::{Damage, damage, delays::delay_by, hold_write_lock},
};
use parcelo_system::{clock::ManualClock, ids::Ids};
use parcelo_types::{
    Environment, ErrorCode, IdempotencyKey, Operation, TrackingNumber, internal::fingerprint,
};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::routes::admin_router;

const NOW: Millis = Millis(1_767_600_000_000);
const NUMBER: &str = "SB-SUCCESS-0001";

/// A service that is called without a socket.
struct TestService {
    service: Arc<Service>,
    ids: Arc<Ids>,
    clock: Arc<ManualClock>,
    refusals: BTreeMap<&'static str, Value>,
}

struct TestRequest<'a> {
    method: &'a str,
    path: &'a str,
    headers: &'a [(&'a str, &'a str)],
    body: String,
}

impl<'a> TestRequest<'a> {
    fn get(path: &'a str, headers: &'a [(&'a str, &'a str)]) -> Self {
        Self { method: "GET", path, headers, body: String::new() }
    }

    fn post(path: &'a str, headers: &'a [(&'a str, &'a str)], body: &Value) -> Self {
        Self { method: "POST", path, headers, body: body.to_string() }
    }
}

impl TestService {
    fn with_store(store: Store, legacy: LegacySchedule) -> Self {
        Self::new(store, legacy, Limits { enforced: false, ..Limits::default() })
    }

    fn new(store: Store, legacy: LegacySchedule, limits: Limits) -> Self {
        let secrets = Secrets::derive(&[1; 32]);
        let settings = Settings { limits, legacy, ..Settings::new("http://parcelo.test", secrets) };
        let (clock, ids) = (Arc::new(ManualClock::at(NOW)), Arc::new(Ids::seeded(1)));
        let service = Service::new(store, clock.clone(), Arc::clone(&ids), settings);
        Self { service: Arc::new(service), ids, clock, refusals: BTreeMap::new() }
    }

    fn in_memory() -> Self {
        Self::with_store(Store::memory([1; 32]).unwrap(), LegacySchedule::default())
    }

    fn api(&self, environment: Environment) -> Api {
        Api { service: Arc::clone(&self.service), environment, ready: Arc::default() }
    }

    /// Issues a key; `change` sets its properties.
    async fn key(&self, change: impl FnOnce(&mut NewKeyRequest)) -> String {
        let mut request = NewKeyRequest::unrestricted("default", Environment::Sandbox, "Test");
        change(&mut request);
        let issuer = self.issuer();
        issuer.issue_api_key(request, NOW).await.unwrap().0.secret().to_owned()
    }

    fn issuer(&self) -> CredentialIssuer<'_> {
        let secrets = &self.service.settings().secrets;
        CredentialIssuer {
            store: self.service.store(),
            secrets,
            ids: &self.ids,
            by: TEST_AUTHOR.clone(),
        }
    }

    async fn send(&self, request: TestRequest<'_>) -> (u16, Value) {
        call(router(self.api(Environment::Sandbox)), request).await
    }

    /// Sends a request that must be refused with this code, and keeps the refusal.
    async fn expect_refusal(&mut self, code: ErrorCode, request: TestRequest<'_>) {
        let response = self.send(request).await;
        self.record_refusal(code, response);
    }

    fn record_refusal(&mut self, code: ErrorCode, (status, body): (u16, Value)) {
        let error = if body["ok"] == false { &body } else { &body["error"] };
        let text = error["code"].as_str().or(error["error"].as_str());
        assert_eq!((status, text), (code.status(), Some(code.code())), "{body}");
        self.record_item_refusal(code, error);
    }

    /// Records an error with a code that only items of a response have.
    fn record_item_refusal(&mut self, code: ErrorCode, error: &Value) {
        self.refusals.insert(code.code(), error.clone());
    }

    async fn create(&self, key: &str, number: &str) {
        let mut order = sample::order();
        order["trackingNumber"] = json!(number);
        order["idempotencyKey"] = json!(format!("order-{number}"));
        let headers = [(parcelo_types::internal::header::API_KEY, key), JSON];
        let (status, body) =
            self.send(TestRequest::post(Operation::CreateOrder.path(), &headers, &order)).await;
        assert_eq!(status, 201, "{body}");
    }

    /// Moves a parcel to a state without the checks of any operation.
    async fn force_state(&self, number: &str, state: State) {
        let number = TrackingNumber::parse(number).unwrap();
        let store = self.service.store();
        let parcel = store.parcel(Environment::Sandbox, &number).await.unwrap().unwrap();
        let sequence = parcel.last_sequence + 1;
        let event =
            Event { sequence, state, at: NOW, location: "Nowhere".to_owned(), description: None };
        let ops = vec![
            StoreOp::Move { parcel: parcel.key, event },
            StoreOp::CancelSteps { parcel: parcel.key },
        ];
        let changes =
            Changes { now: NOW, trace: None, idempotency_record: None, expect: Vec::new(), ops };
        assert_eq!(store.commit(changes).await, parcelo_store::CommitOutcome::Committed);
    }
}

const JSON: (&str, &str) = ("content-type", "application/json");

async fn call(routes: Router, test: TestRequest<'_>) -> (u16, Value) {
    let mut request = Request::builder().method(test.method).uri(test.path);
    for (name, value) in test.headers {
        request = request.header(*name, *value);
    }
    send_request(routes, request.body(Body::from(test.body)).unwrap()).await
}

async fn send_request(routes: Router, request: Request<Body>) -> (u16, Value) {
    let response = routes.oneshot(request).await.unwrap();
    assert!(response.headers().contains_key("x-request-id"));
    assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap())
}

fn parcels(key: &str, numbers: &[&str]) -> Value {
    json!({ "idempotencyKey": key, "trackingNumbers": numbers })
}

fn manifest(key: &str, awb: &str, numbers: &[&str]) -> Value {
    json!({ "idempotencyKey": key, "awbNumber": awb, "trackingNumbers": numbers })
}

async fn check_key_refusals(test: &mut TestService) {
    let key = test.key(|_| {}).await;
    let elsewhere =
        test.key(|key| key.ip_list = vec![access::parse_network("10.0.0.1").unwrap()]).await;
    let mexican =
        test.key(|key| key.countries = Countries::Only(vec![parcelo_types::CountryCode::MX])).await;
    let slow = test.key(|key| key.rate_limit = Some(1)).await;
    let name = parcelo_types::internal::header::API_KEY;
    let (health, create) = (Operation::Health.path(), Operation::CreateOrder.path());
    let (order, events) = (sample::order(), sample::carrier_events());
    let (empty, long) = (json!({}), json!({ "long": "x".repeat(300_000) }));
    let [key, elsewhere, mexican, slow] =
        [&key, &elsewhere, &mexican, &slow].map(|key| [(name, key.as_str()), JSON]);
    let carrier = [(parcelo_types::internal::header::CARRIER_KEY, "ck_test_x"), JSON];
    let push = Operation::PushCarrierEvents.path();
    assert_eq!(test.send(TestRequest::get(health, &slow)).await.0, 200);
    for (code, request) in [
        (ErrorCode::AuthMissingApiKey, TestRequest::get(health, &[])),
        (ErrorCode::AuthInvalidApiKey, TestRequest::get(health, &[(name, "pk_test_x")])),
        (ErrorCode::AuthIpNotAllowed, TestRequest::get(health, &elsewhere)),
        (ErrorCode::AuthCountryNotAllowed, TestRequest::post(create, &mexican, &order)),
        (ErrorCode::RateLimitExceeded, TestRequest::get(health, &slow)),
        (ErrorCode::ValidationFailed, TestRequest::post(create, &key, &empty)),
        (ErrorCode::UnsupportedMediaType, TestRequest::post(create, &key[..1], &order)),
        (ErrorCode::PayloadTooLarge, TestRequest::post(create, &key, &long)),
        (ErrorCode::NotFound, TestRequest::get("/nothing", &[])),
        (ErrorCode::MethodNotAllowed, TestRequest::get(create, &key)),
        (ErrorCode::CarrierAuthFailed, TestRequest::post(push, &carrier, &events)),
    ] {
        test.expect_refusal(code, request).await;
    }
    let live = test.key(|key| key.environment = Environment::Production).await;
    let headers = [(name, live.as_str())];
    let reset = TestRequest::post(Operation::ResetSandbox.path(), &headers, &json!({}));
    let response = call(router(test.api(Environment::Production)), reset).await;
    test.record_refusal(ErrorCode::SandboxOnly, response);
}

async fn check_parcel_refusals(test: &mut TestService) {
    let key = test.key(|_| {}).await;
    let headers = [(parcelo_types::internal::header::API_KEY, key.as_str()), JSON];
    for number in [NUMBER, "SB-NORMAL-0001", "SB-NORMAL-0002", "SB-NORMAL-0003"] {
        test.create(&key, number).await;
    }
    let (create, void) = (Operation::CreateOrder.path(), Operation::VoidOrders.path());
    let mut conflict = sample::order();
    conflict["idempotencyKey"] = json!(format!("order-{NUMBER}"));
    conflict["parcelDetails"]["weightKg"] = json!(9);
    let mut duplicate = conflict.clone();
    duplicate["idempotencyKey"] = json!("another-key");
    for (code, path, body) in [
        (ErrorCode::IdempotencyConflict, create, conflict),
        (ErrorCode::ParcelDuplicateTracking, create, duplicate),
        (ErrorCode::ParcelNotFound, void, parcels("void-0001", &["SB-ABSENT-0001"])),
    ] {
        test.expect_refusal(code, TestRequest::post(path, &headers, &body)).await;
    }
    test.clock.set(NOW.plus(20 * Millis::MINUTE));
    let voided = parcels("void-0004", &["SB-NORMAL-0003"]);
    assert_eq!(test.send(TestRequest::post(void, &headers, &voided)).await.0, 200);
    let (reprint, batch) = (Operation::ReprintLabel.path_of(NUMBER), Operation::BatchLabels.path());
    let again = json!({ "idempotencyKey": "reprint-0001" });
    let both = json!({ "trackingNumbers": ["SB-NORMAL-0002", "SB-NORMAL-0003"] });
    for (code, path, body) in [
        (ErrorCode::ParcelNotVoidable, void, parcels("void-0002", &[NUMBER])),
        (ErrorCode::VoidFailed, void, parcels("void-0003", &[NUMBER, "SB-ABSENT-0001"])),
        (ErrorCode::LabelNotReprintable, &*reprint, again),
        (ErrorCode::LabelsRejected, batch, both),
    ] {
        test.expect_refusal(code, TestRequest::post(path, &headers, &body)).await;
    }
    test.create(&key, "SB-NORMAL-0009").await;
    test.force_state("SB-NORMAL-0009", State::Ordered).await;
    let other = [&headers[..], &[("if-match", "\"other\"")]].concat();
    for (code, number, headers) in [
        (ErrorCode::PreconditionFailed, "SB-NORMAL-0002", &other[..]),
        (ErrorCode::LabelVoided, "SB-NORMAL-0003", &headers),
        (ErrorCode::LabelNotFound, "SB-NORMAL-0009", &headers),
    ] {
        let label = Operation::DownloadLabel.path_of(number);
        test.expect_refusal(code, TestRequest::get(&label, headers)).await;
    }
    check_manifest_refusals(test, &headers).await;
}

async fn check_manifest_refusals(test: &mut TestService, headers: &[(&str, &str)]) {
    let submit = Operation::SubmitManifest.path();
    let first = manifest("man-0001", "176-12345675", &["SB-NORMAL-0001"]);
    assert_eq!(test.send(TestRequest::post(submit, headers, &first)).await.0, 201);
    let other = manifest("man-0002", "176-12345675", &["SB-NORMAL-0002"]);
    test.expect_refusal(
        ErrorCode::ManifestAlreadySubmitted,
        TestRequest::post(submit, headers, &other),
    )
    .await;
    let bad = manifest("man-0003", "020-81140743", &["SB-NORMAL-0001", NUMBER]);
    let (status, body) = test.send(TestRequest::post(submit, headers, &bad)).await;
    let items = body["error"]["details"]["errors"].clone();
    for (code, item) in [ErrorCode::ParcelAlreadyManifested, ErrorCode::ParcelNotManifestable]
        .into_iter()
        .zip(items.as_array().unwrap())
    {
        assert_eq!(item["code"], code.code());
        test.record_item_refusal(code, item);
    }
    test.record_refusal(ErrorCode::ManifestParcelsRejected, (status, body));
    let missing = Operation::GetManifest.path_of("man_01JH8Z0000000000000000000A");
    test.expect_refusal(ErrorCode::ManifestNotFound, TestRequest::get(&missing, headers)).await;
    let issued =
        test.issuer().issue::<CarrierScope>("Andes".to_owned(), Environment::Sandbox, NOW).await;
    let carrier = issued.unwrap().0;
    let headers = [(parcelo_types::internal::header::CARRIER_KEY, carrier.secret()), JSON];
    let mut events = sample::carrier_events();
    events["events"][0]["trackingNumber"] = json!("SB-NORMAL-0001");
    events["events"][0]["status"] = json!("DELIVERED");
    events["events"][0]["occurredAt"] = json!("2026-01-05T08:20:00Z");
    let (_, body) =
        test.send(TestRequest::post(Operation::PushCarrierEvents.path(), &headers, &events)).await;
    let error = &body["data"]["results"][0]["error"];
    assert_eq!(error["code"], ErrorCode::IllegalTransition.code(), "{body}");
    test.record_item_refusal(ErrorCode::IllegalTransition, error);
}

/// Checks the refusals that only operators see.
async fn check_operator_refusals(test: &mut TestService) {
    let routes = admin_router(test.api(Environment::Production));
    let token =
        test.issuer().issue::<AdminScope>("Test".to_owned(), AdminScope, NOW).await.unwrap().0;
    let bearer = format!("Bearer {}", token.secret());
    let headers = [("authorization", bearer.as_str()), JSON];
    let send = async |method: &str, path: &str, body: Value| {
        let path = format!("/admin/v1/{path}");
        let body = body.to_string();
        let request = TestRequest { method, path: &path, headers: &headers, body };
        call(routes.clone(), request).await
    };
    let get = async |path: &str| send("GET", path, Value::Null).await;
    let post = async |path: &str, body: Value| send("POST", path, body).await;
    let webhook = "webhooks/sandbox";
    let none = call(routes.clone(), TestRequest::get("/admin/v1/keys", &[])).await;
    let account = get("webhooks/sandbox?account=unknown").await;
    let gone = send("DELETE", "keys/key_1", Value::Null).await;
    test.issuer().find_or_create_account("default".to_owned(), NOW).await.unwrap();
    let unset = get(webhook).await;
    let url = json!({ "url": "https://shop.example/parcelo" });
    assert_eq!(send("PUT", webhook, url).await.0, 201);
    let event = json!({ "eventId": format!("evt_{}", "0".repeat(26)) });
    let event = post("webhooks/sandbox/replay", event).await;
    assert_eq!(post("webhooks/sandbox/disable", json!({})).await.0, 200);
    let disabled = post("webhooks/sandbox/test", json!({})).await;
    let tenant = test.service.store().account_named("default").await.unwrap().unwrap();
    let tenant = Tenant { account: tenant, environment: Environment::Sandbox };
    damage(test.service.store(), tenant, Damage::Endpoint).await;
    let unreadable = get(webhook).await;
    test.key(|request| request.name = "Revoked".to_owned()).await;
    let key = test.service.store().credentials::<ApiKeyScope>().await.unwrap().pop().unwrap().id;
    test.service.revoke_key(&key, Actor::Server).await.unwrap();
    let revoked = post(&format!("keys/{key}/rotate"), json!({})).await;
    let forged = [forged_form(&routes, "en").await, forged_form(&routes, "es").await];
    let forged = json!({ "message": forged[0], "message_es": forged[1] });
    test.record_item_refusal(ErrorCode::FormNotAccepted, &forged);
    for (code, answered) in [
        (ErrorCode::KeyRevoked, revoked),
        (ErrorCode::AdminAuthFailed, none),
        (ErrorCode::AccountNotFound, account),
        (ErrorCode::KeyNotFound, gone),
        (ErrorCode::WebhookNotFound, unset),
        (ErrorCode::WebhookDisabled, disabled),
        (ErrorCode::EventNotFound, event),
        (ErrorCode::WebhookUnreadable, unreadable),
    ] {
        test.record_refusal(code, answered);
    }
}

/// Returns the page for a form that was not sent from one of the dashboard's pages.
async fn forged_form(routes: &Router, language: &str) -> String {
    let request = Request::post("/dashboard/sign-in").header("accept-language", language);
    let request = request.body(Body::from("form=x")).unwrap();
    let response = routes.clone().oneshot(request).await.unwrap();
    let refused = response.extensions().get::<HttpRefusal>().map(|refused| refused.0.code);
    assert_eq!(response.status().as_u16(), ErrorCode::FormNotAccepted.status());
    assert!(refused.is_none_or(|code| code == ErrorCode::FormNotAccepted));
    let body = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

/// Checks the refusals that need a failure or the legacy API's end.
async fn check_failure_refusals(test: &mut TestService, folder: &Path) {
    async fn panicking_handler() -> &'static str {
        panic!("a handler's own fault")
    }
    let routes = Router::new().route("/faulty", get(panicking_handler));
    let routes = open_routes(routes, test.api(Environment::Sandbox));
    test.record_refusal(
        ErrorCode::InternalError,
        call(routes, TestRequest::get("/faulty", &[])).await,
    );

    let file = folder.join("parcelo.db");
    let busy =
        TestService::with_store(Store::open(&file, [1; 32]).unwrap(), LegacySchedule::default());
    let key = busy.key(|_| {}).await;
    let headers = [(parcelo_types::internal::header::API_KEY, key.as_str()), JSON];
    let create = || TestRequest::post(Operation::CreateOrder.path(), &headers, &ORDER);
    let other = hold_write_lock(&file);
    // The runtime is idle, so the paused clock skips the five seconds.
    tokio::time::pause();
    test.record_refusal(ErrorCode::IdempotencyInProgress, busy.send(create()).await);
    let endless = stream::pending::<std::io::Result<Bytes>>();
    let request = Request::post(Operation::CreateOrder.path()).header(headers[0].0, headers[0].1);
    let request = request.body(Body::from_stream(endless)).unwrap();
    let routes = router(busy.api(Environment::Sandbox));
    test.record_refusal(ErrorCode::RequestTimeout, send_request(routes, request).await);
    tokio::time::resume();
    drop(other);
    busy.service.store().clone().close().await;
    let mut next = sample::order();
    next["idempotencyKey"] = json!("order-0002");
    let next = TestRequest::post(Operation::CreateOrder.path(), &headers, &next);
    test.record_refusal(ErrorCode::ServiceUnavailable, busy.send(next).await);

    let ended = LegacySchedule { sunset: Some(NOW), ..LegacySchedule::default() };
    let ended = TestService::with_store(Store::memory([1; 32]).unwrap(), ended);
    let key = ended.key(|_| {}).await;
    let headers = [(parcelo_types::internal::header::API_KEY, key.as_str())];
    let legacy = TestRequest::get(Operation::LegacyTracking.path(), &headers);
    test.record_refusal(ErrorCode::LegacySunset, ended.send(legacy).await);
}

static ORDER: std::sync::LazyLock<Value> = std::sync::LazyLock::new(sample::order);

#[tokio::test]
async fn every_code_is_sent_in_both_languages() {
    let folder = tempfile::tempdir().unwrap();
    let mut test = TestService::in_memory();
    check_key_refusals(&mut test).await;
    check_parcel_refusals(&mut test).await;
    check_operator_refusals(&mut test).await;
    check_failure_refusals(&mut test, folder.path()).await;
    for code in ErrorCode::ALL {
        let error =
            test.refusals.get(code.code()).unwrap_or_else(|| panic!("{code} was never sent"));
        let (en, es) = (error["message"].as_str().unwrap(), error["message_es"].as_str().unwrap());
        assert_ne!(en, es, "{code}");
        assert!(
            !en.is_empty() && !es.is_empty() && !en.contains('{') && !es.contains('{'),
            "{en} {es}"
        );
    }
    assert_eq!(test.refusals.len(), ErrorCode::ALL.len());
}

#[tokio::test]
async fn a_failed_key_lookup_does_not_count_against_the_address() {
    let store = Store::memory([1; 32]).unwrap();
    let test = TestService::new(store, LegacySchedule::default(), Limits::default());
    let key = test.key(|_| {}).await;
    let account = test.service.store().account_named("default").await.unwrap().unwrap();
    let tenant = Tenant { account, environment: Environment::Sandbox };
    damage(test.service.store(), tenant, Damage::Key).await;
    let headers = [(parcelo_types::internal::header::API_KEY, key.as_str())];
    for _ in 0..=2 * test.service.settings().limits.unauthenticated {
        let (status, body) =
            test.send(TestRequest::get(Operation::ListParcels.path(), &headers)).await;
        assert_eq!(status, 500, "the failed lookup is the server's fault, each time: {body}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_key_lookup_does_not_reset_counts() {
    let store = Store::memory([1; 32]).unwrap();
    let test = TestService::new(store, LegacySchedule::default(), Limits::default());
    let key = test.key(|key| key.rate_limit = Some(1)).await;
    let (issuer, name) = (test.issuer(), "Andes".to_owned());
    let carrier = issuer.issue::<CarrierScope>(name, Environment::Sandbox, NOW).await.unwrap().0;
    let by_key = [(parcelo_types::internal::header::API_KEY, key.as_str())];
    let by_carrier = [(parcelo_types::internal::header::CARRIER_KEY, carrier.secret()), JSON];
    let list = || TestRequest::get(Operation::ListParcels.path(), &by_key);
    let (push, nothing) = (Operation::PushCarrierEvents.path(), json!({}));
    assert_eq!(test.send(list()).await.0, 200);

    let mut lookups = 0;
    delay_by(move || {
        lookups += 1;
        Duration::from_secs(if lookups == 1 { 3 } else { 0 })
    });
    let mut waiting = pin!(test.send(TestRequest::post(push, &by_carrier, &nothing)));
    assert!(poll!(&mut waiting).is_pending(), "its key is being looked up");
    test.clock.set(NOW.plus(3_000));
    assert_eq!(test.send(list()).await.0, 200);
    assert_eq!(waiting.await.0, 400, "it was admitted");
    assert_eq!(test.send(list()).await.0, 429, "one of this second was admitted before");
}

/// Checks that a retry after an upgrade gets the first response, even if a warning of an unknown field is a fault by
/// then.
#[tokio::test]
async fn an_order_accepted_before_a_new_rule_is_replayed_after_it() {
    let test = TestService::in_memory();
    let key = test.key(|_| {}).await;
    test.create(&key, NUMBER).await;
    let store = test.service.store();
    let number = TrackingNumber::parse(NUMBER).unwrap();
    let parcel = store.parcel(Environment::Sandbox, &number).await.unwrap().unwrap();
    let mut order = sample::order();
    order["idempotencyKey"] = json!("order-before-1");
    order["customsInfo"] = json!({ "incoterm": "DDU", "contentsCategory": "gift" });
    order["receiver"]["address"]["line2"] = json!(402);
    let written = IdempotencyRecord {
        key: RecordKey::new(
            1,
            Operation::CreateOrder,
            &IdempotencyKey::parse("order-before-1").unwrap(),
        ),
        tenant: parcel.tenant,
        fingerprint: fingerprint(&order, ""),
        first_seen: NOW,
        body: br#"{"success":true,"warnings":[{"code":"UNKNOWN_FIELD"}]}"#.to_vec(),
    };
    let changes = Changes {
        now: NOW,
        trace: None,
        idempotency_record: Some(written),
        expect: Vec::new(),
        ops: Vec::new(),
    };
    assert_eq!(store.commit(changes).await, parcelo_store::CommitOutcome::Committed);
    let headers = [(parcelo_types::internal::header::API_KEY, &*key), JSON];
    let create = |order: &Value| TestRequest::post(Operation::CreateOrder.path(), &headers, order);
    let (status, body) = test.send(create(&order)).await;
    assert_eq!((status, &body["warnings"][0]["code"]), (200, &json!("UNKNOWN_FIELD")), "{body}");
    order["idempotencyKey"] = json!("order-after-01");
    order["trackingNumber"] = json!("SB-SUCCESS-0002");
    let (status, body) = test.send(create(&order)).await;
    let ignored = |warning: &Value| warning["code"] == "VALUE_IGNORED";
    let warnings = body["warnings"].as_array().unwrap();
    assert_eq!((status, warnings.iter().filter(|each| ignored(each)).count()), (201, 3), "{body}");
}
