//! The service that the dashboard tests run against, with an admin listener on a free port and a clock that can be
//! moved; and the visitors of its dashboard.

use std::sync::{Arc, Mutex, atomic::AtomicBool};

use parcelo::Environment;
use parcelo_server::internals::{
    Actor, Address, AllowedHosts, Api, ApiKeyRecord, AttemptResult, Caller, DeliverySlots,
    EndpointRequest, EndpointResponse, Ids, Limits, Listener, MAX_IN_FLIGHT_PER_ENDPOINT,
    ManualClock, Millis, NewKeyRequest, Secrets, Service, Settings, Site, Stop, Store, Tenant,
    WebhookAllowance, WebhookEventKinds, admin_router, hash_password,
};
use reqwest::{RequestBuilder, redirect::Policy};
use serde_json::Value;
use tokio::net::TcpListener;
use url::form_urlencoded;

use crate::{
    api::{HttpResponse, order, order_with_number, send, with},
    cluster::{self, Database},
};

/// 2026-01-30 15:20 UTC.
pub(super) const NOW: Millis = Millis(1_769_786_400_000);
pub(super) const PASSWORD: &str = "ñandú, twelve or more";
const FLASH: &str = "__Host-parcelo_flash";

pub(super) struct TestService {
    pub(super) service: Arc<Service>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) url: String,
    stop: Stop,
    /// The PostgreSQL database, if the tests run on it.
    _database: Option<Database>,
}

impl TestService {
    pub(super) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// Starts a service with a visitor who is signed in to its account.
    pub(super) async fn with_member() -> (Self, Visitor) {
        let test = Self::new().await;
        let member = test.member("default").await;
        (test, member)
    }

    /// Starts a service with a sandbox key of its account.
    pub(super) async fn with_key() -> (Self, Caller) {
        let test = Self::new().await;
        let caller = test.key("default", Environment::Sandbox).await;
        (test, caller)
    }

    pub(super) async fn with_member_and_key() -> (Self, Visitor, Caller) {
        let (test, caller) = Self::with_key().await;
        let member = test.member("default").await;
        (test, member, caller)
    }

    pub(super) async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let site = |environment: Environment| {
            Site::new(environment, &format!("https://{}.parcelo.example", environment.code()))
        };
        let mut settings = Settings {
            production: site(Environment::Production),
            sandbox: site(Environment::Sandbox),
            limits: Limits { enforced: false, ..Limits::default() },
            webhooks: WebhookAllowance { sandbox_loopback: true, ..WebhookAllowance::default() },
            ..Settings::new("", Secrets::derive(&[1; 32]))
        };
        change(&mut settings);
        let (clock, ids) = (Arc::new(ManualClock::at(NOW)), Arc::new(Ids::seeded(7)));
        let database = cluster::test_database();
        let store = match &database {
            None => Store::memory([1; 32]).unwrap(),
            Some(database) => {
                Store::connect(Address::parse(&database.url()).unwrap(), [1; 32]).await.unwrap()
            }
        };
        let service = Arc::new(Service::new(store, clock.clone(), ids, settings));
        let (environment, ready) = (Environment::Production, Arc::new(AtomicBool::new(true)));
        let api = Api { service: Arc::clone(&service), environment, ready };
        let socket = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", socket.local_addr().unwrap());
        let stop = Stop::default();
        drop(Listener::start(socket, admin_router(api), stop.clone()));
        let test = Self { service, clock, url, stop, _database: database };
        test.set_password("default").await;
        test
    }

    /// Sets the password of an account.
    pub(super) async fn set_password(&self, account: &str) {
        let store = self.service.store();
        let key = store.account(account, format!("acc_{account}"), NOW).await.unwrap();
        let hash = hash_password(PASSWORD, [7; 16]).unwrap();
        store.set_password(key, hash, NOW, &Actor::Server.at(NOW)).await.unwrap();
    }

    pub(super) fn advance_clock(&self, millis: i64) {
        self.clock.set(self.service.now().plus(millis));
    }

    /// Issues an API key of an account.
    pub(super) async fn key(&self, account: &str, environment: Environment) -> Caller {
        self.key_named(account, environment, "Shop").await
    }

    pub(super) async fn key_named(
        &self,
        account: &str,
        environment: Environment,
        name: &str,
    ) -> Caller {
        let request = NewKeyRequest::unrestricted(account, environment, name);
        let now = self.service.now();
        let (_, record) =
            self.service.issuer(Actor::Server).issue_api_key(request, now).await.unwrap();
        Caller { key: Arc::new(record), trace: None }
    }

    /// Creates an order of this caller with this tracking number.
    pub(super) async fn order(&self, caller: &Caller, number: &str) {
        let order = order_with_number(&format!("order-{number}"), number);
        self.create(caller, &order).await;
    }

    pub(super) async fn create(&self, caller: &Caller, order: &Value) {
        self.service.create_order(caller, order, None).await.unwrap();
    }

    pub(super) async fn api_keys(&self, caller: &Caller) -> Vec<ApiKeyRecord> {
        self.service.store().api_keys(caller.tenant().account).await.unwrap()
    }

    pub(super) fn visitor(&self) -> Visitor {
        Visitor::at(&self.url, "en")
    }

    /// Signs a visitor in to an account.
    pub(super) async fn member(&self, account: &str) -> Visitor {
        let mut visitor = self.visitor();
        let response = visitor.sign_in(account, PASSWORD).await;
        assert_eq!(response.status, 303, "{}", response.text());
        visitor
    }
}

