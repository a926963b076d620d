//! What the owner of an account does on the dashboard: read a parcel's page, void, reprint, download lists and labels,
//! and change the password.

use parcelo::Environment;
use parcelo_server::internals::{KeyedRequest, Millis};
use serde_json::json;

use super::service::{PASSWORD, TestService, cookie, token_in};
use crate::api::order_with_number;

const NUMBER: &str = "SB-SUCCESS-0001";
const PAGE: &str = "/dashboard/parcels/sandbox/SB-SUCCESS-0001";

async fn with_parcel() -> TestService {
    let (service, caller) = TestService::with_key().await;
    let mut order = order_with_number("order-0001", NUMBER);
    order["externalOrderId"] = json!("=1+1");
    service.create(&caller, &order).await;
    service
}

#[tokio::test]
async fn a_parcel_page_shows_sender_receiver_and_contents() {
    let service = with_parcel().await;
    let member = service.member("default").await;
    let order = order_with_number("order-0001", NUMBER);
    let page = member.page(PAGE).await;
    let text = |path: &str| order.pointer(path).and_then(|text| text.as_str()).unwrap().to_owned();
    for path in ["/receiver/fullName", "/receiver/address/city", "/sender/fullName"] {
        assert!(page.contains(&text(path)), "{path}");
    }
    assert!(page.contains("=1+1") && page.contains("invoice.pdf"));
    let invoice = member.get(&format!("{PAGE}/invoice.pdf")).await;
    let disposition = "attachment; filename=\"SB-SUCCESS-0001-invoice.pdf\"";
    assert_eq!(invoice.header("content-disposition"), disposition);
    assert!(invoice.bytes.starts_with(b"%PDF-"));
}

#[tokio::test]
async fn an_order_is_voided_once_and_loses_its_label() {
    let service = with_parcel().await;
    let member = service.member("default").await;
    for _ in 0..2 {
        let response = member.post(PAGE, &[("action", "void")]).await;
        assert_eq!((response.status, response.header("location")), (303, PAGE));
        let page = member.page(PAGE).await;
        assert!(page.contains("The order is voided") && !page.contains("value=\"void\""));
        assert!(!page.contains("Promised day"), "it will not arrive");
    }
    assert_eq!(member.get(&format!("{PAGE}/label.pdf")).await.status, 409);
    let refused = member.post(PAGE, &[("action", "reprint")]).await;
    assert_eq!(refused.status, 409, "{}", refused.text());
    assert_eq!(member.post(PAGE, &[("action", "burn")]).await.status, 404);
    let other = "/dashboard/parcels/production/SB-SUCCESS-0001";
    assert_eq!(member.post(other, &[("action", "void")]).await.status, 404);
}

#[tokio::test]
async fn a_parcel_in_transit_cannot_be_voided() {
    let service = with_parcel().await;
    let member = service.member("default").await;
    service.advance_clock(30 * Millis::DAY);
    let mut member_later = member.clone();
    assert_eq!(member_later.sign_in("default", PASSWORD).await.status, 303);
    assert!(!member_later.page(PAGE).await.contains("value=\"void\""));
    assert_eq!(member_later.post(PAGE, &[("action", "void")]).await.status, 409);
}

#[tokio::test]
async fn a_reprint_creates_a_new_version_of_the_label() {
    let service = with_parcel().await;
    let member = service.member("default").await;
    let before = member.get(&format!("{PAGE}/label.zpl")).await.bytes;
    assert_eq!(member.post(PAGE, &[("action", "reprint")]).await.status, 303);
    assert!(member.page(PAGE).await.contains("The label has a new version"));
    assert_ne!(member.get(&format!("{PAGE}/label.zpl")).await.bytes, before);
}

#[tokio::test]
async fn an_order_of_another_account_is_not_voided_or_exported() {
    let service = with_parcel().await;
    service.set_password("other").await;
    let stranger = service.member("other").await;
    assert_eq!(stranger.post(PAGE, &[("action", "void")]).await.status, 404);
    assert_eq!(stranger.get(&format!("{PAGE}/invoice.pdf")).await.status, 404);
    let file = stranger.page("/dashboard/parcels.csv?environment=sandbox").await;
    assert_eq!(file.lines().count(), 1, "{file}");
}

#[tokio::test]
async fn the_csv_of_a_search_has_all_its_parcels_and_no_formula() {
    let service = with_parcel().await;
    let caller = service.key("default", Environment::Sandbox).await;
    for index in 0..120 {
        service.order(&caller, &format!("SB-NORMAL-{index:04}")).await;
    }
    let member = service.member("default").await;
    let list = member.page("/dashboard/parcels?environment=sandbox").await;
    assert!(list.contains("/dashboard/parcels.csv?environment=sandbox"));
    let response = member.get("/dashboard/parcels.csv?environment=sandbox").await;
    assert_eq!(response.header("content-type"), "text/csv; charset=utf-8");
    let file = response.text();
    assert_eq!(file.lines().count(), 1 + 121);
    let own = file.lines().find(|line| line.starts_with(NUMBER)).unwrap();
    assert!(own.contains(",'=1+1,"), "{own}");
    let none = member.page("/dashboard/parcels.csv?environment=sandbox&status=DELIVERED").await;
    assert_eq!(none.lines().count(), 1);
}

