//! Every refusal there is, as it leaves the service: each code of the catalogue, both languages.

use std::{collections::BTreeMap, path::Path, pin::pin, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, Bytes},
    http::{Request, header},
    routing::get,
};
use futures_util::{poll, stream};
use http_body_util::BodyExt;
use parcelo::{
    Environment, ErrorCode, IdempotencyKey, Operation, TrackingNumber, model::fingerprint,
    rules::Destinations,
};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::{Api, admin_router, router, routes::open_routes};
use crate::{
    clock::{ManualClock, Millis},
    domain::{
        Changes, Countries, Event, IdempotencyRecord, Op, RecordKey, Secrets, Site, State, Tenant,
        access,
        audit::{Actor, BY},
        credentials::{AdminScope, ApiKeyScope, CarrierScope},
        legacy::Era,
        sample,
        webhooks::Allowance,
    },
    ids::Ids,
    service::{CredentialIssuer, Limits, NewKeyRequest, Service, Settings},
    store::{Damage, Store, damage, delays::delay_by, held},
};

const NOW: Millis = Millis(1_767_600_000_000);
const NUMBER: &str = "SB-SUCCESS-0001";

/// A service in this test, called without a socket.
struct House {
    service: Arc<Service>,
    ids: Arc<Ids>,
    clock: Arc<ManualClock>,
    seen: BTreeMap<&'static str, Value>,
}

struct Asked<'a> {
    method: &'a str,
    path: &'a str,
    headers: &'a [(&'a str, &'a str)],
    body: String,
}

impl<'a> Asked<'a> {
    fn get(path: &'a str, headers: &'a [(&'a str, &'a str)]) -> Self {
        Self { method: "GET", path, headers, body: String::new() }
    }

    fn post(path: &'a str, headers: &'a [(&'a str, &'a str)], body: &Value) -> Self {
        Self { method: "POST", path, headers, body: body.to_string() }
    }
}

impl House {
    fn on(store: Store, legacy: Era) -> Self {
        Self::with(store, legacy, Limits { enforced: false, ..Limits::default() })
    }

    fn with(store: Store, legacy: Era, limits: Limits) -> Self {
        let site = |environment| Site {
            environment,
            base_url: Some("http://parcelo.test".to_owned()),
            labels_base_url: "http://parcelo.test/files".to_owned(),
        };
        let settings = Settings {
            production: site(Environment::Production),
            sandbox: site(Environment::Sandbox),
            destinations: Destinations::All,
            limits,
            secrets: Secrets::derive(&[1; 32]),
            trusted_proxies: Vec::new(),
            webhooks: Allowance::default(),
            database_options: None,
            legacy,
        };
        let (clock, ids) = (Arc::new(ManualClock::at(NOW)), Arc::new(Ids::seeded(1)));
        let service = Service::new(store, clock.clone(), Arc::clone(&ids), settings);
        Self { service: Arc::new(service), ids, clock, seen: BTreeMap::new() }
    }

    fn in_memory() -> Self {
        Self::on(Store::memory([1; 32]).unwrap(), Era::default())
    }

    fn api(&self, environment: Environment) -> Api {
        Api { service: Arc::clone(&self.service), environment, ready: Arc::default() }
    }

    /// A key, with what is special about it.
    async fn key(&self, change: impl FnOnce(&mut NewKeyRequest)) -> String {
        let mut request = NewKeyRequest {
            account: "default".to_owned(),
            environment: Environment::Sandbox,
            name: "Test".to_owned(),
            countries: Countries::All,
            ip_list: Vec::new(),
            rate_limit: None,
        };
        change(&mut request);
        let issuer = self.issuer();
        issuer.issue_api_key(request, NOW).await.unwrap().0.secret().to_owned()
    }