impl Drop for TestService {
    fn drop(&mut self) {
        self.stop.now();
    }
}

/// A minimal browser, which keeps cookies and fills in forms.
#[derive(Clone)]
pub(super) struct Visitor {
    pub(super) http: reqwest::Client,
    pub(super) url: String,
    pub(super) session: Option<String>,
    pub(super) guest: Option<String>,
    pub(super) language: &'static str,
    /// The flash cookie for the next page. A browser has only one, so all clones of a visitor share it.
    pub(super) flash: Arc<Mutex<Option<String>>>,
}

impl Visitor {
    pub(super) fn at(url: &str, language: &'static str) -> Self {
        let http = reqwest::Client::builder().redirect(Policy::none()).build().unwrap();
        Self {
            http,
            url: url.to_owned(),
            session: None,
            guest: None,
            language,
            flash: Arc::default(),
        }
    }

    pub(super) fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let request = self.http.request(method, format!("{}{path}", self.url));
        let flash = self.flash.lock().unwrap().clone();
        let cookies = [
            ("__Host-parcelo_session", &self.session),
            ("__Host-parcelo_guest", &self.guest),
            (FLASH, &flash),
        ];
        let cookies = cookies.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        let cookies: Vec<_> = cookies.map(|(name, value)| format!("{name}={value}")).collect();
        let request = request.header("accept-language", self.language);
        if cookies.is_empty() { request } else { request.header("cookie", cookies.join("; ")) }
    }

    pub(super) async fn get(&self, path: &str) -> HttpResponse {
        self.send(self.request("GET", path)).await
    }

    /// Sends a request, and keeps the flash cookie of the response for the next page.
    pub(super) async fn send(&self, request: RequestBuilder) -> HttpResponse {
        let response = send(request).await;
        let mut set = response.headers.get_all("set-cookie").iter();
        if set.any(|line| line.as_bytes().starts_with(FLASH.as_bytes())) {
            *self.flash.lock().unwrap() = cookie(&response, FLASH);
        }
        response
    }

    /// Returns the HTML of a page, which must exist.
    pub(super) async fn page(&self, path: &str) -> String {
        let response = self.get(path).await;
        assert_eq!(response.status, 200, "{path}: {}", response.text());
        response.text()
    }

    /// Returns the token that this visitor's forms contain.
    pub(super) async fn token(&self) -> String {
        token_in(&send(self.request("GET", "/dashboard/keys/new")).await.text())
    }

    /// Sends a form with the hidden fields that its page contains.
    pub(super) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> HttpResponse {
        let hidden = self.hidden_fields(path).await;
        let hidden: Vec<_> = hidden.iter().map(|(name, value)| (&**name, &**value)).collect();
        self.post_raw(path, &[fields, &hidden].concat()).await
    }

    /// Returns the hidden fields of the form that is sent to this path; if no page has it, the token that every form
    /// has.
    pub(super) async fn hidden_fields(&self, path: &str) -> Vec<(String, String)> {
        let page = match path.strip_suffix("/rotate") {
            Some(webhook) if webhook.starts_with("/dashboard/webhooks") => webhook,
            Some(_) => path,
            None => "/dashboard/keys/new",
        };
        let html = send(self.request("GET", page)).await.text();
        let Some((_, form)) = html.split_once(&format!("action=\"{path}\"")) else {
            return vec![("form".to_owned(), self.token().await)];
        };
        let fields = form.split("</form>").next().unwrap().split("type=\"hidden\" name=\"").skip(1);
        let pair = |field: &str| {
            let (name, value) = field.split_once("\" value=\"").unwrap();
            (name.to_owned(), value.split('"').next().unwrap().to_owned())
        };
        fields.map(pair).collect()
    }

    /// Sends a form with only these fields.
    pub(super) async fn post_raw(&self, path: &str, fields: &[(&str, &str)]) -> HttpResponse {
        self.send(self.form(path, fields)).await
    }

    pub(super) fn form(&self, path: &str, fields: &[(&str, &str)]) -> RequestBuilder {
        let mut body = form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(fields);
        let request = self.request("POST", path);
        request.header("content-type", "application/x-www-form-urlencoded").body(body.finish())
    }

    /// Loads the sign-in form and submits it, as a browser does.
    pub(super) async fn sign_in(&mut self, account: &str, password: &str) -> HttpResponse {
        let form = self.get("/dashboard/sign-in").await;
        self.guest = cookie(&form, "__Host-parcelo_guest").or(self.guest.take());
        let token = token_in(&form.text());
        let fields = [("form", token.as_str()), ("account", account), ("password", password)];
        let response = self.post_raw("/dashboard/sign-in", &fields).await;
        self.session = cookie(&response, "__Host-parcelo_session").or(self.session.take());
        response
    }
}

