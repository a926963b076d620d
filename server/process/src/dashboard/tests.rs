//! Tests of forms that create a secret, with several servers: the first server shows the form, the second receives it,
//! and the third receives the reload.

use std::{
    net::Ipv4Addr,
    sync::{Arc, atomic::AtomicBool},
};

use axum::{
    Router,
    body::Body,
    http::{Request, StatusCode},
};
use http_body_util::BodyExt;
use parcelo_domain::{
    Millis, Secrets,
    sample::TEST_AUTHOR,
    session::{NewSession, PasswordLogin},
};
use parcelo_service::{
    http::Api,
    service::{Service, Settings},
};
use parcelo_store::Store;
use parcelo_system::{clock::ManualClock, ids::Ids};
use parcelo_types::Environment;
use tower::ServiceExt;

use crate::routes::admin_router;

const NOW: Millis = Millis(1_769_786_400_000);
const SESSIONS: [&str; 2] = ["the-cookie-of-a-session", "that-of-another-account"];
const WEBHOOK_PATH: &str = "/dashboard/webhooks/production";

/// A server with two accounts, each of which has a session.
struct Server {
    service: Arc<Service>,
    routes: Router,
}

fn server(store: Store, seed: u64) -> Server {
    let settings = Settings::new("", Secrets::derive(&store.secret()));
    let (clock, ids) = (Arc::new(ManualClock::at(NOW)), Arc::new(Ids::seeded(seed)));
    let service = Arc::new(Service::new(store, clock, ids, settings));
    let (environment, ready) = (Environment::Production, Arc::new(AtomicBool::new(true)));
    let routes = admin_router(Api { service: Arc::clone(&service), environment, ready });
    Server { service, routes }
}

impl Server {
    async fn call(&self, session: &str, request: Request<Body>) -> (StatusCode, String) {
        let mut request = request;
        let cookie = format!("__Host-parcelo_session={session}");
        request.headers_mut().insert("cookie", cookie.parse().unwrap());
        let response = self.routes.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    async fn render_page(&self, path: &str) -> String {
        let (status, page) =
            self.call(SESSIONS[0], Request::get(path).body(Body::empty()).unwrap()).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        page
    }

    /// Sends a form and returns the secret that the response shows.
    async fn post(&self, session: &str, (path, fields): (&str, &str)) -> Option<String> {
        let form = self.service.form_token(session);
        let request = Request::post(path)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Body::from(format!("form={form}&{fields}")))
            .unwrap();
        let (status, page) = self.call(session, request).await;
        let secret = page.split_once("id=\"secret\"").map(|(_, rest)| {
            let (_, rest) = rest.split_once('>').unwrap();
            rest.split('<').next().unwrap().to_owned()
        });
        let expected = if secret.is_some() { StatusCode::OK } else { StatusCode::SEE_OTHER };
        assert_eq!(status, expected, "{path}: {page}");
        secret
    }

    /// Creates both accounts and their sessions.
    async fn sign_in(&self) {
        let store = self.service.store();
        for (session, name) in SESSIONS.into_iter().zip(["default", "other"]) {
            let account = store.account(name, format!("acc_{name}"), NOW).await.unwrap();
            let password = "a hash".to_owned();
            store.set_password(account, password.clone(), NOW, &TEST_AUTHOR).await.unwrap();
            let hash = self.service.settings().secrets.hash_session_token(session);
            let ends_at = NOW.plus(Millis::HOUR);
            let client = Ipv4Addr::LOCALHOST.into();
            let session = NewSession { hash, begins_at: NOW, ends_at, client };
            assert!(
                store
                    .begin_session(PasswordLogin { account, password }, session, None)
                    .await
                    .unwrap()
            );
        }
    }
}

/// Returns a hidden field of a page's form, with its name.
fn field(page: &str, name: &str) -> String {
    let (_, rest) = page.split_once(&format!("name=\"{name}\" value=\"")).unwrap();
    format!("{name}={}", rest.split('"').next().unwrap())
}

async fn assert_a_form_creates_one_secret(one: Store, other: Store) {
    let (one, other) = (server(one, 1), server(other, 2));
    one.sign_in().await;
    // The button is pressed twice: only one request creates a key. Reloading creates none.
    let send_twice = async |path: &str, fields: &str| {
        let form = (path, fields);
        let (first, second) =
            tokio::join!(one.post(SESSIONS[0], form), other.post(SESSIONS[0], form));
        assert!(first.is_some() != second.is_some(), "{path}: {first:?} {second:?}");
        for server in [&one, &other] {
            assert_eq!(server.post(SESSIONS[0], form).await, None, "{path}");
        }
    };
    let key = field(&one.render_page("/dashboard/keys/new").await, "once");
    let key = format!("name=Shop&environment=sandbox&countries=all&{key}");
    send_twice("/dashboard/keys", &key).await;
    let list = one.render_page("/dashboard/keys").await;
    assert_eq!(list.matches("<h2>Shop</h2>").count(), 1);
    let (_, rest) = list.split_once("/dashboard/keys/key_").unwrap();
    let rotate = format!("/dashboard/keys/key_{}/rotate", rest.split_once('/').unwrap().0);
    let seen = field(&one.render_page(&rotate).await, "seen");
    send_twice(&rotate, &format!("overlap=0&{seen}")).await;
    send_twice(WEBHOOK_PATH, "url=https://shop.example/").await;
    let seen = field(&one.render_page(WEBHOOK_PATH).await, "seen");
    send_twice(&format!("{WEBHOOK_PATH}/rotate"), &seen).await;
    // Another account learns nothing from this form: the same fields create that account's own key.
    assert!(other.post(SESSIONS[1], ("/dashboard/keys", &key)).await.is_some());
}

#[tokio::test]
async fn a_form_creates_one_secret_with_sqlite() {
    let store = Store::memory([1; 32]).unwrap();
    assert_a_form_creates_one_secret(store.clone(), store).await;
}

#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread")]
async fn a_form_creates_one_secret_across_servers() {
    let Some(address) = parcelo_store::test_util::database() else { return };
    let one = Store::connect(address.clone(), [1; 32]).await.unwrap();
    let other = Store::connect(address, [2; 32]).await.unwrap();
    assert_a_form_creates_one_secret(one, other).await;
}
