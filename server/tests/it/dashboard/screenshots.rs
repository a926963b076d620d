//! The dashboard in a real browser: every page at both widths, in both languages, in light and dark, and with axe-core.
//! Some screenshots are kept in docs/.

use std::fs;

use parcelo::Environment;
use parcelo_server::internals::{
    Actor, AllowedHosts, ApiKeyScope, AttemptResult, CarrierScope, DeliveryError, DeliverySlots,
    EndpointRequest, EndpointResponse, MAX_IN_FLIGHT_PER_ENDPOINT, MailOutcome, Millis, Tenant,
};
use parcelo_wire::CarrierKey;
use serde_json::json;

use super::service::{NOW, PASSWORD, TestService, disable_webhook_by_410};
use crate::{
    api::{order_with_number, with},
    browser::{Browser, Window},
    screenshots::{DOCS, Screenshot},
};

const PHONE: Window = Window { width: 390, height: 844, dark: false };
const DESKTOP: Window = Window { width: 1200, height: 860, dark: false };

const TALL_DESKTOP: Window = Window { height: 1040, ..DESKTOP };

/// The pages that a signed-in user can open.
const PAGES: [(&str, &str); 13] = [
    ("overview", "/dashboard"),
    ("parcels", "/dashboard/parcels?environment=sandbox"),
    ("parcel", "/dashboard/parcels/sandbox/SB-CUSTOMS-3001"),
    ("keys", "/dashboard/keys"),
    ("new-key", "/dashboard/keys/new"),
    ("rotate", "KEY/rotate"),
    ("revoke", "KEY/revoke"),
    ("webhook", "/dashboard/webhooks/sandbox"),
    ("webhook-none", "/dashboard/webhooks/production"),
    ("exceptions", "/dashboard/exceptions"),
    ("legacy", "/dashboard/legacy"),
    ("settings", "/dashboard/settings"),
    ("lost", "/dashboard/nowhere"),
];

/// The screenshots in the documents.
const DOCS_SCREENSHOTS: [(&str, &str, Window, &str); 5] = [
    ("dashboard-overview", "/dashboard", DESKTOP, "en"),
    ("dashboard-parcel", "/dashboard/parcels/sandbox/SB-CUSTOMS-3001", DESKTOP, "en"),
    ("dashboard-webhook", "/dashboard/webhooks/sandbox", TALL_DESKTOP, "es"),
    ("dashboard-phone", "/dashboard", PHONE, "es"),
    ("dashboard-dark", "/dashboard/keys", Window { dark: true, ..PHONE }, "en"),
];

/// Returns a service with the data of a shop after its first month.
async fn service_with_data() -> TestService {
    let test = TestService::with(|settings| {
        settings.legacy.sunset = Some(NOW.plus(200 * Millis::DAY));
    })
    .await;
    test.clock.set(NOW.plus(-30 * Millis::DAY));
    let sandbox = test.key_named("default", Environment::Sandbox, "Tests of the shop").await;
    let live = test.key_named("default", Environment::Production, "Warehouse Quito").await;
    let old = test.key_named("default", Environment::Production, "Shop before 2026").await;
    let carrier = test
        .service
        .issuer(Actor::Server)
        .issue::<CarrierScope>("Andes Cargo".to_owned(), Environment::Production, NOW)
        .await
        .unwrap();
    for day in 0..30_u32 {
        test.advance_clock(Millis::DAY);
        let parcels = 2 + (day * 7) % 5 + if day % 7 < 5 { day / 4 } else { 0 };
        for count in 0..parcels {
            let journey = ["SUCCESS", "SUCCESS", "SUCCESS", "CUSTOMS", "RTS", "FAIL"]
                [usize::try_from((day + count) % 6).unwrap()];
            test.order(&sandbox, &format!("SB-{journey}-{day}0{count:02}")).await;
            if count % 2 == 0 {
                let number = format!("EC{day:02}{count:02}WAREHOUSE");
                test.order(&live, &number).await;
                push_scans(&test, &carrier.0, &number, day, count).await;
            }
        }
        test.service
            .count_legacy_use(&old, test.service.now().plus(-i64::from(day % 3) * Millis::DAY));
    }
    test.clock.set(NOW.plus(-Millis::HOUR));
    test.order(&sandbox, "SB-CUSTOMS-3001").await;
    test.service
        .store()
        .revoke_credential::<ApiKeyScope>(
            &old.key.id,
            NOW.plus(-Millis::DAY),
            &Actor::Server.at(NOW),
        )
        .await
        .unwrap();
    deliveries(&test, sandbox.tenant()).await;
    test.clock.set(NOW);
    test.service.take_due_steps().await.unwrap();
    deliver_due_events(&test).await;
    test
}