    fn issuer(&self) -> CredentialIssuer<'_> {
        let secrets = &self.service.settings().secrets;
        CredentialIssuer { store: self.service.store(), secrets, ids: &self.ids, by: BY.clone() }
    }

    async fn ask(&self, asked: Asked<'_>) -> (u16, Value) {
        call(router(self.api(Environment::Sandbox)), asked).await
    }

    /// Asks for what must be refused with this code, and keeps the refusal.
    async fn refused(&mut self, code: ErrorCode, asked: Asked<'_>) {
        let answered = self.ask(asked).await;
        self.keep(code, answered);
    }

    fn keep(&mut self, code: ErrorCode, (status, body): (u16, Value)) {
        let error = if body["ok"] == false { &body } else { &body["error"] };
        let word = error["code"].as_str().or(error["error"].as_str());
        assert_eq!((status, word), (code.status(), Some(code.code())), "{body}");
        self.keep_item(code, error);
    }

    /// A code that only items of an answer have.
    fn keep_item(&mut self, code: ErrorCode, error: &Value) {
        self.seen.insert(code.code(), error.clone());
    }

    async fn create(&self, key: &str, number: &str) {
        let mut order = sample::order();
        order["trackingNumber"] = json!(number);
        order["idempotencyKey"] = json!(format!("order-{number}"));
        let headers = [(parcelo::model::header::API_KEY, key), JSON];
        let (status, body) =
            self.ask(Asked::post(Operation::CreateOrder.path(), &headers, &order)).await;
        assert_eq!(status, 201, "{body}");
    }

    /// Puts a parcel where no decision would put it by itself.
    async fn force(&self, number: &str, state: State) {
        let number = TrackingNumber::parse(number).unwrap();
        let store = self.service.store();
        let parcel = store.parcel(Environment::Sandbox, &number).await.unwrap().unwrap();
        let sequence = parcel.last_sequence + 1;
        let event =
            Event { sequence, state, at: NOW, location: "Nowhere".to_owned(), description: None };
        let ops =
            vec![Op::Move { parcel: parcel.key, event }, Op::CancelSteps { parcel: parcel.key }];
        let changes = Changes { now: NOW, idempotency_record: None, expect: Vec::new(), ops };
        assert_eq!(store.commit(changes).await, crate::store::CommitOutcome::Committed);
    }
}

const JSON: (&str, &str) = ("content-type", "application/json");

async fn call(routes: Router, asked: Asked<'_>) -> (u16, Value) {
    let mut request = Request::builder().method(asked.method).uri(asked.path);
    for (name, value) in asked.headers {
        request = request.header(*name, *value);
    }
    answer_of(routes, request.body(Body::from(asked.body)).unwrap()).await
}

