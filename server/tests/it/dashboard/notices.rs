//! Notices and secrets after an action: each is shown once, to the user who acted, on the page of the action.

use parcelo::Environment;
use parcelo_server::internals::MailOutcome;

use super::service::{TestService, Visitor, deliver, secret_in, webhook_with_event};
use crate::api::{order_with_number, with};

const MINUTE: i64 = 60_000;
const HOOK: &str = "https://shop.example/hook";

async fn set_webhook(member: &Visitor, environment: &str) -> String {
    let path = format!("/dashboard/webhooks/{environment}");
    let response = member.post(&path, &[("url", HOOK)]).await;
    assert_eq!(response.status, 200);
    secret_in(&response.text()).unwrap().to_owned()
}

#[tokio::test]
async fn each_environment_has_its_own_secret() {
    let (test, member) = TestService::with_member().await;
    for environment in Environment::ALL {
        let shown = set_webhook(&member, environment.code()).await;
        let tenant = test.key("default", environment).await.tenant();
        let kept = test.service.store().endpoint(tenant).await.unwrap().unwrap().secret;
        assert_eq!(shown, kept.expose(), "{environment}");
    }
}

#[tokio::test]
async fn a_head_request_does_not_consume_the_notice() {
    let (_test, member) = TestService::with_member().await;
    set_webhook(&member, "sandbox").await;
    let page = "/dashboard/webhooks/sandbox";
    member.post(&format!("{page}/disable"), &[]).await;
    assert_eq!(member.send(member.request("HEAD", page)).await.status, 200);
    assert!(member.page(page).await.contains("The webhook is turned off."));
}

#[tokio::test]
async fn a_notice_is_shown_on_the_page_of_its_action() {
    let (_test, member) = TestService::with_member().await;
    set_webhook(&member, "sandbox").await;
    member.post("/dashboard/webhooks/sandbox/disable", &[]).await;
    for page in ["/dashboard", "/dashboard/keys", "/dashboard/webhooks/production"] {
        assert!(!member.page(page).await.contains("role=\"status\""), "{page}");
    }
    let html = member.page("/dashboard/webhooks/sandbox").await;
    assert!(html.contains("The webhook is turned off."), "{html}");
    let html = member.page("/dashboard/webhooks/sandbox").await;
    assert!(!html.contains("role=\"status\""), "said once");
}

#[tokio::test]
async fn a_new_secret_is_created_after_a_warning() {
    let (_test, member) = TestService::with_member().await;
    set_webhook(&member, "sandbox").await;
    let html = member.page("/dashboard/webhooks/sandbox").await;
    let (before, _) = html.split_once("/rotate\"").unwrap();
    let (_, folded) = before.rsplit_once("<details>").expect("the form is folded away");
    assert!(!folded.contains("</details>"), "{folded}");
    assert!(folded.contains("also signs for 24 hours"), "{folded}");
}

#[tokio::test]
async fn a_webhook_turned_off_shows_how_long_it_was_tried() {
    use parcelo_server::internals::{Actor, DisabledBy};
    let (test, mut member) = TestService::with_member().await;
    let table = [
        (Environment::Production, "for three days", "durante tres días"),
        (Environment::Sandbox, "for about a minute", "durante cerca de un minuto"),
    ];
    for (environment, english, spanish) in table {
        let tenant = test.key("default", environment).await.tenant();
        set_webhook(&member, environment.code()).await;
        let store = test.service.store();
        store
            .disable_endpoint(tenant, DisabledBy::Failures, &Actor::Server.at(test.service.now()))
            .await
            .unwrap();
        let page = format!("/dashboard/webhooks/{}", environment.code());
        for (language, words) in [("en", english), ("es", spanish)] {
            member.language = language;
            let html = member.page(&page).await;
            assert!(html.contains(words), "{page}: {html}");
        }
    }
}

