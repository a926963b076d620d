//! Sessions that end while a page is open. After the next sign-in the user returns to the page, and to the form as it
//! was filled in.

use parcelo_server::internals::SESSION_LIFETIME_MILLIS;

use super::service::{PASSWORD, TestService, Visitor, cookie, token_in};
use crate::api::HttpResponse;

/// A form whose session has ended: its path, the typed fields, the page that shows it again, and texts on that page.
type Interruption =
    (&'static str, &'static [(&'static str, &'static str)], &'static str, &'static [&'static str]);

/// Returns the value of a hidden field in the sign-in form.
fn hidden_field(page: &str, name: &str) -> Option<String> {
    let (_, rest) = page.split_once(&format!("name=\"{name}\" value=\""))?;
    let value = rest.split('"').next()?;
    Some(
        value
            .replace("&#38;", "&")
            .replace("&amp;", "&")
            .replace("&#34;", "\"")
            .replace("&#60;", "<"),
    )
}

impl Visitor {
    /// Signs in with the form on a page, without changing its other fields.
    async fn sign_in_with(&mut self, shown: &HttpResponse, password: &str) -> HttpResponse {
        self.guest = cookie(shown, "__Host-parcelo_guest").or(self.guest.take());
        let text = shown.text();
        let (form, next, filled) =
            (token_in(&text), hidden_field(&text, "next"), hidden_field(&text, "filled"));
        let mut fields =
            vec![("form", form.as_str()), ("account", "default"), ("password", password)];
        fields.extend(next.as_deref().map(|next| ("next", next)));
        fields.extend(filled.as_deref().map(|filled| ("filled", filled)));
        let response = self.post_raw("/dashboard/sign-in", &fields).await;
        self.session = cookie(&response, "__Host-parcelo_session").or(self.session.take());
        response
    }
}

#[tokio::test]
async fn signing_in_returns_to_the_requested_page() {
    let service = TestService::new().await;
    let mut visitor = service.visitor();
    let page = "/dashboard/parcels?environment=sandbox&status=DELIVERED";
    let sent = visitor.get(page).await;
    assert_eq!(sent.status, 303);
    let shown = visitor.get(sent.header("location")).await;
    let wrong = visitor.sign_in_with(&shown, "wrong").await;
    assert_eq!(wrong.status, 401);
    let response = visitor.sign_in_with(&wrong, PASSWORD).await;
    assert_eq!(response.status, 303, "after a wrong password too");
    assert_eq!(response.header("location"), page);
    let again = visitor.get(sent.header("location")).await;
    assert_eq!(again.status, 303, "a signed-in user is redirected");
    assert_eq!(again.header("location"), page);
}

#[tokio::test]
async fn a_sign_in_link_never_leaves_the_site_or_fills_a_form() {
    let service = TestService::new().await;
    for next in
        ["//evil.example", "https://evil.example/dashboard", "/dashboard/%5Cevil/..", "/admin"]
    {
        let mut visitor = service.visitor();
        let link = format!("/dashboard/sign-in?next={next}&filled=name%3DShop");
        let shown = visitor.get(&link).await;
        assert_eq!(hidden_field(&shown.text(), "filled"), None);
        let response = visitor.sign_in_with(&shown, PASSWORD).await;
        assert_eq!(response.status, 303);
        let location = response.header("location").to_owned();
        assert!(location == "/dashboard" || location.starts_with("/dashboard/"), "{location}");
        assert!(!location.contains("evil.example"), "{location}");
        // A browser sends this if the user has tampered with the form.
        let form = service.visitor().get("/dashboard/sign-in").await;
        visitor.guest = cookie(&form, "__Host-parcelo_guest");
        let token = token_in(&form.text());
        let fields = [
            ("form", token.as_str()),
            ("account", "default"),
            ("password", PASSWORD),
            ("next", next),
        ];
        let response = visitor.post_raw("/dashboard/sign-in", &fields).await;
        assert!(response.header("location").starts_with("/dashboard"), "{next}");
    }
}

#[tokio::test]
async fn an_interrupted_form_is_shown_again_and_not_sent() {
    let service = TestService::new().await;
    let table: [Interruption; 4] = [
        (
            "/dashboard/keys",
            &[
                ("name", "Shop <1> & \"Co\""),
                ("environment", "production"),
                ("countries", "some"),
                ("codes", "EC"),
                ("once", "01ARZ3NDEKTSV4RRFFQ69G5FAV"),
            ],
            "/dashboard/keys/new",
            &[
                "value=\"Shop &#60;1&#62; &#38; &#34;Co&#34;\"",
                "value=\"production\" checked",
                "value=\"EC\"",
                "value=\"01ARZ3NDEKTSV4RRFFQ69G5FAV\"",
            ],
        ),
        (
            "/dashboard/webhooks/sandbox",
            &[("url", "https://shop.example/hook?a=b"), ("events", "parcel.created")],
            "/dashboard/webhooks/sandbox",
            &["value=\"https://shop.example/hook?a=b\"", "value=\"parcel.created\" checked"],
        ),
        (
            "/dashboard/settings",
            &[("name", "Zapatería Ñandú"), ("contact", "https://shop.example")],
            "/dashboard/settings",
            &["value=\"Zapatería Ñandú\"", "value=\"https://shop.example\""],
        ),
        (
            "/dashboard/parcels",
            &[("number", "SB-UNKNOWN-0001"), ("environment", "sandbox"), ("from", "2026-01-01")],
            "/dashboard/parcels",
            &["value=\"SB-UNKNOWN-0001\"", "value=\"sandbox\" selected", "value=\"2026-01-01\""],
        ),
    ];
    for (path, typed, page, shown) in table {
        let mut member = service.member("default").await;
        let token = member.token().await;
        service.advance_clock(SESSION_LIFETIME_MILLIS);
        let response = member.post_raw(path, &[typed, &[("form", &token)]].concat()).await;
        assert_eq!(response.status, 401, "{path}");
        assert!(response.text().contains("nothing was sent"), "{path}");
        member.session = None;
        let back = member.sign_in_with(&response, PASSWORD).await;
        let text = back.text();
        assert_eq!(back.status, 200, "{path}: {text}");
        for part in shown.iter().chain(&[&*format!("href=\"{page}?lang=es\"")]) {
            assert!(text.contains(part), "{path}: {part}");
        }
        assert!(text.contains("so nothing was sent"), "{path}");
        assert_ne!(token_in(&text), token, "the form is of the new session");
        assert!(!member.page(page).await.contains("so nothing was sent"), "{path}: once");
    }
    let caller = service.key("default", parcelo::Environment::Production).await;
    assert_eq!(service.api_keys(&caller).await.len(), 1, "no form was sent by itself");
}

#[tokio::test]
async fn a_cross_site_form_is_refused_and_not_restored() {
    let (service, member) = TestService::with_member().await;
    service.advance_clock(SESSION_LIFETIME_MILLIS);
    let fields = [("name", "Planted"), ("contact", "https://evil.example")];
    let request =
        member.form("/dashboard/settings", &fields).header("sec-fetch-site", "cross-site");
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 403);
    assert!(!response.text().await.unwrap().contains("Planted"));
}

#[tokio::test]
async fn a_button_pressed_after_the_session_has_no_effect() {
    let (service, mut member) = TestService::with_member().await;
    let token = member.token().await;
    service.advance_clock(SESSION_LIFETIME_MILLIS);
    let response = member.post_raw("/dashboard/webhooks/sandbox/test", &[("form", &token)]).await;
    assert_eq!((response.status, hidden_field(&response.text(), "filled")), (401, None));
    member.session = None;
    let back = member.sign_in_with(&response, PASSWORD).await;
    assert_eq!(back.header("location"), "/dashboard/webhooks/sandbox");
    assert!(!member.page("/dashboard/webhooks/sandbox").await.contains("nothing was sent"));
}

#[tokio::test]
async fn voiding_after_the_session_ended_shows_a_notice() {
    let service = TestService::new().await;
    let caller = service.key("default", parcelo::Environment::Production).await;
    // Not in the sandbox, where it would be delivered by the time the session ends.
    service.order(&caller, "EC0001WAREHOUSE").await;
    let page = "/dashboard/parcels/production/EC0001WAREHOUSE";
    for action in ["void", "reprint"] {
        let mut member = service.member("default").await;
        let token = member.token().await;
        service.advance_clock(SESSION_LIFETIME_MILLIS);
        let response = member.post_raw(page, &[("form", &token), ("action", action)]).await;
        assert_eq!(response.status, 401);
        member.session = None;
        let back = member.sign_in_with(&response, PASSWORD).await;
        assert_eq!((back.status, back.header("location")), (303, page));
        let text = member.page(page).await;
        assert!(text.contains("so nothing was done"), "{action}: {text}");
        assert!(text.contains("value=\"void\""), "the order can still be voided");
        assert!(!member.page(page).await.contains("nothing was done"), "{action}: once");
    }
}