async fn push_scans(test: &TestService, key: &CarrierKey, number: &str, day: u32, count: u32) {
    let carrier = test
        .service
        .authenticate_carrier(Environment::Production, Some(key.secret()))
        .await
        .unwrap();
    let now = test.service.now();
    let way: &[&str] = match (29 - day, count % 8) {
        (_, 6) => &["DELIVERED"],
        (0..2, _) => &[],
        (2..5, _) => &["PICKED_UP", "IN_TRANSIT"],
        (5..8, 4) => &["PICKED_UP", "CUSTOMS_HOLD"],
        (5..8, _) => &["PICKED_UP", "IN_TRANSIT", "OUT_FOR_DELIVERY"],
        (_, 4) => &["PICKED_UP", "IN_TRANSIT", "DELIVERY_FAILED"],
        _ => &["PICKED_UP", "IN_TRANSIT", "OUT_FOR_DELIVERY", "DELIVERED"],
    };
    let event = |(index, status): (usize, &&str)| {
        let at = now.plus(i64::try_from(index).unwrap() * Millis::MINUTE).to_utc();
        json!({ "eventId": format!("{number}-{index}"), "trackingNumber": number, "status": status,
            "occurredAt": parcelo_types::internal::time::to_text(at), "location": "Quito, EC", "carrierCode": "SC-40" })
    };
    let events: Vec<_> = way.iter().enumerate().map(event).collect();
    if !events.is_empty() {
        test.advance_clock(10 * Millis::MINUTE);
        let result = test.service.push_carrier_events(&carrier, &json!({ "events": events })).await;
        result.unwrap();
        test.advance_clock(-10 * Millis::MINUTE);
    }
}

/// Sets up a webhook with several deliveries: acknowledged, refused once, and waiting.
async fn deliveries(test: &TestService, tenant: Tenant) {
    let allowed_hosts = AllowedHosts::PublicAndLoopback;
    let url = "https://shop.example/hooks/parcelo".to_owned();
    let kinds =
        parcelo_server::internals::WebhookEventKinds::from_codes(["parcel.created"]).unwrap();
    let request = EndpointRequest { tenant, url, kinds, allowed_hosts };
    test.service.endpoints(Actor::Server).set(request, NOW.plus(-9 * Millis::DAY)).await.unwrap();
    test.service.endpoints(Actor::Server).send_test(tenant, test.service.now()).await.unwrap();
    let caller = test.key("default", Environment::Sandbox).await;
    for number in ["SB-SUCCESS-9001", "SB-SUCCESS-9002"] {
        test.order(&caller, number).await;
    }
    deliver_due_events(test).await;
}

/// Delivers the due events. Each acknowledged event releases the next one of its parcel.
async fn deliver_due_events(test: &TestService) {
    for round in 0.. {
        let due = test
            .service
            .lease_deliveries(&DeliverySlots::new(MAX_IN_FLIGHT_PER_ENDPOINT))
            .await
            .unwrap();
        if due.is_empty() {
            return;
        }
        for (index, event) in (0..).zip(due) {
            let delivery = test.service.prepare_delivery(event).await.unwrap().unwrap();
            let response = match (round, index) {
                (0, 1) => Err(DeliveryError::TimedOut),
                _ => Ok(EndpointResponse {
                    status: 204,
                    retry_after: None,
                    body_prefix: b"taken".to_vec(),
                }),
            };
            let outcome =
                AttemptResult { at: test.service.now(), millis: 84 + index * 7, response };
            test.service.settle_delivery(delivery, outcome).await.unwrap();
        }
    }
}

/// Signs a browser in.
async fn sign_in(browser: &Browser, test: &TestService) {
    browser.open(&format!("{}/dashboard/sign-in", test.url)).await;
    browser.fill("[name=password]", PASSWORD).await;
    browser.click_and_wait("main button").await;
    assert_eq!(browser.current_url().await, format!("{}/dashboard", test.url));
}

