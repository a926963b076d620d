//! What a page says once, when the page that did it and the page that says it are of two servers.

use std::sync::{Arc, atomic::AtomicBool};

use axum::{
    Router,
    body::Body,
    http::{Request, StatusCode},
};
use http_body_util::BodyExt;
use parcelo::Environment;
use tower::ServiceExt;

use crate::{
    clock::{ManualClock, Millis},
    domain::{Secrets, audit::BY, session::Login},
    http::{Api, admin_router},
    ids::Ids,
    service::{Service, tests::settings},
    store::{Store, damage_file},
};

const NOW: Millis = Millis(1_769_786_400_000);
const TOKEN: &str = "the-cookie-of-a-session";
const NEW_KEY: &str = "name=Shop&environment=sandbox&countries=all";

/// A server, and the clock of its database's servers.
struct Server {
    service: Arc<Service>,
    routes: Router,
}

fn server(store: Store, clock: &Arc<ManualClock>, seed: u64) -> Server {
    let settings =
        crate::service::Settings { secrets: Secrets::derive(&store.secret()), ..settings() };
    let service =
        Arc::new(Service::new(store, clock.clone(), Arc::new(Ids::seeded(seed)), settings));
    let (environment, ready) = (Environment::Production, Arc::new(AtomicBool::new(true)));
    let routes = admin_router(Api { service: Arc::clone(&service), environment, ready });
    Server { service, routes }
}

impl Server {
    async fn call(&self, request: Request<Body>) -> (StatusCode, String) {
        let answer = self.routes.clone().oneshot(request).await.unwrap();
        let status = answer.status();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    async fn keys_page(&self) -> String {
        let request = Request::get("/dashboard/keys").header("host", "127.0.0.1");
        let cookie = format!("__Host-parcelo_session={TOKEN}");
        let request = request.header("cookie", cookie).body(Body::empty()).unwrap();
        let (status, page) = self.call(request).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        page
    }

    async fn make_key(&self) {
        assert_eq!(self.post("/dashboard/keys", NEW_KEY).await.0, StatusCode::SEE_OTHER);
    }

    async fn post(&self, path: &str, fields: &str) -> (StatusCode, String) {
        let form = self.service.form_token(TOKEN);
        let request = Request::post(path)
            .header("host", "127.0.0.1")
            .header("cookie", format!("__Host-parcelo_session={TOKEN}"))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Body::from(format!("form={form}&{fields}")))
            .unwrap();
        self.call(request).await
    }

    async fn sign_in(&self) {
        let store = self.service.store();
        let account = store.account("default", "acc_1".to_owned(), NOW).await.unwrap();
        let password = "a hash".to_owned();
        store.set_password(account, password.clone(), NOW, &BY).await.unwrap();
        let hash = self.service.settings().secrets.hash_of_session(TOKEN);
        let session = (hash, NOW.plus(3_600_000));
        assert!(store.begin_session(Login { account, password }, session, None).await.unwrap());
    }
}

/// The secrets that a page shows.
fn secrets(page: &str) -> Vec<String> {
    let parts = page.split("<p class=\"secret\"").skip(1);
    let texts = parts.map(|part| part.split_once('>').unwrap().1.split('<').next().unwrap());
    texts.map(str::to_owned).collect()
}