/// Sets up a webhook with an event that is due.
pub(super) async fn webhook_with_event(test: &TestService, tenant: Tenant) {
    let url = "https://shop.example/hooks/parcelo".to_owned();
    let (kinds, allowed_hosts) = (
        WebhookEventKinds::default(),
        AllowedHosts::for_environment(tenant.environment, WebhookAllowance::default()),
    );
    let (endpoints, now) = (test.service.endpoints(Actor::Server), test.service.now());
    endpoints.set(EndpointRequest { tenant, url, kinds, allowed_hosts }, now).await.unwrap();
    endpoints.send_test(tenant, now).await.unwrap();
}

/// Delivers the event that is due; the receiver responds with this status.
pub(super) async fn deliver(test: &TestService, status: u16) {
    let slots = DeliverySlots::new(MAX_IN_FLIGHT_PER_ENDPOINT);
    let event = test.service.lease_deliveries(&slots).await.unwrap().remove(0);
    let delivery = test.service.prepare_delivery(event).await.unwrap().unwrap();
    let response = Ok(EndpointResponse { status, retry_after: None, body_prefix: Vec::new() });
    let outcome = AttemptResult { at: test.service.now(), millis: 84, response };
    test.service.settle_delivery(delivery, outcome).await.unwrap();
}

/// Sets up a webhook and turns it off: its receiver responds to the first event with 410.
pub(super) async fn disable_webhook_by_410(test: &TestService, tenant: Tenant) {
    webhook_with_event(test, tenant).await;
    deliver(test, 410).await;
}

/// Returns the secret that a page shows, if any.
pub(super) fn secret_in(html: &str) -> Option<&str> {
    let (_, rest) = html.split_once("id=\"secret\"")?;
    rest.split_once('>')?.1.split_once('<').map(|(secret, _)| secret)
}

/// Returns the token in the first form on a page.
pub(super) fn token_in(html: &str) -> String {
    let (_, rest) = html.split_once("name=\"form\" value=\"").expect("a form has its token");
    rest.split('"').next().unwrap().to_owned()
}

/// Returns the value of a cookie that a response sets and does not remove.
pub(super) fn cookie(response: &HttpResponse, name: &str) -> Option<String> {
    let lines = response.headers.get_all("set-cookie").iter().map(|line| line.to_str().unwrap());
    let value = lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix('=')).next_back()?;
    let value = value.split(';').next().unwrap();
    (!value.is_empty()).then(|| value.to_owned())
}

/// Returns an order in which every personal text is unique, and those texts.
pub(super) fn marked_order(number: &str) -> (Value, [&'static str; 6]) {
    let order = with(order("order-marked"), "/trackingNumber", Value::from(number));
    let order = with(order, "/sender/fullName", Value::from("CanarySender"));
    let order = with(order, "/receiver/fullName", Value::from("CanaryReceiver"));
    let order = with(order, "/receiver/address/line1", Value::from("CanaryStreet 1"));
    let order = with(order, "/externalOrderId", Value::from("CanaryOrder"));
    let marks = [
        "CanarySender",
        "CanaryReceiver",
        "CanaryStreet",
        "CanaryOrder",
        "1714307103",
        "593991234567",
    ];
    (order, marks)
}