/// With `PARCELO_BLESS=1` the screenshots in docs/ are replaced.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a browser and axe-core: `.ci/prove browser` installs them and runs this"]
async fn every_page_of_the_dashboard_fits_and_axe_finds_no_violation() {
    let test = service_with_data().await;
    let browser = Browser::start().await;
    let check = async |name: &str, path: &str| {
        browser.check_page(name, &format!("{}{path}", test.url), &[]).await;
    };
    check("sign-in", "/dashboard/sign-in").await;
    sign_in(&browser, &test).await;
    let key = test.service.store().credentials::<ApiKeyScope>().await.unwrap()[0].id.clone();
    for (name, path) in PAGES {
        check(name, &path.replace("KEY", &format!("/dashboard/keys/{key}"))).await;
    }
    browser.open(&format!("{}/dashboard/webhooks/sandbox", test.url)).await;
    let delivery = browser.run_script("return document.querySelector('a.id').pathname").await;
    check("delivery", delivery.as_str().unwrap()).await;
    for (name, path, window, language) in DOCS_SCREENSHOTS {
        browser.resize(window).await;
        let join = if path.contains('?') { '&' } else { '?' };
        browser.open(&format!("{}{path}{join}lang={language}", test.url)).await;
        let picture = Screenshot::from_png(&browser.screenshot().await);
        assert!(picture.colours() > 40, "{name} is drawn with its style sheet");
        if std::env::var_os("PARCELO_BLESS").is_some() {
            picture.save(&format!("{DOCS}/{name}.png"));
        }
    }
    let production = Tenant { environment: Environment::Production, ..tenant_of(&test).await };
    disable_webhook_by_410(&test, production).await;
    hold_mail(&test).await;
    for (name, path) in [
        ("overview-alarms", "/dashboard"),
        ("webhook-off", "/dashboard/webhooks/production"),
        ("parcel-mails", "/dashboard/parcels/sandbox/SB-SUCCESS-4001"),
        ("settings-mails", "/dashboard/settings"),
    ] {
        check(name, path).await;
    }
    browser.open(&format!("{}/dashboard?lang=en", test.url)).await;
    let overview = browser.text("main").await;
    for alarm in ["the webhook is off", "the mail server has not taken yet"] {
        assert!(overview.contains(alarm), "{overview}");
    }
    // A form responds with its faults, or with a secret.
    browser.open(&format!("{}/dashboard/keys/new?lang=en", test.url)).await;
    browser.fill("[name=name]", "Shop").await;
    browser.fill("[name=addresses]", "nowhere").await;
    browser.click_and_wait("main .strong").await;
    assert!(browser.text("[role=alert]").await.contains("nowhere"));
    browser.assert_accessible("a refused form", &[]).await;
    browser.fill("[name=addresses]", "203.0.113.0/24").await;
    browser.click_and_wait("main .strong").await;
    assert!(browser.text("#secret").await.starts_with("pk_"));
    browser.assert_accessible("a new secret", &[]).await;
}

/// Leaves an e-mail that the relay does not take.
async fn hold_mail(test: &TestService) {
    test.service.enable_mails(test.service.now()).await.unwrap();
    let caller = test.key("default", Environment::Sandbox).await;
    let order = order_with_number("order-mail", "SB-SUCCESS-4001");
    test.create(&caller, &with(order, "/receiver/email", json!("luis@example.org"))).await;
    test.advance_clock(15 * Millis::MINUTE);
    test.service.take_due_steps().await.unwrap();
    test.advance_clock(2 * Millis::MINUTE);
    for mail in test.service.lease_due_mails(9).await.unwrap() {
        test.service.settle_mail(&mail, MailOutcome::Failed).await.unwrap();
    }
}

async fn tenant_of(test: &TestService) -> Tenant {
    test.service.store().credentials::<ApiKeyScope>().await.unwrap()[0].scope.tenant
}

#[test]
fn the_dashboard_screenshots_in_docs_are_small() {
    for (name, ..) in DOCS_SCREENSHOTS {
        let bytes = fs::metadata(format!("{DOCS}/{name}.png")).unwrap().len();
        assert!(bytes <= 60 * 1024, "{name} has {bytes} bytes");
    }
}
