//! The audit log on the dashboard: each change with its author, shown only to the account that it belongs to.

use parcelo::Environment;
use parcelo_server::internals::{Actor, DisabledBy};

use super::service::{PASSWORD, TestService, Visitor};
use crate::{api::order_with_number, running};

const SETTINGS: &str = "/dashboard/settings";

#[tokio::test]
async fn settings_show_changes_of_the_account_without_secrets() {
    let (test, mut member) = TestService::with_member().await;
    assert!(member.page(SETTINGS).await.contains("Password set"), "the account has one");
    let key = [("name", "Canary name"), ("environment", "sandbox")];
    member.post("/dashboard/keys", &key).await;
    member.post("/dashboard/webhooks/sandbox", &[("url", "http://127.0.0.1:9/canary")]).await;
    member.post(SETTINGS, &[("name", "Canary shop"), ("contact", "")]).await;
    let new = "another one, twelve";
    let password = [("password", PASSWORD), ("new", new), ("again", new)];
    member.post("/dashboard/settings/password", &password).await;
    member.sign_in("default", new).await;

    let listed = async |member: &Visitor| {
        let page = member.page(SETTINGS).await;
        page.split_once("id=\"changes\"").unwrap().1.to_owned()
    };
    let english = listed(&member).await;
    for words in ["Shop settings changed", "Password set", "Webhook set", "dashboard", "sandbox"] {
        assert!(english.contains(words), "{words}: {english}");
    }
    assert!(!english.contains("anary") && !english.contains("twelve"), "{english}");
    member.language = "es";
    let spanish = listed(&member).await;
    assert!(spanish.contains("Datos de la tienda cambiados") && spanish.contains("panel"));

    test.set_password("other").await;
    let stranger = listed(&test.member("other").await).await;
    assert_eq!(stranger.matches("<li>").count(), 1, "its own password only: {stranger}");
}

#[tokio::test]
async fn sign_ins_are_listed_with_their_address_beside_the_changes() {
    let test = TestService::new().await;
    test.visitor().sign_in("default", "a wrong password").await;
    test.visitor().sign_in("default", PASSWORD).await;
    test.advance_clock(1_000);
    let mut member = test.visitor();
    assert_eq!(member.sign_in("default", PASSWORD).await.status, 303);
    for (language, heading) in [("en", "Latest sign-ins"), ("es", "Últimos inicios de sesión")] {
        member.language = language;
        let page = member.page(SETTINGS).await;
        let (sign_ins, changes) = page.split_once("id=\"changes\"").unwrap();
        let (_, sign_ins) = sign_ins.split_once(heading).unwrap();
        assert_eq!(sign_ins.matches("<li>").count(), 2, "the failed one is not listed: {sign_ins}");
        assert_eq!(sign_ins.matches("127.0.0.1").count(), 2, "{sign_ins}");
        assert!(!changes.contains("127.0.0.1"), "{changes}");
    }
}

#[tokio::test]
async fn saving_the_same_values_is_not_a_change() {
    let (_test, member) = TestService::with_member().await;
    for _ in 0..2 {
        member.post(SETTINGS, &[("name", "Shop"), ("contact", "")]).await;
        member.post("/dashboard/settings/mails", &[("kind", "held")]).await;
    }
    let page = member.page(SETTINGS).await;
    for words in ["Shop settings changed", "E-mail notifications changed"] {
        assert_eq!(page.matches(words).count(), 1, "{words}: {page}");
    }
}

#[tokio::test]
async fn the_latest_fifty_changes_are_shown_newest_first() {
    let test = TestService::new().await;
    let tenant = test.key("default", Environment::Sandbox).await.tenant();
    super::service::disable_webhook_by_410(&test, tenant).await;
    for _ in 0..30 {
        let endpoints = test.service.endpoints(Actor::Command);
        endpoints.enable(tenant).await.unwrap();
        endpoints.disable(tenant).await.unwrap();
    }
    let page = test.member("default").await.page(SETTINGS).await;
    let (_, changes) = page.split_once("id=\"changes\"").unwrap();
    assert_eq!(changes.matches("<li>").count(), 50);
    let (on, off) = (changes.find("turned on").unwrap(), changes.find("turned off").unwrap());
    assert!(off < on, "the latest first");
}

#[tokio::test]
async fn a_webhook_turned_off_by_the_server_names_the_server() {
    let test = TestService::new().await;
    let tenant = test.key("default", Environment::Sandbox).await.tenant();
    super::service::disable_webhook_by_410(&test, tenant).await;
    let off = test.service.store().disabled_endpoint(tenant).await.unwrap().unwrap();
    assert_eq!(off.0, DisabledBy::Gone);
    let page = test.member("default").await.page(SETTINGS).await;
    let (_, changes) = page.split_once("id=\"changes\"").unwrap();
    let latest = changes.split("</li>").next().unwrap();
    assert!(latest.contains("turned off") && latest.contains("server itself"), "{latest}");
}

#[tokio::test]
async fn failed_e_mails_are_counted_and_linked_to_their_parcels() {
    let setup = running::TestSetup::on_file("e-mails that failed are written into the file");
    let running = setup.start(&[]);
    let api = running.api(&setup.new_key("sandbox").1);
    for number in ["SB-SUCCESS-0001", "SB-SUCCESS-0002"] {
        assert_eq!(api.create(&order_with_number(number, number)).await.status, 201);
    }
    let mut member = Visitor::at(running.url("admin"), "en");
    let password = super::journey::password(&setup);
    assert_eq!(member.sign_in("default", &password).await.status, 303);
    assert!(!member.page("/dashboard").await.contains("could not be delivered"));

    let database = setup.database();
    let file = rusqlite::Connection::open(database.strip_prefix("sqlite:").unwrap()).unwrap();
    let now = chrono::Utc::now().timestamp_millis();
    let insert = "INSERT INTO mails (parcel, sequence, recipient, kind, created_at, status) \
         SELECT id, 3, ?1, 1, ?2, ?3 FROM parcels";
    let week = 7 * 24 * 3_600_000;
    for (recipient, at, status) in [(0, now, 2), (1, now, 1), (2, now - week - 60_000, 3)] {
        file.execute(insert, [recipient, at, status]).unwrap();
    }
    let english = member.page("/dashboard").await;
    assert!(english.contains("that could not be delivered: 2"), "{english}");
    assert!(english.contains("/dashboard/parcels/sandbox/SB-SUCCESS-0002\">View the latest"));
    member.language = "es";
    assert!(member.page("/dashboard").await.contains("que no se pudieron entregar: 2"));
}