#[tokio::test]
async fn a_failing_webhook_is_noticed_after_a_minute() {
    let (test, mut member) = TestService::with_member().await;
    let tenant = test.key("default", Environment::Production).await.tenant();
    webhook_with_event(&test, tenant).await;
    deliver(&test, 500).await;
    assert!(!member.page("/dashboard").await.contains("failing since"), "it may be a restart");
    test.advance_clock(MINUTE + 1);
    deliver(&test, 500).await;
    for (language, text) in [
        ("en", "Deliveries to your webhook have been failing since 2026-01-30 15:20 UTC."),
        ("es", "Las entregas a su webhook fallan desde 2026-01-30 15:20 UTC."),
    ] {
        member.language = language;
        let html = member.page("/dashboard").await;
        assert!(html.contains(text), "{html}");
        assert!(html.contains("<a href=\"/dashboard/webhooks/production\">"), "{html}");
    }
    test.advance_clock(10 * MINUTE);
    deliver(&test, 204).await;
    member.language = "en";
    assert!(!member.page("/dashboard").await.contains("failing since"));
}

#[tokio::test]
async fn an_event_that_waits_for_its_next_attempt_can_be_sent_now() {
    let (test, member) = TestService::with_member().await;
    let tenant = test.key("default", Environment::Production).await.tenant();
    webhook_with_event(&test, tenant).await;
    let page = "/dashboard/webhooks/production";
    assert!(!member.page(page).await.contains("/replay\""), "it is due already");
    deliver(&test, 500).await;
    let html = member.page(page).await;
    let buttons = ["Send all undelivered events again", "aria-label=\"Send again evt_"];
    assert!(buttons.iter().all(|button| html.contains(button)), "{html}");
    member.post(&format!("{page}/replay"), &[]).await;
    deliver(&test, 204).await;
    assert!(!member.page(page).await.contains(buttons[0]));
}

#[tokio::test]
async fn e_mails_that_the_relay_does_not_take_are_noticed() {
    let (test, mut member, caller) = TestService::with_member_and_key().await;
    test.service.enable_mails(test.service.now()).await.unwrap();
    let order = order_with_number("order-0001", "SB-SUCCESS-0001");
    test.create(&caller, &with(order, "/receiver/email", "luis@example.org".into())).await;
    test.advance_clock(15 * MINUTE);
    member.page("/dashboard").await;
    let send = async |outcome| {
        test.advance_clock(2 * MINUTE);
        for mail in test.service.lease_due_mails(9).await.unwrap() {
            test.service.settle_mail(&mail, outcome).await.unwrap();
        }
    };
    send(MailOutcome::Failed).await;
    for (language, text) in [
        ("en", "E-mails that the mail server has not taken yet: 1, the oldest since 2026-01-30"),
        (
            "es",
            "Correos que el servidor de correo aún no acepta: 1, el más antiguo desde 2026-01-30",
        ),
    ] {
        member.language = language;
        let html = member.page("/dashboard").await;
        assert!(html.contains(text), "{html}");
        assert!(html.contains("/dashboard/parcels/sandbox/SB-SUCCESS-0001\">"), "{html}");
    }
    member.language = "en";
    test.set_password("other").await;
    let stranger = test.member("other").await;
    assert!(!stranger.page("/dashboard").await.contains("has not taken yet"));
    send(MailOutcome::Sent).await;
    assert!(!member.page("/dashboard").await.contains("has not taken yet"));
}

#[tokio::test]
async fn a_name_with_invisible_characters_is_refused() {
    let (test, mut member) = TestService::with_member().await;
    for (language, words) in [("en", "invisible character"), ("es", "carácter invisible")] {
        member.language = language;
        let response = member.post("/dashboard/keys", &[("name", "a\u{202E}b")]).await;
        assert_eq!(response.status, 400, "{language}");
        assert!(response.text().contains(words), "{}", response.text());
    }
    let keys = test.service.store().credentials::<parcelo_server::internals::ApiKeyScope>();
    assert_eq!(keys.await.unwrap().len(), 0);
}