async fn answer_of(routes: Router, request: Request<Body>) -> (u16, Value) {
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

async fn keys_and_requests(house: &mut House) {
    let key = house.key(|_| {}).await;
    let elsewhere = house.key(|key| key.ip_list = vec![access::network("10.0.0.1").unwrap()]).await;
    let mexican =
        house.key(|key| key.countries = Countries::Only(vec![parcelo::CountryCode::MX])).await;
    let slow = house.key(|key| key.rate_limit = Some(1)).await;
    let name = parcelo::model::header::API_KEY;
    let health = Operation::Health.path();
    let create = Operation::CreateOrder.path();
    house.refused(ErrorCode::AuthMissingApiKey, Asked::get(health, &[])).await;
    house.refused(ErrorCode::AuthInvalidApiKey, Asked::get(health, &[(name, "pk_test_x")])).await;
    house.refused(ErrorCode::AuthIpNotAllowed, Asked::get(health, &[(name, &elsewhere)])).await;
    let order = sample::order();
    house
        .refused(
            ErrorCode::AuthCountryNotAllowed,
            Asked::post(create, &[(name, &mexican), JSON], &order),
        )
        .await;
    assert_eq!(house.ask(Asked::get(health, &[(name, &slow)])).await.0, 200);
    house.refused(ErrorCode::RateLimitExceeded, Asked::get(health, &[(name, &slow)])).await;
    house
        .refused(
            ErrorCode::ValidationFailed,
            Asked::post(create, &[(name, &key), JSON], &json!({})),
        )
        .await;
    house
        .refused(ErrorCode::UnsupportedMediaType, Asked::post(create, &[(name, &key)], &order))
        .await;
    let long = json!({ "long": "x".repeat(300_000) });
    house
        .refused(ErrorCode::PayloadTooLarge, Asked::post(create, &[(name, &key), JSON], &long))
        .await;
    house.refused(ErrorCode::NotFound, Asked::get("/nothing", &[])).await;
    house.refused(ErrorCode::MethodNotAllowed, Asked::get(create, &[(name, &key)])).await;
    let carrier = [(parcelo::model::header::CARRIER_KEY, "ck_test_x"), JSON];
    let events = sample::carrier_events();
    house
        .refused(
            ErrorCode::CarrierAuthFailed,
            Asked::post(Operation::PushCarrierEvents.path(), &carrier, &events),
        )
        .await;
    let live = house.key(|key| key.environment = Environment::Production).await;
    let headers = [(name, live.as_str())];
    let reset = Asked::post(Operation::ResetSandbox.path(), &headers, &json!({}));
    let answered = call(router(house.api(Environment::Production)), reset).await;
    house.keep(ErrorCode::SandboxOnly, answered);
}

async fn parcels_and_labels(house: &mut House) {
    let key = house.key(|_| {}).await;
    let headers = [(parcelo::model::header::API_KEY, key.as_str()), JSON];
    for number in [NUMBER, "SB-NORMAL-0001", "SB-NORMAL-0002", "SB-NORMAL-0003"] {
        house.create(&key, number).await;
    }
    let create = Operation::CreateOrder.path();
    let mut order = sample::order();
    order["idempotencyKey"] = json!(format!("order-{NUMBER}"));
    order["parcelDetails"]["weightKg"] = json!(9);
    house.refused(ErrorCode::IdempotencyConflict, Asked::post(create, &headers, &order)).await;
    order["idempotencyKey"] = json!("another-key");
    house.refused(ErrorCode::ParcelDuplicateTracking, Asked::post(create, &headers, &order)).await;
    let void = Operation::VoidOrders.path();
    let missing = parcels("void-0001", &["SB-ABSENT-0001"]);
    house.refused(ErrorCode::ParcelNotFound, Asked::post(void, &headers, &missing)).await;
    house.clock.set(NOW.plus(20 * Millis::MINUTE));
    let moving = parcels("void-0002", &[NUMBER]);
    house.refused(ErrorCode::ParcelNotVoidable, Asked::post(void, &headers, &moving)).await;
    let both = parcels("void-0003", &[NUMBER, "SB-ABSENT-0001"]);
    house.refused(ErrorCode::VoidFailed, Asked::post(void, &headers, &both)).await;
    let reprint = Operation::ReprintLabel.path_of(NUMBER);
    let again = json!({ "idempotencyKey": "reprint-0001" });
    house.refused(ErrorCode::LabelNotReprintable, Asked::post(&reprint, &headers, &again)).await;
    let voided = parcels("void-0004", &["SB-NORMAL-0003"]);
    assert_eq!(house.ask(Asked::post(void, &headers, &voided)).await.0, 200);
    let label = Operation::DownloadLabel.path_of("SB-NORMAL-0002");
    let mut other = headers.to_vec();
    other.push(("if-match", "\"other\""));
    house.refused(ErrorCode::PreconditionFailed, Asked::get(&label, &other)).await;
    let label = Operation::DownloadLabel.path_of("SB-NORMAL-0003");
    house.refused(ErrorCode::LabelVoided, Asked::get(&label, &headers)).await;
    let both = json!({ "trackingNumbers": ["SB-NORMAL-0002", "SB-NORMAL-0003"] });
    let labels = Asked::post(Operation::BatchLabels.path(), &headers, &both);
    house.refused(ErrorCode::LabelsRejected, labels).await;
    house.create(&key, "SB-NORMAL-0009").await;
    house.force("SB-NORMAL-0009", State::Ordered).await;
    let label = Operation::DownloadLabel.path_of("SB-NORMAL-0009");
    house.refused(ErrorCode::LabelNotFound, Asked::get(&label, &headers)).await;
    manifests_and_carriers(house, &headers).await;
}

async fn manifests_and_carriers(house: &mut House, headers: &[(&str, &str)]) {
    let submit = Operation::SubmitManifest.path();
    let first = manifest("man-0001", "176-12345675", &["SB-NORMAL-0001"]);
    assert_eq!(house.ask(Asked::post(submit, headers, &first)).await.0, 201);
    let other = manifest("man-0002", "176-12345675", &["SB-NORMAL-0002"]);
    house.refused(ErrorCode::ManifestAlreadySubmitted, Asked::post(submit, headers, &other)).await;
    let bad = manifest("man-0003", "020-81140743", &["SB-NORMAL-0001", NUMBER]);
    let (status, body) = house.ask(Asked::post(submit, headers, &bad)).await;
    let items = body["error"]["details"]["errors"].clone();
    for (code, item) in [ErrorCode::ParcelAlreadyManifested, ErrorCode::ParcelNotManifestable]
        .into_iter()
        .zip(items.as_array().unwrap())
    {
        assert_eq!(item["code"], code.code());
        house.keep_item(code, item);
    }
    house.keep(ErrorCode::ManifestParcelsRejected, (status, body));
    let missing = Operation::GetManifest.path_of("man_01JH8Z0000000000000000000A");
    house.refused(ErrorCode::ManifestNotFound, Asked::get(&missing, headers)).await;
    let made =
        house.issuer().issue::<CarrierScope>("Andes".to_owned(), Environment::Sandbox, NOW).await;
    let carrier = made.unwrap().0;
    let headers = [(parcelo::model::header::CARRIER_KEY, carrier.secret()), JSON];
    let mut events = sample::carrier_events();
    events["events"][0]["trackingNumber"] = json!("SB-NORMAL-0001");
    events["events"][0]["status"] = json!("DELIVERED");
    events["events"][0]["occurredAt"] = json!("2026-01-05T08:20:00Z");
    let (_, body) =
        house.ask(Asked::post(Operation::PushCarrierEvents.path(), &headers, &events)).await;
    let error = &body["data"]["results"][0]["error"];
    assert_eq!(error["code"], ErrorCode::IllegalTransition.code(), "{body}");
    house.keep_item(ErrorCode::IllegalTransition, error);
}

/// The refusals that only operators see.
async fn operators(house: &mut House) {
    let routes = || admin_router(house.api(Environment::Production));
    let token =
        house.issuer().issue::<AdminScope>("Test".to_owned(), AdminScope, NOW).await.unwrap().0;
    let bearer = format!("Bearer {}", token.secret());
    let headers = [("authorization", bearer.as_str()), JSON];
    let webhook = "/admin/v1/webhooks/sandbox";
    let url = json!({ "url": "https://shop.example/parcelo" });
    let set = Asked { method: "PUT", ..Asked::post(webhook, &headers, &url) };
    let none = call(routes(), Asked::get("/admin/v1/keys", &[])).await;
    let missing = format!("{webhook}?account=unknown");
    let account = call(routes(), Asked::get(&missing, &headers)).await;
    let gone = Asked { method: "DELETE", ..Asked::get("/admin/v1/keys/key_1", &headers) };
    let gone = call(routes(), gone).await;
    house.issuer().account("default".to_owned(), NOW).await.unwrap();
    let unset = call(routes(), Asked::get(webhook, &headers)).await;
    assert_eq!(call(routes(), set).await.0, 201);
    let event = json!({ "eventId": format!("evt_{}", "0".repeat(26)) });
    let replay = format!("{webhook}/replay");
    let event = call(routes(), Asked::post(&replay, &headers, &event)).await;
    let (off, test) = (format!("{webhook}/disable"), format!("{webhook}/test"));
    assert_eq!(call(routes(), Asked::post(&off, &headers, &json!({}))).await.0, 200);
    let disabled = call(routes(), Asked::post(&test, &headers, &json!({}))).await;
    let tenant = house.service.store().account_named("default").await.unwrap().unwrap();
    let tenant = Tenant { account: tenant, environment: Environment::Sandbox };
    damage(house.service.store(), tenant, Damage::Endpoint).await;
    let unreadable = call(routes(), Asked::get(webhook, &headers)).await;
    house.key(|request| request.name = "Revoked".to_owned()).await;
    let key = house.service.store().credentials::<ApiKeyScope>().await.unwrap().pop().unwrap().id;
    house.service.revoke_key(&key, Actor::Server).await.unwrap();
    let rotate = format!("/admin/v1/keys/{key}/rotate");
    let revoked = call(routes(), Asked::post(&rotate, &headers, &json!({}))).await;
    let forged = [forged_form(routes(), "en").await, forged_form(routes(), "es").await];
    let forged = json!({ "message": forged[0], "message_es": forged[1] });
    house.keep_item(ErrorCode::FormNotAccepted, &forged);
    house.keep(ErrorCode::KeyRevoked, revoked);
    house.keep(ErrorCode::AdminAuthFailed, none);
    house.keep(ErrorCode::AccountNotFound, account);
    house.keep(ErrorCode::KeyNotFound, gone);
    house.keep(ErrorCode::WebhookNotFound, unset);
    house.keep(ErrorCode::WebhookDisabled, disabled);
    house.keep(ErrorCode::EventNotFound, event);
    house.keep(ErrorCode::WebhookUnreadable, unreadable);
}

/// The page that a form gets that was not sent from one of the dashboard's pages.
async fn forged_form(routes: Router, language: &str) -> String {
    let request = Request::post("/dashboard/sign-in").header("accept-language", language);
    let response = routes.oneshot(request.body(Body::from("form=x")).unwrap()).await.unwrap();
    let refused = response.extensions().get::<super::Refused>().map(|refused| refused.0.code);
    assert_eq!(response.status().as_u16(), ErrorCode::FormNotAccepted.status());
    assert!(refused.is_none_or(|code| code == ErrorCode::FormNotAccepted));
    let body = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

/// What can only be seen when something fails or has ended.
async fn failures(house: &mut House, folder: &Path) {
    async fn faulty() -> &'static str {
        panic!("a handler's own fault")
    }
    let routes = Router::new().route("/faulty", get(faulty));
    let routes = open_routes(routes, house.api(Environment::Sandbox));
    house.keep(ErrorCode::InternalError, call(routes, Asked::get("/faulty", &[])).await);

    let file = folder.join("parcelo.db");
    let busy = House::on(Store::open(&file, [1; 32]).unwrap(), Era::default());
    let key = busy.key(|_| {}).await;
    let headers = [(parcelo::model::header::API_KEY, key.as_str()), JSON];
    let create = || Asked::post(Operation::CreateOrder.path(), &headers, &ORDER);
    let other = held(&file);
    // The runtime has nothing else to do than to wait, so the five seconds pass at once.
    tokio::time::pause();
    house.keep(ErrorCode::IdempotencyInProgress, busy.ask(create()).await);
    let endless = stream::pending::<std::io::Result<Bytes>>();
    let request = Request::post(Operation::CreateOrder.path()).header(headers[0].0, headers[0].1);
    let request = request.body(Body::from_stream(endless)).unwrap();
    let routes = router(busy.api(Environment::Sandbox));
    house.keep(ErrorCode::RequestTimeout, answer_of(routes, request).await);
    tokio::time::resume();
    drop(other);
    busy.service.store().clone().close().await;
    let mut next = sample::order();
    next["idempotencyKey"] = json!("order-0002");
    let next = Asked::post(Operation::CreateOrder.path(), &headers, &next);
    house.keep(ErrorCode::ServiceUnavailable, busy.ask(next).await);

    let ended = Era { sunset: Some(NOW), ..Era::default() };
    let ended = House::on(Store::memory([1; 32]).unwrap(), ended);
    let key = ended.key(|_| {}).await;
    let headers = [(parcelo::model::header::API_KEY, key.as_str())];
    let legacy = Asked::get(Operation::LegacyTracking.path(), &headers);
    house.keep(ErrorCode::LegacySunset, ended.ask(legacy).await);
}

static ORDER: std::sync::LazyLock<Value> = std::sync::LazyLock::new(sample::order);

#[tokio::test]
async fn every_code_of_the_catalogue_is_given_and_speaks_both_languages() {
    let folder = tempfile::tempdir().unwrap();
    let mut house = House::in_memory();
    keys_and_requests(&mut house).await;
    parcels_and_labels(&mut house).await;
    operators(&mut house).await;
    failures(&mut house, folder.path()).await;
    for code in ErrorCode::ALL {
        let error = house.seen.get(code.code()).unwrap_or_else(|| panic!("{code} was never given"));
        let (en, es) = (error["message"].as_str().unwrap(), error["message_es"].as_str().unwrap());
        assert_ne!(en, es, "{code}");
        assert!(
            !en.is_empty() && !es.is_empty() && !en.contains('{') && !es.contains('{'),
            "{en} {es}"
        );
    }
    assert_eq!(house.seen.len(), ErrorCode::ALL.len());
}

#[tokio::test]
async fn a_key_that_cannot_be_judged_counts_against_no_address() {
    let store = Store::memory([1; 32]).unwrap();
    let house = House::with(store, Era::default(), Limits::default());
    let key = house.key(|_| {}).await;
    let account = house.service.store().account_named("default").await.unwrap().unwrap();
    let tenant = Tenant { account, environment: Environment::Sandbox };
    damage(house.service.store(), tenant, Damage::Key).await;
    let headers = [(parcelo::model::header::API_KEY, key.as_str())];
    for _ in 0..=2 * house.service.settings().limits.unauthenticated {
        let (status, body) = house.ask(Asked::get(Operation::ListParcels.path(), &headers)).await;
        assert_eq!(status, 500, "it is the server's fault, however often it is asked: {body}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waited_for_its_key_takes_no_count_away() {
    let store = Store::memory([1; 32]).unwrap();
    let house = House::with(store, Era::default(), Limits::default());
    let key = house.key(|key| key.rate_limit = Some(1)).await;
    let (issuer, name) = (house.issuer(), "Andes".to_owned());
    let carrier = issuer.issue::<CarrierScope>(name, Environment::Sandbox, NOW).await.unwrap().0;
    let by_key = [(parcelo::model::header::API_KEY, key.as_str())];
    let by_carrier = [(parcelo::model::header::CARRIER_KEY, carrier.secret()), JSON];
    let list = || Asked::get(Operation::ListParcels.path(), &by_key);
    let (push, nothing) = (Operation::PushCarrierEvents.path(), json!({}));
    assert_eq!(house.ask(list()).await.0, 200);

    let mut looks = 0;
    delay_by(move |method| {
        looks += i32::from(method == "query");
        Duration::from_secs(if method == "query" && looks == 1 { 3 } else { 0 })
    });
    let mut waiting = pin!(house.ask(Asked::post(push, &by_carrier, &nothing)));
    assert!(poll!(&mut waiting).is_pending(), "its key is being looked for");
    house.clock.set(NOW.plus(3_000));
    assert_eq!(house.ask(list()).await.0, 200);
    assert_eq!(waiting.await.0, 400, "it was let in");
    assert_eq!(house.ask(list()).await.0, 429, "one of this second was admitted before");
}

/// What was a warning of an unknown field before an upgrade may be a fault after it. A retry of what was accepted
/// gets the first answer all the same.
#[tokio::test]
async fn an_order_that_was_accepted_before_a_rule_came_is_replayed_after_it() {
    let house = House::in_memory();
    let key = house.key(|_| {}).await;
    house.create(&key, NUMBER).await;
    let store = house.service.store();
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
        idempotency_record: Some(written),
        expect: Vec::new(),
        ops: Vec::new(),
    };
    assert_eq!(store.commit(changes).await, crate::store::CommitOutcome::Committed);
    let headers = [(parcelo::model::header::API_KEY, &*key), JSON];
    let create = |order: &Value| Asked::post(Operation::CreateOrder.path(), &headers, order);
    let (status, body) = house.ask(create(&order)).await;
    assert_eq!((status, &body["warnings"][0]["code"]), (200, &json!("UNKNOWN_FIELD")), "{body}");
    order["idempotencyKey"] = json!("order-after-01");
    let (status, body) = house.ask(create(&order)).await;
    assert_eq!((status, body["error"]["details"]["errors"].as_array().unwrap().len()), (400, 3));
}