async fn a_secret_is_shown_once(one: Store, other: Store) {
    let clock = Arc::new(ManualClock::at(NOW));
    let (one, other) = (server(one, &clock, 1), server(other, &clock, 2));
    one.sign_in().await;
    one.make_key().await;
    let shown = secrets(&other.keys_page().await);
    assert_eq!(shown.len(), 1, "{shown:?}");
    for server in [&one, &other] {
        assert!(secrets(&server.keys_page().await).is_empty());
    }
    // Nor does the database have it: what waits there opens with this session's cookie only.
    other.make_key().await;
    let session = one.service.settings().secrets.hash_of_session(TOKEN);
    let store = one.service.store();
    let kept = store.take_flashes(session, "keys").await.unwrap();
    store.leave_flash(session, "keys", kept[0].clone()).await.unwrap();
    let shown = secrets(&one.keys_page().await);
    assert_eq!(shown.len(), 1);
    for part in [shown[0].as_str(), &shown[0][shown[0].len() - 8..], "Shop", "OneTimeSecret"] {
        assert!(
            !kept[0].sealed.windows(part.len()).any(|bytes| bytes == part.as_bytes()),
            "{part}"
        );
    }
    let thief = [9; 32];
    store.leave_flash(thief, "keys", kept[0].clone()).await.unwrap();
    assert_eq!(store.take_flashes(thief, "keys").await.unwrap().len(), 1);
    assert!(one.service.take_flashes("another-cookie", "keys").await.unwrap().is_empty());
    // One that is not looked at is gone after a while, and with its session.
    one.make_key().await;
    clock.set(NOW.plus(5 * 60_000));
    one.service.purge().await;
    assert!(store.take_flashes(session, "keys").await.unwrap().is_empty());
    one.make_key().await;
    other.service.sign_out(TOKEN).await.unwrap();
    assert!(store.take_flashes(session, "keys").await.unwrap().is_empty());
}

#[tokio::test]
async fn a_secret_survives_a_restart_and_is_shown_once() {
    let store = Store::memory([1; 32]).unwrap();
    a_secret_is_shown_once(store.clone(), store).await;
}

#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_one_server_made_is_shown_once_by_any() {
    let Some(address) = crate::store::test_database() else { return };
    let one = Store::connect(address.clone(), [1; 32]).await.unwrap();
    let other = Store::connect(address, [2; 32]).await.unwrap();
    a_secret_is_shown_once(one, other).await;
}

/// What is made while nothing can be kept for the next page; `break_flashes` makes it so.
async fn secrets_are_shown_at_once(store: Store, break_flashes: impl FnOnce()) {
    let server = server(store, &Arc::new(ManualClock::at(NOW)), 1);
    server.sign_in().await;
    server.make_key().await;
    let page = server.keys_page().await;
    let (_, rest) = page.split_once("/dashboard/keys/key_").unwrap();
    let key = format!("/dashboard/keys/key_{}", rest.split_once('/').unwrap().0);
    break_flashes();
    let hook = "/dashboard/webhooks/production";
    let asked = [
        ("/dashboard/keys", NEW_KEY),
        (&*format!("{key}/rotate"), "overlap=0"),
        (hook, "url=https://shop.example/"),
        (&format!("{hook}/rotate"), ""),
    ];
    let mut shown = Vec::new();
    for (path, fields) in asked {
        let (status, page) = server.post(path, fields).await;
        assert_eq!(status, StatusCode::OK, "{path}: {page}");
        shown.extend(secrets(&page));
    }
    assert_eq!(shown.len(), 4, "{shown:?}");
    // What is not a secret is left out, and what was done is answered as done.
    for path in [format!("{hook}/disable"), format!("{key}/revoke")] {
        assert_eq!(server.post(&path, "").await.0, StatusCode::SEE_OTHER, "{path}");
    }
}

#[tokio::test]
async fn a_secret_that_cannot_be_kept_for_the_next_page_is_shown_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("parcelo.db");
    let store = Store::open(&file, [1; 32]).unwrap();
    let refuse = "CREATE TRIGGER no_room BEFORE INSERT ON dashboard_flashes \
         BEGIN SELECT RAISE(ABORT, 'no room'); END";
    secrets_are_shown_at_once(store, || assert_eq!(damage_file(&file, refuse), 0)).await;
}

#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_the_servers_database_cannot_keep_is_shown_at_once() {
    let Some(address) = crate::store::test_database() else { return };
    let store = Store::connect(address.clone(), [1; 32]).await.unwrap();
    let refuse = "ALTER TABLE dashboard_flashes ADD CONSTRAINT no_room CHECK (false) NOT VALID";
    secrets_are_shown_at_once(store, || crate::store::run_sql(&address, refuse)).await;
}
