//! GET /track/{trackingNumber}: the public page and its JSON, for anyone who has the number.

use std::time::Duration;

use parcelo::{ApiKey, ParcelStatus, TrackingNumber};
use parcelo_server::mock::MockServer;
use serde_json::{Value, json};

use crate::{
    api::{Api, HttpResponse, order, order_with_number, send, with},
    running::{RunningServer, TestSetup},
};

const NUMBER: &str = "SB-SUCCESS-0001";
const BROWSER: &str = "text/html,application/xhtml+xml,*/*;q=0.8";

/// Starts a server with one parcel in transit, and returns a client without a key.
async fn start_with_parcel() -> (MockServer, Api) {
    let (server, api) = crate::embedded::start_with_key().await;
    api.create_parcel(&order_with_number("order-0001", NUMBER)).await;
    server.clock().advance(Duration::from_secs(12 * 60)).await;
    let visitor = Api::new(server.url());
    (server, visitor)
}

async fn page(visitor: &Api, path: &str, languages: &str) -> HttpResponse {
    let request = visitor.request("GET", path);
    send(request.header("accept", BROWSER).header("accept-language", languages)).await
}

/// Checks the headers that every response below /track has for caches, search engines and browsers.
fn assert_private(response: &HttpResponse) {
    assert_eq!(response.header("cache-control"), "no-store");
    assert_eq!(response.header("x-robots-tag"), "noindex, nofollow");
    assert_eq!(response.header("referrer-policy"), "no-referrer");
    let policy = response.header("content-security-policy");
    let parts: Vec<_> = policy.split("; ").collect();
    // A page with a form may submit it to this site only; pages without a form may not submit any.
    let has_form = response.text().contains("<form");
    let form = if has_form { "form-action 'self'" } else { "form-action 'none'" };
    for part in ["default-src 'none'", "base-uri 'none'", form, "frame-ancestors 'none'"] {
        assert!(parts.contains(&part), "{policy}");
    }
    assert!(!policy.contains("unsafe") && policy.contains("style-src 'sha256-"), "{policy}");
}

#[tokio::test]
async fn a_program_gets_only_the_public_part_of_the_record() {
    let (_server, visitor) = start_with_parcel().await;
    for path in ["/track/SB-SUCCESS-0001", "/track/sb-success-0001?format=json"] {
        let response = visitor.get(path).await;
        assert_eq!((response.status, response.header("content-type")), (200, "application/json"));
        assert_eq!(response.header("x-ratelimit-limit"), "10", "pages a second, by default");
        assert_private(&response);
        let event = |status: &str, name: &str, time: &str, location: &str| {
            json!({ "status": status, "statusName": name, "location": location,
                "timestamp": format!("2026-01-05T08:{time}:00.000Z") })
        };
        let expected = json!({
            "trackingNumber": NUMBER, "status": "IN_TRANSIT", "statusName": "In transit",
            "estimatedDelivery": "2026-01-13T23:59:59-05:00",
            "arrival": { "kind": "EXPECTED", "date": "2026-01-13" },
            "history": [
                event("ORDERED", "Order created", "00", "Miami, US"),
                event("LABEL_GENERATED", "Label generated", "00", "Miami, US"),
                event("CUSTOMS_CLEARANCE", "In customs clearance", "05", "Quito, EC"),
                event("IN_TRANSIT", "In transit", "10", "Quito, EC"),
            ],
        });
        assert_eq!(response.json(), expected, "{path}");
    }
}

#[tokio::test]
async fn a_browser_gets_a_page_in_its_or_the_requested_language() {
    let (_server, visitor) = start_with_parcel().await;
    let table = [
        (NUMBER, "en", "en", ["In transit", "Estimated delivery", "Tuesday, January 13, 2026"]),
        (
            NUMBER,
            "es-EC,en;q=0.5",
            "es",
            ["En tránsito", "Entrega estimada", "martes, 13 de enero"],
        ),
        ("SB-SUCCESS-0001?lang=es", "en", "es", ["En tránsito", "Historial", "Miami, US"]),
        ("SB-SUCCESS-0001?lang=en", "es", "en", ["In transit", "History", "Quito, EC"]),
    ];
    for (path, languages, language, words) in table {
        let response = page(&visitor, &format!("/track/{path}"), languages).await;
        assert_eq!(response.status, 200);
        assert_eq!(response.header("content-type"), "text/html; charset=utf-8");
        assert_eq!(response.header("content-language"), language, "{path}");
        assert_private(&response);
        let html = response.text();
        assert!(html.contains(&format!("<html lang=\"{language}\">")), "{path}");
        for word in words.iter().chain(&[NUMBER, "SANDBOX"]) {
            assert!(html.contains(word), "{path}: {word}");
        }
    }
}