#[tokio::test]
async fn the_labels_of_a_page_or_manifest_are_one_file() {
    let service = with_parcel().await;
    let caller = service.key("default", Environment::Sandbox).await;
    for number in ["SB-NORMAL-0001", "SB-NORMAL-0002"] {
        service.order(&caller, number).await;
    }
    let member = service.member("default").await;
    assert_eq!(member.post(PAGE, &[("action", "void")]).await.status, 303);
    let list = member.page("/dashboard/parcels?environment=sandbox").await;
    for ending in ["pdf", "zpl"] {
        let link = format!("/dashboard/parcels/labels.{ending}?environment=sandbox");
        assert!(list.contains(&link), "{link}");
    }
    let labels = |file: &[u8]| String::from_utf8_lossy(file).matches("^XA").count();
    let page = member.get("/dashboard/parcels/labels.zpl?environment=sandbox").await;
    assert_eq!(labels(&page.bytes), 2, "not that of the voided order");
    assert_eq!(page.header("content-disposition"), "attachment; filename=\"labels.zpl\"");

    let manifest = json!({ "awbNumber": "176-12345675", "trackingNumbers": ["SB-NORMAL-0002"] });
    let request = KeyedRequest { body: &manifest, header_key: None, request_id: "req_1" };
    service.service.submit_manifest(&caller, request).await.unwrap();
    let page = member.page("/dashboard/parcels/sandbox/SB-NORMAL-0002").await;
    let link = "/dashboard/manifests/sandbox/176-12345675/labels.zpl";
    assert!(page.contains(link));
    assert_eq!(labels(&member.get(link).await.bytes), 1);
    let pdf = member.get(&link.replace(".zpl", ".pdf")).await;
    let disposition = "attachment; filename=\"labels-176-12345675.pdf\"";
    assert_eq!(pdf.header("content-disposition"), disposition);
    assert!(pdf.bytes.starts_with(b"%PDF-"));

    service.set_password("other").await;
    let stranger = service.member("other").await;
    assert_eq!(stranger.get(link).await.status, 404);
    for address in [
        "/dashboard/parcels/labels.png?environment=sandbox",
        "/dashboard/parcels/labels.pdf?environment=sandbox&status=VOIDED",
        "/dashboard/manifests/sandbox/176-99999999/labels.pdf",
        "/dashboard/manifests/mars/176-12345675/labels.pdf",
        "/dashboard/manifests/sandbox/x\"y/labels.pdf",
    ] {
        assert_eq!(member.get(address).await.status, 404, "{address}");
    }
}

#[tokio::test]
async fn a_password_change_needs_the_old_one_and_ends_sessions() {
    let service = TestService::new().await;
    let (mut member, other) = (service.member("default").await, service.member("default").await);
    let path = "/dashboard/settings/password";
    let new = "a new and long password";
    let table = [
        (PASSWORD, "short", "short", "12 to 200 characters"),
        (PASSWORD, new, "another long password", "differ"),
        ("not my password", new, new, "not right"),
    ];
    for (password, first, again, fault) in table {
        let fields = [("password", password), ("new", first), ("again", again)];
        let response = member.post(path, &fields).await;
        assert_eq!(response.status, 400, "{fault}");
        assert!(response.text().contains(fault), "{fault}");
        assert!(!response.text().contains(new), "no password is shown");
        let field = "autofocus aria-invalid=\"true\" aria-describedby=\"password-fault\"";
        assert!(response.text().contains(field), "the browser scrolls to it");
    }
    let response = member.post(path, &[("password", PASSWORD), ("new", new), ("again", new)]).await;
    assert_eq!((response.status, response.header("location")), (303, "/dashboard/settings"));
    assert_eq!(other.get("/dashboard").await.status, 303, "other sessions have ended");
    assert_eq!(member.get("/dashboard").await.status, 303, "the old token opens nothing");
    member.session = cookie(&response, "__Host-parcelo_session");
    assert!(member.page("/dashboard/settings").await.contains("The password is changed"));
    assert_eq!(service.visitor().sign_in("default", PASSWORD).await.status, 401);
    assert_eq!(service.visitor().sign_in("default", new).await.status, 303);
}

#[tokio::test]
async fn guesses_of_the_current_password_are_throttled() {
    let (_service, member) = TestService::with_member().await;
    let new = "a new and long password";
    let mut statuses = Vec::new();
    for _ in 0..30 {
        let fields = [("password", "a guess at it"), ("new", new), ("again", new)];
        statuses.push(member.post("/dashboard/settings/password", &fields).await.status);
    }
    assert!(statuses.contains(&429), "{statuses:?}");
}

#[tokio::test]
async fn the_last_viewed_environment_is_shown_next() {
    let (_service, member) = TestService::with_member().await;
    let seen = member.get("/dashboard/webhooks/sandbox").await;
    let kept = cookie(&seen, "__Host-parcelo_environment");
    assert_eq!(kept.as_deref(), Some("sandbox"));
    let ask = |path: &'static str| {
        let session = member.session.clone().unwrap();
        let cookies =
            format!("__Host-parcelo_session={session}; __Host-parcelo_environment=sandbox");
        let url = format!("{}{path}", member.url);
        member.http.get(url).header("cookie", cookies).send()
    };
    let webhooks = ask("/dashboard/webhooks").await.unwrap();
    assert_eq!(webhooks.headers()["location"], "/dashboard/webhooks/sandbox");
    let parcels = ask("/dashboard/parcels").await.unwrap().text().await.unwrap();
    assert!(parcels.contains("value=\"sandbox\" selected"));
    let asked = ask("/dashboard/parcels?environment=production").await.unwrap();
    assert!(asked.text().await.unwrap().contains("value=\"production\" selected"));
}

#[tokio::test]
async fn a_form_from_another_session_cannot_change_a_parcel() {
    let service = with_parcel().await;
    let (member, other) = (service.member("default").await, service.member("default").await);
    let token = token_in(&other.page("/dashboard/keys/new").await);
    let response = member.post_raw(PAGE, &[("action", "void"), ("form", &token)]).await;
    assert_eq!(response.status, 403);
    assert!(member.page(PAGE).await.contains("value=\"void\""));
}
