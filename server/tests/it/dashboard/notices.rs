//! Notices and secrets after an action: each is shown once, to the user who acted, on the page of the action.

use parcelo::Environment;

use super::service::{TestService, Visitor, secret_in};

const HOOK: &str = "https://shop.example/hook";

async fn set_webhook(member: &Visitor, environment: &str) -> String {
    let path = format!("/dashboard/webhooks/{environment}");
    let answer = member.post(&path, &[("url", HOOK)]).await;
    assert_eq!(answer.status, 200);
    secret_in(&answer.text()).unwrap().to_owned()
}

#[tokio::test]
async fn each_environment_has_its_own_secret() {
    let test = TestService::new().await;
    let member = test.member("default").await;
    for environment in Environment::ALL {
        let shown = set_webhook(&member, environment.code()).await;
        let tenant = test.key("default", environment).await.tenant();
        let kept = test.service.store().endpoint(tenant).await.unwrap().unwrap().secret;
        assert_eq!(shown, kept.expose(), "{environment}");
    }
}

#[tokio::test]
async fn a_head_request_uses_up_no_notice() {
    let test = TestService::new().await;
    let member = test.member("default").await;
    set_webhook(&member, "sandbox").await;
    let page = "/dashboard/webhooks/sandbox";
    member.post(&format!("{page}/disable"), &[]).await;
    assert_eq!(member.send(member.request("HEAD", page)).await.status, 200);
    assert!(member.page(page).await.contains("The webhook is turned off."));
}

#[tokio::test]
async fn a_notice_is_shown_on_the_page_of_its_action() {
    let test = TestService::new().await;
    let member = test.member("default").await;
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
async fn one_of_many_concurrent_webhook_setups_shows_the_secret() {
    let setup = crate::running::TestSetup::new();
    let running = setup.start(&[]);
    let password = super::journey::password(&setup);
    let mut members = Vec::new();
    for _ in 0..4 {
        let mut member = Visitor::at(running.url("admin"), "en");
        assert_eq!(member.sign_in("default", &password).await.status, 303);
        let token = member.token().await;
        members.push((member, token));
    }
    let all = members.iter().map(async |(member, token)| {
        let fields = [("url", HOOK), ("form", token)];
        let answer = member.post_raw("/dashboard/webhooks/sandbox", &fields).await;
        assert!([200, 303].contains(&answer.status), "{}", answer.text());
        let html = member.page("/dashboard/webhooks/sandbox").await;
        let is_shown = secret_in(&answer.text()).is_some();
        assert_ne!(is_shown, html.contains("The webhook is saved"), "{html}");
        is_shown
    });
    let shown = futures_util::future::join_all(all).await;
    assert_eq!(shown.iter().filter(|is_shown| **is_shown).count(), 1);
}

#[tokio::test]
async fn a_new_secret_is_created_after_a_warning() {
    let test = TestService::new().await;
    let member = test.member("default").await;
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
    let test = TestService::new().await;
    let mut member = test.member("default").await;
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
async fn a_name_with_invisible_characters_is_refused() {
    let test = TestService::new().await;
    let mut member = test.member("default").await;
    let hidden = ["a\0b", "a\u{1b}[31mb", "a\nkey_2 forged", "a\u{202E}b", "\u{3164}", "a\u{200B}"];
    for name in hidden {
        for (language, words) in [("en", "invisible character"), ("es", "carácter invisible")] {
            member.language = language;
            let answer = member.post("/dashboard/keys", &[("name", name)]).await;
            assert_eq!(answer.status, 400, "{name:?}");
            assert!(answer.text().contains(words), "{name:?}: {}", answer.text());
        }
    }
    assert_eq!(
        test.service
            .store()
            .credentials::<parcelo_server::internals::ApiKeyScope>()
            .await
            .unwrap()
            .len(),
        0
    );
}

#[tokio::test]
async fn a_webhook_url_with_invisible_characters_is_refused() {
    let test = TestService::new().await;
    let mut member = test.member("default").await;
    for url in ["https://shop.example/\thook", "https://shop.example/\u{202E}kooh"] {
        for (language, words) in [("en", "cannot be seen"), ("es", "no se ve")] {
            member.language = language;
            let answer = member.post("/dashboard/webhooks/production", &[("url", url)]).await;
            assert_eq!(answer.status, 400, "{url:?}");
            assert!(answer.text().contains(words), "{url:?}: {}", answer.text());
        }
    }
}