#[tokio::test]
async fn the_page_has_landmarks_no_script_and_loads_nothing() {
    let (_server, visitor) = start_with_parcel().await;
    for path in
        ["/track/SB-SUCCESS-0001", "/track/SB-ABSENT-0001", "/", "/track", "/track?number=x"]
    {
        let html = page(&visitor, path, "en").await.text();
        for part in ["<header", "<nav aria-label=", "<main", "<footer", "<h1", "name=\"viewport\""]
        {
            assert_eq!(html.matches(part).count(), 1, "{path}: {part}");
        }
        for foreign in ["<script", " src=", "@import", "url(", " onload"] {
            assert!(!html.contains(foreign), "{path}: {foreign}");
        }
        let links: Vec<_> = html.split("href=\"").skip(1).collect();
        let is_own = |link: &&str| ["?", "/track", "data:"].iter().any(|own| link.starts_with(own));
        assert!(links.iter().all(is_own), "{path}: {links:?}");
    }
}

#[tokio::test]
async fn an_unknown_or_invalid_number_is_404_as_page_and_envelope() {
    let (_server, visitor) = start_with_parcel().await;
    let hostile = "%3Cscript%3Ealert(1)%3C%2Fscript%3E";
    for number in ["SB-ABSENT-0001", "short", "%00%ff", "%C3%91andu", hostile] {
        let path = format!("/track/{number}");
        let json = visitor.get(&path).await;
        assert_eq!(json.refusal(), (404, "PARCEL_NOT_FOUND"), "{number}");
        assert_private(&json);
        let english = page(&visitor, &path, "en").await;
        assert_eq!(english.status, 404);
        assert_eq!(english.header("content-type"), "text/html; charset=utf-8");
        assert!(english.text().contains("We cannot find this parcel"), "{number}");
        assert!(!english.text().contains("<script"), "{number}");
        assert_private(&english);
        let spanish = page(&visitor, &path, "es").await.text();
        assert!(spanish.contains("No encontramos este paquete"), "{number}");
    }
}

/// Creates a parcel without a simulated journey. A carrier scanned it last at noon of this day in Quito.
async fn start_with_stuck_parcel(status: ParcelStatus, day: &str) -> (MockServer, Api) {
    let (server, api) = crate::embedded::start_with_key().await;
    api.create_parcel(&order_with_number("order-0001", STUCK_NUMBER)).await;
    server.clock().set(&format!("{day}T17:00:00Z")).await;
    server.put_status(&TrackingNumber::parse(STUCK_NUMBER).unwrap(), status).await.unwrap();
    let visitor = Api::new(server.url());
    (server, visitor)
}

const STUCK_NUMBER: &str = "SB-NORMAL-0001";

/// Returns the text of a page between two strings.
fn text_between<'a>(html: &'a str, begin: &str, end: &str) -> &'a str {
    let rest = html.split_once(begin).map_or("", |(_, rest)| rest);
    rest.split_once(end).map_or("", |(inner, _)| inner)
}

/// Returns the text about the arrival on the page, without tags.
async fn arrival_text(visitor: &Api, language: &str) -> String {
    let html = page(visitor, &format!("/track/{STUCK_NUMBER}"), language).await.text();
    let inside = text_between(&html, "<dl class=\"arrival", "</dl>");
    let texts = inside.split('<').skip(1).filter_map(|part| part.split_once('>'));
    let texts: Vec<_> =
        texts.map(|(_, text)| text.trim()).filter(|text| !text.is_empty()).collect();
    texts.join(" | ")
}

