//! The dashboard's pages: both languages, no script, safe headers, and errors as pages.

use parcelo::Environment;
use parcelo_server::internals::{Actor, Millis};

use super::service::{
    NOW, TestService, Visitor, deliver, disable_webhook_by_410, marked_order, secret_in,
    webhook_with_event,
};
use crate::{
    api::{HttpResponse, send},
    running::TestSetup,
    tracking_page::contrast,
};

/// Every page with a separate address, and its heading.
const PAGES: [(&str, &str, &str); 9] = [
    ("/dashboard", "Overview", "Resumen"),
    ("/dashboard/parcels", "Parcels", "Paquetes"),
    ("/dashboard/parcels/sandbox/SB-SUCCESS-0001", "History", "Historial"),
    ("/dashboard/keys", "API keys", "Claves de API"),
    ("/dashboard/keys/new", "New key", "Nueva clave"),
    ("/dashboard/webhooks/production", "Where events are sent", "A dónde se envían los eventos"),
    ("/dashboard/exceptions", "Carrier exceptions", "Eventos de transportistas rechazados"),
    ("/dashboard/legacy", "Which keys still call it", "Qué claves aún la llaman"),
    ("/dashboard/settings", "Settings", "Ajustes"),
];

async fn service_with_data() -> (TestService, Visitor) {
    let (service, caller) = TestService::with_key().await;
    service.order(&caller, "SB-SUCCESS-0001").await;
    let member = service.member("default").await;
    (service, member)
}

