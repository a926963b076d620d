//! The dashboard's forms: any fields get a response, a form without its session's token changes nothing, and typed text
//! never becomes markup.

use std::{
    cell::RefCell,
    sync::{Arc, atomic::AtomicBool},
};

use axum::{Router, body::Body};
use http::Request;
use parcelo::Environment;
use parcelo_server::internals::{
    Actor, Api, Ids, ManualClock, Millis, Secrets, Service, Settings, Store, admin_router,
    hash_password,
};
use tokio::runtime::{Builder, Runtime};
use url::form_urlencoded;

use crate::{
    Target,
    service::{HttpResponse, call},
};

pub(crate) const TARGET: Target = Target { name: "dashboard_forms", check, cases: 120 };

/// The paths of the forms; the number on the first line selects one.
const PATHS: [&str; 8] = [
    "/dashboard/keys",
    "/dashboard/webhooks/sandbox",
    "/dashboard/webhooks/production",
    "/dashboard/webhooks/sandbox/enable",
    "/dashboard/webhooks/sandbox/replay",
    "/dashboard/parcels",
    "/dashboard/keys/key_1/revoke",
    "/dashboard/keys/key_1/rotate",
];
/// The pages that must not change when a form is sent without its token.
const PAGES: [&str; 4] = [
    "/dashboard/keys",
    "/dashboard/webhooks/sandbox",
    "/dashboard/webhooks/production",
    "/dashboard",
];
const PASSWORD: &str = "twelve letters or more";
/// Number of inputs after which a dashboard is replaced.
const MAX_INPUTS: u32 = 200;

struct Dashboard {
    runtime: Runtime,
    routes: Router,
    session: String,
    form_token: String,
    inputs: u32,
}

thread_local! {
    static DASHBOARD: RefCell<Option<Dashboard>> = const { RefCell::new(None) };
}

fn check(input: &[u8]) {
    let previous =
        DASHBOARD.with_borrow_mut(Option::take).filter(|dashboard| dashboard.inputs < MAX_INPUTS);
    let mut dashboard = previous.unwrap_or_else(Dashboard::open);
    dashboard.inputs += 1;
    check_form(&dashboard, input);
    DASHBOARD.with_borrow_mut(|kept| *kept = Some(dashboard));
}

fn check_form(dashboard: &Dashboard, input: &[u8]) {
    let (selector, fields) = match input.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&input[..end], &input[end + 1..]),
        None => (&b"0"[..], input),
    };
    let index = selector.first().map_or(0, |byte| usize::from(byte.wrapping_sub(b'0')));
    let path = PATHS[index % PATHS.len()];
    let before = PAGES.map(|page| dashboard.get(page).text());
    let without_token = dashboard.post(path, fields);
    assert_eq!(
        without_token.status, 403,
        "a form without its token is accepted: {without_token:?}"
    );
    assert!(PAGES.map(|page| dashboard.get(page).text()) == before, "a forged form changed a page");
    let response = dashboard
        .post(path, &[format!("form={}&", dashboard.form_token).as_bytes(), fields].concat());
    if let Some(location) = response.headers.get("location") {
        assert!(location.to_str().unwrap().starts_with("/dashboard"), "{response:?}");
    } else {
        assert_is_page(&response.text());
    }
    for page in PAGES {
        assert_is_page(&dashboard.get(page).text());
    }
    let query: String = form_urlencoded::byte_serialize(fields).collect();
    for query in [String::from_utf8_lossy(fields).into_owned(), format!("number={query}")] {
        if let Ok(uri) = http::Uri::try_from(format!("/dashboard/parcels?{query}")) {
            assert_is_page(&dashboard.get(&uri.to_string()).text());
        }
    }
}

impl Dashboard {
    fn open() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let store = Store::memory([1; 32]).unwrap();
        let now = Millis(1_769_786_400_000);
        let mut settings =
            Settings::new("https://parcelo.example", Secrets::derive(&store.secret()));
        settings.limits.enforced = false;
        let (clock, ids) = (Arc::new(ManualClock::at(now)), Arc::new(Ids::seeded(7)));
        let service = Arc::new(Service::new(store, clock, ids, settings));
        runtime.block_on(async {
            let store = service.store();
            let account = store.account("default", "acc_default".to_owned(), now).await.unwrap();
            let hash = hash_password(PASSWORD, [7; 16]).unwrap();
            store.set_password(account, hash, now, &Actor::Server.at(now)).await.unwrap();
        });
        let (environment, ready) = (Environment::Production, Arc::new(AtomicBool::new(true)));
        let routes = admin_router(Api { service, environment, ready });
        let mut dashboard =
            Self { runtime, routes, session: String::new(), form_token: String::new(), inputs: 0 };
        dashboard.sign_in();
        dashboard
    }

    fn sign_in(&mut self) {
        let page = self.get("/dashboard/sign-in");
        self.session = cookie(&page);
        let form_token = form_token_in(&page.text());
        let fields =
            format!("form={form_token}&account=default&password={}", PASSWORD.replace(' ', "+"));
        let response = self.post("/dashboard/sign-in", fields.as_bytes());
        assert_eq!(response.status, 303, "{response:?}");
        self.session = cookie(&response);
        self.form_token = form_token_in(&self.get("/dashboard/keys/new").text());
    }

    fn get(&self, path: &str) -> HttpResponse {
        let request =
            Request::get(path).header("host", "127.0.0.1").header("cookie", &self.session);
        call(&self.runtime, &self.routes, request.body(Body::empty()).unwrap())
    }

    fn post(&self, path: &str, fields: &[u8]) -> HttpResponse {
        let request = Request::post(path)
            .header("host", "127.0.0.1")
            .header("cookie", &self.session)
            .header("content-type", "application/x-www-form-urlencoded");
        call(&self.runtime, &self.routes, request.body(Body::from(fields.to_vec())).unwrap())
    }
}

/// Returns the first cookie whose value is not empty.
fn cookie(response: &HttpResponse) -> String {
    let set = response.headers.get_all("set-cookie").iter();
    let pairs = set.map(|line| line.to_str().unwrap().split(';').next().unwrap().to_owned());
    pairs.into_iter().find(|pair| !pair.ends_with('=')).unwrap()
}

fn form_token_in(page: &str) -> String {
    let (_, rest) = page.split_once("name=\"form\" value=\"").unwrap();
    rest.split('"').next().unwrap().to_owned()
}

/// Checks the names of a page's elements and attributes: each is a plain name, and none is a script, a frame, an
/// object, an image or an event handler.
fn assert_is_page(page: &str) {
    assert!(page.starts_with("<!doctype html>"), "{page}");
    for tag in page.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').unwrap();
        let name = tag.trim_start_matches('/').split([' ', '\n', '/']).next().unwrap();
        assert!(
            is_plain_name(name) && !["script", "iframe", "object", "img"].contains(&name),
            "<{tag}>"
        );
        // Attribute values are between quotes; the rest are names.
        for (index, part) in tag.split('"').enumerate() {
            let is_name = index % 2 == 0;
            let names =
                part.split([' ', '\n', '=', '/']).filter(|name| is_name && !name.is_empty());
            for name in names {
                assert!(is_plain_name(name) && !name.starts_with("on"), "{name} in <{tag}>");
            }
        }
    }
}

fn is_plain_name(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-!:".contains(&byte))
}