#[tokio::test]
async fn a_promised_day_that_has_passed_is_a_delay() {
    let (server, visitor) = start_with_stuck_parcel(ParcelStatus::InTransit, "2026-01-08").await;
    let estimate = "Estimated delivery | Tuesday, January 13, 2026 | By the end of the day";
    assert_eq!(arrival_text(&visitor, "en").await, estimate);
    server.clock().set("2026-01-26T12:00:00Z").await;
    let late = "Delayed: expected on | Tuesday, January 13, 2026 | The new date is not known yet.";
    assert_eq!(arrival_text(&visitor, "en").await, late);
    let late = "Con retraso: se esperaba el | martes, 13 de enero de 2026 | Todavía no se conoce la nueva fecha.";
    assert_eq!(arrival_text(&visitor, "es").await, late);
    let record = visitor.get(&format!("/track/{STUCK_NUMBER}")).await.json();
    assert_eq!(record["arrival"], json!({ "kind": "DELAYED", "date": "2026-01-13" }));
    assert_eq!(record["estimatedDelivery"], "2026-01-13T23:59:59-05:00", "it never changes");
}

#[tokio::test]
async fn a_parcel_out_for_delivery_arrives_today() {
    let (server, visitor) =
        start_with_stuck_parcel(ParcelStatus::OutForDelivery, "2026-01-06").await;
    let today = "Estimated delivery | Today | Tuesday, January 6, 2026 | By the end of the day";
    assert_eq!(arrival_text(&visitor, "en").await, today);
    let html = page(&visitor, &format!("/track/{STUCK_NUMBER}"), "en").await.text();
    assert!(!html.contains("January 13") && !html.contains("arrive soon"), "{html}");
    // After midnight in UTC it is still the evening before in Quito.
    server.clock().set("2026-01-07T03:00:00Z").await;
    assert_eq!(arrival_text(&visitor, "en").await, today);
    server.clock().set("2026-01-07T12:00:00Z").await;
    let late = "Delayed: expected on | Tuesday, January 6, 2026 | The new date is not known yet.";
    assert_eq!(arrival_text(&visitor, "en").await, late);
}

#[tokio::test]
async fn no_day_is_promised_for_held_missed_or_returning_parcels() {
    let table = [
        (ParcelStatus::CustomsHold, "an identity document"),
        (ParcelStatus::DeliveryAttempted, "before the next attempt"),
        (ParcelStatus::DeliveryFailed, "another delivery can still be arranged"),
        (ParcelStatus::ReturnToSender, "a refund"),
    ];
    for (status, advice) in table {
        let (_server, visitor) = start_with_stuck_parcel(status.clone(), "2026-01-08").await;
        assert_eq!(arrival_text(&visitor, "en").await, "", "{status}");
        let html = page(&visitor, &format!("/track/{STUCK_NUMBER}"), "en").await.text();
        assert!(html.contains("What you can do") && html.contains(advice), "{status}");
        let record = visitor.get(&format!("/track/{STUCK_NUMBER}")).await.json();
        assert_eq!(record.get("arrival"), None, "{status}");
    }
    let (_server, visitor) = start_with_stuck_parcel(ParcelStatus::Delivered, "2026-01-08").await;
    assert_eq!(arrival_text(&visitor, "en").await, "Delivered on | Thursday, January 8, 2026");
}