fn assert_safe(response: &HttpResponse) {
    let table = [
        ("cache-control", "no-store"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
        ("x-robots-tag", "noindex, nofollow"),
        (
            "content-security-policy",
            "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; \
             base-uri 'none'; frame-ancestors 'none'",
        ),
    ];
    for (name, value) in table {
        assert_eq!(response.header(name), value);
    }
}

#[tokio::test]
async fn every_page_has_both_languages_and_no_script_or_style() {
    let (_service, mut member) = service_with_data().await;
    for (path, english, spanish) in PAGES {
        for (language, heading) in [("en", english), ("es", spanish)] {
            member.language = language;
            let response = member.get(path).await;
            assert_eq!(response.status, 200, "{path}");
            assert_eq!(response.header("content-language"), language, "{path}");
            assert_safe(&response);
            let html = response.text();
            assert!(html.contains(&format!("<html lang=\"{language}\">")), "{path}");
            assert!(html.contains(&format!(">{heading}</h")), "{path}: {heading}");
            for part in
                ["<header", "<nav class=\"tabs\"", "<main", "<footer", "<h1", "name=\"viewport\""]
            {
                assert_eq!(html.matches(part).count(), 1, "{path}: {part}");
            }
            for foreign in ["<script", " style=", "<style", " onclick", "@import", "javascript:"] {
                assert!(!html.contains(foreign), "{path}: {foreign}");
            }
            assert_eq!(html.matches("aria-current=\"page\"").count(), 1, "{path}");
            let count = |part: &str| html.matches(part).count();
            assert_eq!(count("<form"), count("name=\"form\""), "{path}");
        }
    }
}

#[tokio::test]
async fn the_chosen_language_is_kept_and_overrides_the_browser() {
    let (_service, member) = service_with_data().await;
    let english = member.page("/dashboard/parcels?environment=sandbox&page=1").await;
    assert!(
        english.contains("href=\"/dashboard/parcels?environment=sandbox&#38;page=1&#38;lang=es\"")
    );
    let response = member.get("/dashboard?lang=es").await;
    assert_eq!(response.header("content-language"), "es");
    let cookie = response.header("set-cookie").to_owned();
    assert!(cookie.starts_with("__Host-parcelo_language=es; Path=/;"), "{cookie}");
    let cookies = format!(
        "__Host-parcelo_language=es; __Host-parcelo_session={}",
        member.session.clone().unwrap()
    );
    let later = Visitor { session: None, ..member }.request("GET", "/dashboard/keys");
    assert_eq!(send(later.header("cookie", cookies)).await.header("content-language"), "es");
}

#[tokio::test]
async fn errors_are_pages_that_say_what_to_do() {
    let (service, mut member) = service_with_data().await;
    let table = [
        ("GET", "/dashboard/nowhere", 404, "Page not found", "Página no encontrada"),
        ("GET", "/dashboard/keys/key_1/revoke", 404, "Page not found", "Página no encontrada"),
        ("GET", "/dashboard/webhooks/mars", 404, "Page not found", "Página no encontrada"),
        ("GET", "/dashboard/parcels?from=never", 404, "Page not found", "Página no encontrada"),
        ("GET", "/dashboard/keys/%ff/revoke", 404, "Page not found", "Página no encontrada"),
        ("DELETE", "/dashboard/keys", 405, "Something went wrong", "Algo salió mal"),
        ("POST", "/dashboard/legacy", 405, "Something went wrong", "Algo salió mal"),
        (
            "POST",
            "/dashboard/keys",
            403,
            "The form was not accepted",
            "El formulario no fue aceptado",
        ),
    ];
    for (method, path, status, english, spanish) in table {
        for (language, words) in [("en", english), ("es", spanish)] {
            member.language = language;
            let response = send(member.request(method, path)).await;
            assert_eq!(response.status, status, "{method} {path}");
            assert_eq!(response.header("content-type"), "text/html; charset=utf-8");
            assert_safe(&response);
            assert!(response.text().contains(words), "{method} {path}: {}", response.text());
            assert!(response.text().contains("href=\"/dashboard\""), "{path}");
            assert_eq!(response.headers.contains_key("allow"), status == 405, "{path}");
        }
    }
    // Only the operators' listener has the pages.
    let api = crate::embedded::start().await;
    assert_eq!(crate::api::Api::new(api.url()).get("/dashboard").await.refusal().0, 404);
    drop(service);
}

#[tokio::test]
async fn the_overview_counts_parcels_by_status_and_day() {
    let (service, caller) = TestService::with_key().await;
    service.advance_clock(-40 * Millis::DAY);
    service.order(&caller, "SB-NORMAL-0000").await;
    service.advance_clock(15 * Millis::DAY);
    for number in ["SB-SUCCESS-0001", "SB-FAIL-0001", "SB-NORMAL-0001"] {
        service.order(&caller, number).await;
    }
    service.clock.set(NOW);
    service.order(&caller, "SB-NORMAL-0002").await;
    let html = service.member("default").await.page("/dashboard").await;
    let (production, sandbox) = html.split_once("id=\"in-sandbox\"").unwrap();
    assert!(production.contains("No parcels yet.") && !production.contains("<rect"));
    assert!(sandbox.contains("<b>4</b> parcels"), "{sandbox}");
    for (status, count) in [("Delivered", 1), ("Delivery failed", 1), ("Label generated", 2)] {
        let line = format!("{status}</span> <b>{count}</b>");
        assert!(sandbox.contains(&line), "{line}: {sandbox}");
    }
    assert!(sandbox.contains("<title>2026-01-05: 3</title>"), "{sandbox}");
    assert!(sandbox.contains("<title>2026-01-30: 1</title>") && sandbox.contains("busiest day: 3"));
    assert_eq!(sandbox.matches("<rect").count(), 4);
}

#[tokio::test]
async fn the_overview_links_to_parcels_past_their_promised_day() {
    let service = TestService::new().await;
    let callers = [Environment::Production, Environment::Sandbox]
        .map(async |environment| service.key("default", environment).await);
    let [production, sandbox] = callers;
    let (production, sandbox) = (production.await, sandbox.await);
    // A parcel to Ecuador is due within 8 days.
    service.advance_clock(-9 * Millis::DAY);
    service.order(&production, "EC-LATE-0001").await;
    service.order(&sandbox, "SB-NORMAL-0001").await;
    service.advance_clock(4 * Millis::DAY);
    service.order(&production, "EC-EARLY-0001").await;
    let member = service.member("default").await;
    let text = "Parcels past the promised day (Label generated): ";
    assert!(!member.page("/dashboard").await.contains(text));
    service.clock.set(NOW);
    let member = service.member("default").await;
    let html = member.page("/dashboard").await;
    assert!(html.contains(&format!("{text}1 ")), "the sandbox parcel is not counted: {html}");
    let link = "/dashboard/parcels?environment=production&#38;status=LABEL_GENERATED&#38;from=";
    assert!(html.contains(link), "{html}");
    let html = member.page("/dashboard?lang=es").await;
    let late = "Paquetes con la fecha prometida vencida (Etiqueta generada): 1";
    assert!(html.contains(late), "{html}");
}

#[tokio::test]
async fn a_key_shows_the_day_of_its_last_use() {
    let service = TestService::new().await;
    let caller = service.key_named("default", Environment::Sandbox, "Shop").await;
    service.key_named("default", Environment::Sandbox, "Spare").await;
    let member = service.member("default").await;
    let html = member.page("/dashboard/keys").await;
    assert_eq!(html.matches("<dd>Never</dd>").count(), 2, "{html}");
    service.service.record_key_use(&caller, NOW);
    service.service.record_key_use(&caller, NOW.plus(-Millis::DAY));
    let html = member.page("/dashboard/keys").await;
    let (_, shop) = html.split_once("<h2>Shop</h2>").unwrap();
    let used = "<dt>Last used</dt><dd><time datetime=\"2026-01-30\">2026-01-30</time></dd>";
    assert!(shop.contains(used), "{html}");
    assert_eq!(html.matches("<dd>Never</dd>").count(), 1);
    assert!(member.page("/dashboard/keys?lang=es").await.contains("<dt>Último uso</dt>"));
}

#[tokio::test]
async fn an_event_page_shows_the_request_without_signature() {
    let (service, member, caller) = TestService::with_member_and_key().await;
    let page = "/dashboard/webhooks/sandbox";
    member.post(page, &[("url", "http://127.0.0.1:9/hook")]).await;
    service.order(&caller, "SB-NORMAL-0001").await;
    let html = member.page(page).await;
    let (_, rest) = html.split_once(&format!("href=\"{page}/events/")).unwrap();
    let event = rest.split('"').next().unwrap().to_owned();
    let request = format!("{page}/events/{event}");
    let html = member.page(&request).await;
    for part in [
        &*format!("webhook-id: {event}\n"),
        "content-type: application/json\n",
        "webhook-signature: v1,… (not shown)\n",
        "&#34;event&#34;:&#34;parcel.status_changed&#34;",
        "&#34;trackingNumber&#34;:&#34;SB-NORMAL-0001&#34;",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    assert!(member.page(&format!("{request}?lang=es")).await.contains("(no se muestra)"));
    service.set_password("other").await;
    assert_eq!(service.member("other").await.get(&request).await.status, 404);
    for unknown in ["evt_7", "7", "evt_01ARZ3NDEKTSV4RRFFQ69G5FAV"] {
        assert_eq!(member.get(&format!("{page}/events/{unknown}")).await.status, 404, "{unknown}");
    }
}

#[tokio::test]
async fn a_parcel_page_lists_its_webhook_events_to_its_owner() {
    const PAGE: &str = "/dashboard/parcels/sandbox/SB-SUCCESS-0001";
    let (test, mut member, caller) = TestService::with_member_and_key().await;
    test.order(&caller, "SB-SUCCESS-0001").await;
    assert!(!member.page(PAGE).await.contains("Webhook events"), "the section is for webhooks");
    webhook_with_event(&test, caller.tenant()).await;
    deliver(&test, 204).await;
    test.advance_clock(60 * 60_000);
    let listed = async |member: &Visitor, heading| {
        let html = member.page(PAGE).await;
        html.split_once(heading).unwrap_or_else(|| panic!("{html}")).1.to_owned()
    };
    let english = listed(&member, "Webhook events").await;
    assert!(english.contains("parcel.") && english.contains("Waiting"), "{english}");
    assert!(!english.contains("webhook.test"), "an event of no parcel: {english}");
    let (_, event) = english.split_once("href=\"/dashboard/webhooks/sandbox/events/").unwrap();
    let event = format!("/dashboard/webhooks/sandbox/events/{}", event.split_once('"').unwrap().0);
    assert!(member.page(&event).await.contains("SB-SUCCESS-0001"));
    member.language = "es";
    assert!(listed(&member, "Eventos del webhook").await.contains("En espera"));
    test.set_password("other").await;
    let stranger = test.member("other").await;
    for page in [PAGE, &event] {
        assert_eq!(stranger.get(page).await.status, 404, "{page}");
    }
}

#[tokio::test]
async fn the_overview_says_that_a_webhook_was_turned_off() {
    let (service, caller) = TestService::with_key().await;
    let tenant = caller.tenant();
    let member = service.member("default").await;
    let (en, es) = ("the webhook is off", "el webhook está desactivado");
    disable_webhook_by_410(&service, tenant).await;
    service.order(&caller, "SB-NORMAL-0001").await;
    let html = member.page("/dashboard").await;
    assert!(html.contains(&format!("Sandbox: {en}")), "{html}");
    assert!(html.contains("it is gone (410)") && html.contains("days: <b>1</b>"), "{html}");
    assert!(html.contains("<a class=\"button\" href=\"/dashboard/webhooks/sandbox\">"), "{html}");
    let html = member.page("/dashboard?lang=es").await;
    assert!(html.contains(&format!("Pruebas: {es}")), "{html}");
    assert!(html.contains("ya no existe (410)"), "{html}");
    service.service.endpoints(Actor::Server).enable(tenant).await.unwrap();
    assert!(!member.page("/dashboard?lang=en").await.contains(en));
    service.service.endpoints(Actor::Server).disable(tenant).await.unwrap();
    let shown = member.page("/dashboard").await;
    assert!(!shown.contains(en), "no notice to the user who turned it off");
}

#[tokio::test]
async fn a_parcel_page_shows_history_order_and_label() {
    let (service, caller) = TestService::with_key().await;
    let (order, _) = marked_order("SB-SUCCESS-0001");
    service.create(&caller, &order).await;
    service.advance_clock(12 * Millis::MINUTE);
    let member = service.member("default").await;
    let path = "/dashboard/parcels/sandbox/SB-SUCCESS-0001";
    let html = member.page(path).await;
    for word in [
        "In transit",
        "Quito, EC",
        "Ecuador",
        "CanaryOrder",
        "2026-01-30 15:20",
        "https://sandbox.parcelo.example/track/SB-SUCCESS-0001",
    ] {
        assert!(html.contains(word), "{word}: {html}");
    }
    for (file, begin, kind) in [
        ("png", &b"\x89PNG"[..], "image/png"),
        ("pdf", b"%PDF", "application/pdf"),
        ("zpl", b"^XA", "text/plain"),
    ] {
        let response = member.get(&format!("{path}/label.{file}")).await;
        assert!(response.bytes.starts_with(begin), "{file}");
        let content_type = response.header("content-type");
        assert!(content_type.starts_with(kind), "{content_type}");
        let disposition = if file == "png" { "inline" } else { "attachment" };
        assert!(response.header("content-disposition").starts_with(disposition));
        assert_safe(&response);
    }
    let void =
        serde_json::json!({ "idempotencyKey": "void-0002", "trackingNumbers": ["SB-NORMAL-0002"] });
    service.order(&caller, "SB-NORMAL-0002").await;
    let keyed = parcelo_server::internals::KeyedRequest {
        body: &void,
        header_key: None,
        request_id: "req_1",
    };
    service.service.void_orders(&caller, keyed).await.unwrap();
    let html = member.page("/dashboard/parcels/sandbox/SB-NORMAL-0002").await;
    assert!(html.contains("and its label with it") && !html.contains("<img"));
}

#[tokio::test]
async fn a_parcel_is_late_once_its_promised_day_has_passed() {
    let (service, caller) = TestService::with_key().await;
    service.order(&caller, "SB-NORMAL-0001").await;
    let member = service.member("default").await;
    let pages =
        ["/dashboard/parcels?environment=sandbox", "/dashboard/parcels/sandbox/SB-NORMAL-0001"];
    for path in pages {
        let html = member.page(path).await;
        assert!(html.contains("expected on 2026-02-07") && !html.contains("late,"), "{path}");
    }
    service.advance_clock(9 * Millis::DAY);
    // The session of nine days ago is over.
    let mut member = service.member("default").await;
    for path in pages {
        let html = member.page(path).await;
        assert!(html.contains("late, expected on 2026-02-07"), "{path}: {html}");
    }
    member.language = "es";
    let html = member.page(pages[0]).await;
    assert!(html.contains("con retraso, se esperaba el 2026-02-07"), "{html}");
}

#[tokio::test]
async fn a_long_list_is_paginated() {
    let (service, caller) = TestService::with_key().await;
    for count in 0..30 {
        service.advance_clock(1_000);
        service.order(&caller, &format!("SB-NORMAL-00{count:02}")).await;
    }
    let member = service.member("default").await;
    let first = member.page("/dashboard/parcels?environment=sandbox").await;
    assert!(first.contains("SB-NORMAL-0029") && !first.contains("SB-NORMAL-0004"));
    assert!(first.contains("rel=\"next\"") && !first.contains("rel=\"prev\""));
    let second = member.page("/dashboard/parcels?environment=sandbox&page=2").await;
    assert!(second.contains("SB-NORMAL-0004") && !second.contains("SB-NORMAL-0005"));
    assert!(second.contains("rel=\"prev\"") && !second.contains("rel=\"next\""));
    let past = member.page("/dashboard/parcels?environment=sandbox&page=999999").await;
    assert!(past.contains("No parcels match."));
}

#[tokio::test]
async fn keys_are_paginated_with_new_ones_on_the_first_page() {
    let service = TestService::new().await;
    for count in 0..60 {
        service.advance_clock(1_000);
        service.key_named("default", Environment::Sandbox, &format!("Shop {count:02}")).await;
    }
    let member = service.member("default").await;
    let first = member.page("/dashboard/keys").await;
    assert!(first.contains("Shop 59") && first.contains("Shop 10") && !first.contains("Shop 09"));
    assert!(first.contains("href=\"/dashboard/keys?page=2\" rel=\"next\""), "{first}");
    let second = member.page("/dashboard/keys?page=2").await;
    assert!(second.contains("Shop 09") && second.contains("Shop 00"));
    assert!(!second.contains("Shop 10"));
    assert!(second.contains("href=\"/dashboard/keys\" rel=\"prev\""), "{second}");
    assert!(!second.contains("rel=\"next\"") && !first.contains("rel=\"prev\""));
    for odd in ["0", "x", "-1"] {
        assert!(member.page(&format!("/dashboard/keys?page={odd}")).await.contains("Shop 59"));
    }
    let past = member.page("/dashboard/keys?page=9").await;
    assert!(past.contains("Shop 00") && past.contains("rel=\"prev\""), "the last page is shown");
}

#[tokio::test]
async fn legacy_calls_are_counted_at_once() {
    let (service, member) = service_with_data().await;
    let caller = service.key_named("default", Environment::Sandbox, "Old shop").await;
    service.service.count_legacy_use(&caller, NOW);
    service.service.count_legacy_use(&caller, NOW);
    let html = member.page("/dashboard/legacy").await;
    let row = "<td>2026-01-30</td><td>Old shop</td><td class=\"amount\">2</td>";
    assert!(html.contains(row), "{html}");
}

#[tokio::test]
async fn every_text_has_a_contrast_of_at_least_four_and_a_half() {
    let service = TestService::new().await;
    let response = service.visitor().get("/dashboard/style.css").await;
    assert_eq!(response.status, 200);
    assert_eq!(response.header("content-type"), "text/css; charset=utf-8");
    let style = response.text();
    for night in [false, true] {
        // Each sheet has the day's colours first, then the night's.
        let colour = |name: &str| {
            let name = format!("--{name}: ");
            let mut values = style.split(&name).skip(1);
            let value = values.nth(usize::from(night)).unwrap_or_else(|| panic!("{name}"));
            value.split(';').next().unwrap().to_owned()
        };
        let mut pairs = vec![
            ("ink", "card"),
            ("soft", "card"),
            ("soft", "paper"),
            ("ink", "paper"),
            ("soft", "over-wash"),
            ("strong-ink", "strong"),
            ("danger", "card"),
            ("danger", "failed-wash"),
            ("live-ink", "live"),
            ("test-ink", "test"),
            ("done", "done-wash"),
            ("failed", "failed-wash"),
            ("moving", "card"),
            ("moving", "moving-wash"),
            ("ink", "done-wash"),
            ("ink", "over-wash"),
            ("moving", "paper"),
        ];
        pairs.extend([("waiting", "waiting-wash"), ("over", "over-wash")]);
        for (text, background) in pairs {
            let ratio = contrast(&colour(text), &colour(background));
            assert!(ratio >= 4.5, "{text} on {background}: {ratio:.2}");
        }
        // The edge of a field, and the bars of the chart (WCAG 2.2, 1.4.11).
        for part in ["field", "moving", "waiting", "done", "failed", "over"] {
            assert!(contrast(&colour(part), &colour("card")) >= 3.0, "{part}");
        }
    }
}

#[tokio::test]
async fn no_personal_data_or_secret_is_logged() {
    let setup = TestSetup::new();
    let running = setup.start_with(&[("PARCELO_LOG", "debug")], &[]);
    let output = setup.output();
    let password =
        output.lines().rev().find(|line| line.starts_with("  ")).unwrap().trim().to_owned();
    let key = output.split("pk_test_").nth(1).unwrap().split_whitespace().next().unwrap();
    let key = parcelo::ApiKey::parse(&format!("pk_test_{key}")).unwrap();
    let (order, marks) = marked_order("SB-SUCCESS-0001");
    assert_eq!(running.api(&key).create(&order).await.status, 201);
    let printed = setup.output().lines().count();
    let mut member = Visitor::at(running.url("admin"), "en");
    assert_eq!(member.sign_in("default", &password).await.status, 303);
    Visitor::at(&member.url, "en").sign_in("CanaryAccount", "CanaryPassword").await;
    let secret_of = async |path: &str, fields: &[(&str, &str)]| {
        secret_in(&member.post(path, fields).await.text()).unwrap().to_owned()
    };
    let key = [("name", "CanaryName"), ("environment", "sandbox"), ("countries", "all")];
    let secret = secret_of("/dashboard/keys", &key).await;
    let hook = [("url", "https://canary.example/CanaryUrl")];
    let hook = secret_of("/dashboard/webhooks/production", &hook).await;
    assert!(secret.starts_with("pk_test_") && hook.starts_with("whsec_"));
    for path in [
        "/dashboard/parcels/sandbox/SB-SUCCESS-0001",
        "/dashboard/parcels/sandbox/SB-SUCCESS-0001/label.png",
        "/dashboard?CanaryQuery=1",
        "/dashboard/CanaryPath",
    ] {
        member.get(path).await;
    }
    member.post("/dashboard/parcels", &[("number", "CanarySearch")]).await;
    running.stop();
    let logs: String = setup.output().lines().skip(printed).collect();
    assert!(logs.contains("/dashboard/parcels/{environment}/{number}/{file}"), "{logs}");
    let session = member.session.clone().unwrap();
    let more = ["Canary", "SB-SUCCESS", &password, &secret, &hook, &session, "canary.example"];
    for mark in marks.iter().chain(&more) {
        assert!(!logs.contains(mark), "{mark}: {logs}");
    }
}