#[tokio::test]
async fn a_page_reloads_itself_until_the_journey_has_ended() {
    let table = [
        (ParcelStatus::LabelGenerated, true),
        (ParcelStatus::InTransit, true),
        (ParcelStatus::CustomsHold, true),
        (ParcelStatus::DeliveryFailed, true),
        (ParcelStatus::Delivered, false),
        (ParcelStatus::ReturnToSender, false),
    ];
    for (status, reloads) in table {
        let (server, visitor) = start_with_stuck_parcel(status.clone(), "2026-01-08").await;
        // It is the evening of the ninth in Quito.
        server.clock().set("2026-01-10T03:20:00Z").await;
        let shown = page(&visitor, &format!("/track/{STUCK_NUMBER}"), "en").await;
        assert_eq!(shown.header("refresh"), if reloads { "300" } else { "" }, "{status}");
        let html = shown.text();
        let updated = text_between(&html, "<p class=\"updated\">", "</p>");
        let expected = "Last updated: <time datetime=\"2026-01-10T03:20:00.000Z\">Friday, January 9, 2026, 22:20</time>. This page updates itself every five minutes.";
        assert_eq!(updated, if reloads { expected } else { "" }, "{status}");
        let json = visitor.get(&format!("/track/{STUCK_NUMBER}")).await;
        assert_eq!(json.header("refresh"), "", "{status}");
    }
    let (_server, visitor) = start_with_stuck_parcel(ParcelStatus::InTransit, "2026-01-08").await;
    let html = page(&visitor, &format!("/track/{STUCK_NUMBER}"), "es").await.text();
    assert!(html.contains("Esta página se actualiza sola cada cinco minutos."), "{html}");
}

#[tokio::test]
async fn the_start_page_accepts_a_number_as_people_type_it() {
    let (_server, visitor) = start_with_parcel().await;
    for path in ["/", "/track", "/track/", "/?lang=es", "/track?number=", "/track?number=+"] {
        let response = page(&visitor, path, "en").await;
        assert_eq!(response.status, 200, "{path}");
        assert_private(&response);
        let html = response.text();
        assert!(html.contains("action=\"/track\"") && html.contains("name=\"number\""), "{path}");
        assert!(html.contains("<label for=\"typed\">") && html.contains("id=\"typed\""), "{path}");
        let home = if path.ends_with("?lang=es") { "/track?lang=es" } else { "/track" };
        assert!(html.contains(&format!("class=\"brand\" href=\"{home}\"")), "{path}: {html}");
    }
    let typed = [
        ("SB-SUCCESS-0001", "SB-SUCCESS-0001"),
        (" sb-success-0001 ", "SB-SUCCESS-0001"),
        ("EC7K 2M9Q.X4T8/WD0", "EC7K2M9QX4T8WD0"),
        ("https://parcelo.example/track/ec7k2m9qx4t8wd0?lang=es", "EC7K2M9QX4T8WD0"),
    ];
    for (typed, number) in typed {
        let response = request_page(&visitor, typed, "").await;
        let expected = (303, format!("/track/{number}"));
        assert_eq!((response.status, response.header("location").to_owned()), expected, "{typed}");
        assert_private(&response);
    }
    let response = request_page(&visitor, "SB-SUCCESS-0001", "&lang=es").await;
    assert_eq!(response.header("location"), "/track/SB-SUCCESS-0001?lang=es");
    // The link in a message includes the full stop of its sentence.
    let dotted = page_at(&visitor, "/track/sb-success-0001.").await;
    assert_eq!(dotted.header("location"), "/track/SB-SUCCESS-0001");
    // The JSON for programs does not change.
    for path in ["/", "/track", "/track?number=SB-SUCCESS-0001"] {
        assert_eq!(visitor.get(path).await.refusal(), (404, "NOT_FOUND"), "{path}");
    }
}

/// Requests a page without following its redirect.
async fn page_at(visitor: &Api, path: &str) -> HttpResponse {
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
    let url = visitor.request("GET", path).build().unwrap().url().clone();
    send(client.build().unwrap().get(url).header("accept", BROWSER)).await
}

async fn request_page(visitor: &Api, typed: &str, more: &str) -> HttpResponse {
    let typed: String = url::form_urlencoded::byte_serialize(typed.as_bytes()).collect();
    page_at(visitor, &format!("/track?number={typed}{more}")).await
}

#[tokio::test]
async fn a_number_that_is_not_found_can_be_corrected() {
    let (_server, visitor) = start_with_parcel().await;
    let table = [
        ("/track/SB-ABSENT-0001", "SB-ABSENT-0001", "No parcel has the tracking number"),
        ("/track?number=SB-SUCESS", "SB-SUCESS", "This is not a tracking number."),
        (
            "/track/Quito%20%26%20caf%C3%A9=1%2B1",
            "Quito &#38; café=1+1",
            "This is not a tracking number.",
        ),
        ("/track?number=%22%3E%3Cscript%3E", "&#34;&#62;&#60;script&#62;", "This is not"),
        ("/track/SB/nowhere", "SB/nowhere", "This is not a tracking number."),
    ];
    for (path, value, text) in table {
        let response = page(&visitor, path, "en").await;
        assert_eq!(response.status, 404, "{path}");
        assert_private(&response);
        let html = response.text();
        assert!(html.contains(&format!("value=\"{value}\"")), "{path}: {html}");
        assert!(html.contains(text) && html.contains("aria-invalid=\"true\""), "{path}: {html}");
    }
    let html = page(&visitor, "/track?number=caf%C3%A9+1", "en").await.text();
    assert!(html.contains("href=\"/track?number=caf%C3%A9+1&#38;lang=es\""), "{html}");
}

#[tokio::test]
async fn a_link_preview_shows_the_number_but_no_status() {
    let (_server, visitor) = start_with_parcel().await;
    let request = visitor.request("GET", "/track/SB-SUCCESS-0001").header("accept", "*/*");
    let preview = send(request.header("user-agent", "WhatsApp/2.23.20.0")).await;
    assert_eq!(preview.header("content-type"), "text/html; charset=utf-8");
    let html = preview.text();
    let shown: Vec<_> = html.lines().filter(|line| line.contains("property=\"og:")).collect();
    assert_eq!(shown.len(), 5, "{shown:?}");
    assert!(shown.iter().any(|line| line.contains("Track parcel SB-SUCCESS-0001")), "{shown:?}");
    // A messenger keeps a preview indefinitely, so a status in it would soon be wrong.
    assert!(!shown.iter().any(|line| line.contains("transit") || line.contains("2026")));
}

#[tokio::test]
async fn the_shop_is_named_with_its_contact() {
    let (setup, running, key) = setup("sandbox", &[]);
    running.api(&key).create_parcel(&order_with_number("order-0001", "SB-SUCCESS-0001")).await;
    let visitor = Api::new(running.sandbox());
    let bare = page(&visitor, "/track/SB-SUCCESS-0001", "en").await.text();
    assert!(!bare.contains("Sent by"), "{bare}");
    let (name, contact) = ("Café <i>Quito</i>", "https://cafe.example/help?a=1&b=2");
    let set = setup.admin("accounts", &["shop", "--shop-name", name, "--contact", contact]);
    assert_eq!(set, json!({ "account": "default", "shopName": name, "contact": contact }));
    assert_eq!(setup.admin("accounts", &["shop"]), set, "showing it changes nothing");
    let (is_done, reason) = setup.try_admin(&["accounts", "shop", "nosuch"]);
    assert!(!is_done && reason.contains("no account is named nosuch"), "{reason}");
    let accounts = setup.admin("accounts", &["list"]).to_string();
    assert!(!accounts.contains("nosuch"), "showing a shop creates no account");
    let html = page(&visitor, "/track/SB-SUCCESS-0001", "en").await.text();
    let shop = text_between(&html, "<p class=\"shop\">", "</p>");
    let escaped = "Café &#60;i&#62;Quito&#60;/i&#62;";
    assert!(shop.contains(&format!("Sent by <b translate=\"no\">{escaped}</b>")), "{shop}");
    assert!(shop.contains("href=\"https://cafe.example/help?a=1&#38;b=2\""), "{shop}");
    assert!(shop.contains(">cafe.example/help</a>"), "{shop}");
    assert!(html.contains(&format!("og:site_name\" content=\"{escaped}\"")), "{html}");
    // Parcels of another account do not show it.
    let other = setup.new_key_with("sandbox", &["--account", "other"]).1;
    running.api(&other).create_parcel(&order_with_number("order-0001", "SB-NORMAL-0002")).await;
    assert!(!page(&visitor, "/track/SB-NORMAL-0002", "en").await.text().contains("Caf"));
}

#[tokio::test]
async fn another_method_is_405_and_head_is_get_without_a_body() {
    let (_server, visitor) = start_with_parcel().await;
    let posted = send(visitor.request("POST", "/track/SB-SUCCESS-0001")).await;
    assert_eq!(posted.refusal(), (405, "METHOD_NOT_ALLOWED"));
    assert_eq!(posted.header("allow"), "GET,HEAD");
    let browser = visitor.request("POST", "/track/SB-SUCCESS-0001").header("accept", BROWSER);
    let shown = send(browser).await;
    assert_eq!((shown.status, shown.header("allow")), (405, "GET,HEAD"));
    assert!(shown.text().contains("We cannot show the parcel right now"));
    assert_private(&shown);
    let head = send(visitor.request("HEAD", "/track/SB-SUCCESS-0001")).await;
    assert_eq!((head.status, head.bytes.len()), (200, 0));
}

#[tokio::test]
async fn parcels_of_any_account_are_shown_and_voided_ones_too() {
    let server = crate::embedded::start().await;
    let api = Api::with_key(server.url(), &server.key().account("other").issue());
    let number = api.create_parcel(&order("order-0001")).await;
    let void = json!({ "idempotencyKey": "void-0001", "trackingNumbers": [number], "reason": "PRIVATE reason" });
    assert_eq!(api.post("/api/v1/orders/void", &void).await.status, 200);
    let visitor = Api::new(server.url());
    let html = page(&visitor, &format!("/track/{number}"), "en").await.text();
    assert!(
        html.contains("Cancelled")
            && !html.contains("Voided")
            && !html.contains("Estimated delivery"),
        "{html}"
    );
    let json = visitor.get(&format!("/track/{number}")).await.text();
    assert!(json.contains("VOIDED") && !json.contains("PRIVATE") && !html.contains("PRIVATE"));
}

/// Returns an order with a unique text in every text field about people or goods, and those texts.
fn marked_order() -> (Value, Vec<String>) {
    let mut marked_order = order_with_number("order-0001", NUMBER);
    let mut marks = Vec::new();
    let fields = [
        "/externalOrderId",
        "/customerReference",
        "/sender/fullName",
        "/sender/companyName",
        "/sender/address/line1",
        "/sender/address/line2",
        "/sender/address/zipCode",
        "/receiver/fullName",
        "/receiver/address/deliveryInstructions",
        "/receiver/address/line1",
        "/customsInfo/description",
    ];
    for (index, field) in fields.into_iter().enumerate() {
        let mark = format!("Canary{index}x");
        marked_order = with(marked_order, field, json!(mark));
        marks.push(mark);
    }
    marked_order = with(marked_order, "/sender/email", json!("canary-a@example.com"));
    marked_order = with(marked_order, "/receiver/email", json!("canary-b@example.com"));
    let product = json!([{ "description": "CanaryProduct", "quantity": 1, "unitFobValue": 45.5, "sku": "CanarySku" }]);
    marked_order = with(marked_order, "/products", product);
    let more = [
        "canary-a@example.com",
        "canary-b@example.com",
        "CanaryProduct",
        "CanarySku",
        "13055550100",
        "593991234567",
        "1714307103",
        "170515",
        "Pichincha",
    ];
    marks.extend(more.map(str::to_owned));
    (marked_order, marks)
}

/// Starts a server, and creates a key for an environment.
fn setup(environment: &str, arguments: &[&str]) -> (TestSetup, RunningServer, ApiKey) {
    let setup = TestSetup::new();
    let (_, key) = setup.new_key(environment);
    let running = setup.start_with(&[("PARCELO_LOG", "debug")], arguments);
    (setup, running, key)
}

#[tokio::test]
async fn no_personal_text_reaches_the_page_its_json_or_the_logs() {
    let (marked_order, marks) = marked_order();
    let (setup, running, key) = setup("sandbox", &[]);
    let created = running.api(&key).create(&marked_order).await;
    assert_eq!(created.status, 201, "{}", created.text());
    assert!(!created.text().contains("UNKNOWN_FIELD"), "no field: {}", created.text());
    let visitor = Api::new(running.sandbox());
    let lost = page(&visitor, "/track/Canary-of-a-visitor", "en").await.text();
    let typed = request_page(&visitor, NUMBER, "").await;
    assert_eq!(typed.status, 303, "a number in the form is in no log either");
    let shown = [
        page(&visitor, "/track/SB-SUCCESS-0001", "en").await.text(),
        page(&visitor, "/track/SB-SUCCESS-0001", "es").await.text(),
        visitor.get("/track/SB-SUCCESS-0001").await.text(),
        lost.replace("Canary-of-a-visitor", ""),
    ];
    running.stop();
    let [english, spanish, record, lost] = shown;
    let seen = [english, spanish, record, lost, setup.output()];
    assert!(seen.iter().all(|text| !text.is_empty()));
    assert!(seen[4].contains("/track/{trackingNumber}"), "visits are logged: {}", seen[4]);
    for mark in marks.iter().map(String::as_str).chain(["Canary-of"]) {
        let places: Vec<_> = seen.iter().filter(|text| text.contains(mark)).collect();
        assert!(places.is_empty(), "{mark}: {places:?}");
    }
    // The number is on the page and in its JSON, but in no log.
    assert_eq!(seen.map(|text| text.contains(NUMBER)), [true, true, true, false, false]);
}

#[tokio::test]
async fn production_has_no_sandbox_banner() {
    let (_setup, running, key) = setup("production", &[]);
    let api = Api::with_key(running.url("production"), &key);
    let number = api.create_parcel(&order("order-0001")).await;
    let visitor = Api::new(running.url("production"));
    let html = page(&visitor, &format!("/track/{number}"), "en").await.text();
    assert!(html.contains(&number) && !html.contains("SANDBOX"), "{html}");
    let sandbox = Api::new(running.sandbox());
    assert_eq!(sandbox.get(&format!("/track/{number}")).await.refusal().0, 404);
}

#[tokio::test]
async fn too_many_visits_from_an_ip_address_get_a_retry_after() {
    let (_setup, running, _key) = setup("sandbox", &["--public-rate-limit", "1"]);
    let visitor = Api::new(running.sandbox());
    let mut refused = Vec::new();
    while refused.len() < 2 {
        let response = page(&visitor, "/track/SB-ABSENT-0001", "es").await;
        assert_eq!(response.header("x-ratelimit-limit"), "1");
        if response.status == 429 {
            refused.push(response);
        }
    }
    for response in refused {
        assert_eq!(response.header("retry-after"), "1");
        assert_private(&response);
        assert!(response.text().contains("Demasiadas solicitudes"), "{}", response.text());
    }
    // The API and its strangers have separate limits.
    assert_eq!(visitor.get("/openapi.json").await.header("x-ratelimit-limit"), "50");
}

/// Returns the relative luminance of a colour such as `#17202e` (WCAG 2.2).
fn luminance(colour: &str) -> f64 {
    let channel = |at: usize| {
        let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
}

pub(crate) fn contrast(one: &str, other: &str) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

#[tokio::test]
async fn every_text_has_a_contrast_of_at_least_four_and_a_half() {
    let (_server, visitor) = start_with_parcel().await;
    let html = page(&visitor, "/track/SB-SUCCESS-0001", "en").await.text();
    let (day, night) = html.split_once("@media (prefers-color-scheme: dark)").unwrap();
    let moods = ["moving", "waiting", "done", "failed", "over"];
    for style in [day, night] {
        let colour = |name: &str| {
            let value = style.split_once(&format!("--{name}: ")).unwrap().1;
            value.split(';').next().unwrap().to_owned()
        };
        let mut pairs =
            vec![("ink", "card"), ("soft", "card"), ("soft", "paper"), ("ink", "paper")];
        pairs.extend([("test-ink", "test"), ("ink", "over-wash")]);
        pairs.extend(moods.map(|mood| (mood, "card")));
        let washes = moods.map(|mood| format!("{mood}-wash"));
        pairs.extend(moods.iter().zip(&washes).map(|(mood, wash)| (*mood, wash.as_str())));
        pairs.extend(washes.iter().map(|wash| ("ink", wash.as_str())));
        for (text, ground) in pairs {
            let ratio = contrast(&colour(text), &colour(ground));
            assert!(ratio >= 4.5, "{text} on {ground}: {ratio:.2}");
        }
    }
}
