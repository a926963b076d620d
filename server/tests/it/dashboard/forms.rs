//! The dashboard's forms: what each one does, and that it does nothing without its session's token.

use parcelo::{ApiKey, Environment, ErrorCode, webhook::Secret};
use parcelo_server::internals::{
    ApiKeyScope, Countries, DeliverySlots, MAX_IN_FLIGHT_PER_ENDPOINT, Millis,
};

use super::service::{TestService, Visitor, secret_in};
use crate::api::{HttpResponse, send};

const HOOK: &str = "https://shop.example/hook";

/// Returns every form that changes something, with the fields that its page sends.
async fn all_forms(test: &TestService) -> Vec<(String, Vec<(&'static str, &'static str)>)> {
    let key = test.key("default", Environment::Sandbox).await;
    let mut forms = vec![
        (
            "/dashboard/keys".to_owned(),
            vec![("name", "Shop"), ("environment", "sandbox"), ("countries", "all")],
        ),
        (format!("/dashboard/keys/{}/rotate", key.key.id), vec![("overlap", "0")]),
        (format!("/dashboard/keys/{}/revoke", key.key.id), vec![]),
        ("/dashboard/webhooks/sandbox".to_owned(), vec![("url", HOOK)]),
        ("/dashboard/parcels".to_owned(), vec![("number", "")]),
        ("/dashboard/settings".to_owned(), vec![("name", "Shop")]),
    ];
    for action in ["test", "disable", "enable", "rotate", "replay", "remove"] {
        forms.push((format!("/dashboard/webhooks/sandbox/{action}"), vec![]));
    }
    forms.push(("/dashboard/sign-out".to_owned(), vec![]));
    forms
}

/// Returns everything that a form could have changed.
async fn stored_state(test: &TestService) -> String {
    let store = test.service.store();
    let key = &store.credentials::<ApiKeyScope>().await.unwrap();
    let tenant = key[0].scope.tenant;
    let secrets: Vec<_> = key.iter().map(|key| &key.last4).collect();
    format!(
        "{key:?} {secrets:?} {:?} {:?} {:?}",
        store.shop(tenant.account).await.unwrap(),
        store.endpoint(tenant).await.unwrap(),
        store.deliveries(tenant, 9).await.unwrap()
    )
}

#[tokio::test]
async fn a_form_without_the_token_of_its_session_changes_nothing() {
    let test = TestService::new().await;
    let (member, other) = (test.member("default").await, test.member("default").await);
    let foreign = other.token().await;
    assert_ne!(foreign, member.token().await);
    for (path, fields) in all_forms(&test).await {
        let before = stored_state(&test).await;
        for token in [None, Some(""), Some("guess"), Some(foreign.as_str())] {
            let token = token.map(|token| ("form", token));
            let fields: Vec<_> = fields.iter().copied().chain(token).collect();
            let response = member.post_raw(&path, &fields).await;
            assert_eq!(response.status, 403, "{path} {token:?}");
            assert!(response.text().contains("The form was not accepted"), "{path}");
        }
        assert_eq!(stored_state(&test).await, before, "{path}");
        assert_eq!(member.get("/dashboard").await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn a_cross_site_form_changes_nothing_even_with_a_token() {
    let (test, member) = TestService::with_member().await;
    let token = member.token().await;
    let own = test.url.as_str();
    let foreign: [&[(&str, &str)]; 6] = [
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site")],
        &[("sec-fetch-site", "none")],
        &[("origin", "https://evil.example")],
        &[("origin", "null")],
        &[("sec-fetch-site", "cross-site"), ("origin", own)],
    ];
    for (path, fields) in all_forms(&test).await {
        let fields = [fields.as_slice(), &[("form", token.as_str())]].concat();
        let before = stored_state(&test).await;
        for headers in foreign {
            let mut request = member.form(&path, &fields);
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            assert_eq!(send(request).await.status, 403, "{path} {headers:?}");
        }
        let json = member.request("POST", &path).header("content-type", "text/plain");
        assert_eq!(send(json.body(format!("form={token}"))).await.status, 403, "{path}");
        assert_eq!(stored_state(&test).await, before, "{path}");
    }
}

#[tokio::test]
async fn shop_settings_are_saved_and_can_be_corrected() {
    let test = TestService::new().await;
    test.set_password("other").await;
    let (member, other) = (test.member("default").await, test.member("other").await);
    let path = "/dashboard/settings";
    let fields = [("name", " Café <b>Quito</b> "), ("contact", "help@cafe.example")];
    let response = member.post(path, &fields).await;
    assert_eq!((response.status, response.header("location")), (303, path));
    let html = member.page(path).await;
    for part in [
        "value=\"Café &#60;b&#62;Quito&#60;/b&#62;\"",
        "value=\"help@cafe.example\"",
        "role=\"status\"",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    assert!(!other.page(path).await.contains("Quito"), "another account's");
    let wrong = [
        ("Café", "javascript:alert(1)", "The contact must be"),
        (&"x".repeat(61), "help@cafe.example", "The name has more than 60"),
    ];
    for (name, contact, fault) in wrong {
        let response = member.post(path, &[("name", name), ("contact", contact)]).await;
        let html = response.text();
        assert_eq!(response.status, 400, "{html}");
        for part in [fault, &format!("value=\"{name}\""), &format!("value=\"{contact}\"")] {
            assert!(html.contains(part), "{part}: {html}");
        }
        // The browser scrolls to it.
        assert_eq!(html.matches("autofocus aria-invalid=\"true\"").count(), 1, "{html}");
    }
    assert!(member.page(path).await.contains("value=\"help@cafe.example\""), "as it was");
    member.post(path, &[("name", ""), ("contact", " ")]).await;
    assert!(!member.page(path).await.contains("cafe.example"));
}

#[tokio::test]
async fn an_oversized_form_is_refused_with_a_page() {
    let (_test, member) = TestService::with_member().await;
    let long = "a".repeat(256 * 1024);
    let response = member.post("/dashboard/keys", &[("name", &long)]).await;
    assert_eq!(response.status, 413);
    assert_eq!(response.header("content-type"), "text/html; charset=utf-8");
    let response = member.post("/dashboard/keys", &[("name", &long[..100 * 1024])]).await;
    assert_eq!(response.status, 400, "a body within the limit is read");
}

#[tokio::test]
async fn a_new_key_is_shown_once_and_works() {
    let (test, member) = TestService::with_member().await;
    let fields = [
        ("name", "Shop & <b>Sons</b>"),
        ("environment", "sandbox"),
        ("countries", "some"),
        ("codes", "ec, MX"),
        ("addresses", "10.0.0.0/8\r\n203.0.113.7"),
    ];
    let created = member.post("/dashboard/keys", &fields).await;
    assert_eq!((created.status, created.header("cache-control")), (200, "no-store"));
    let html = created.text();
    let key = ApiKey::parse(secret_in(&html).unwrap()).unwrap();
    assert!(html.contains("Your new key: Shop &#38; &#60;b&#62;Sons"), "{html}");
    assert!(html.contains("href=\"/dashboard/keys?lang=es\""), "{html}");
    let caller = test.service.authenticate(Environment::Sandbox, Some(key.secret())).await.unwrap();
    assert_eq!(caller.key.scope.countries.to_wire(), ["EC", "MX"]);
    assert_eq!(caller.key.scope.ip_list.len(), 2);
    let list = member.page("/dashboard/keys").await;
    assert!(secret_in(&list).is_none() && !list.contains(key.secret()));
    assert!(list.contains(&caller.key.last4));
}

/// Sends a form twice, as a reload of the response does, and returns the secret that was created.
async fn send_twice(
    member: &mut Visitor,
    path: &str,
    fields: &[(&str, &str)],
    again: [&str; 2],
) -> String {
    let hidden = member.hidden_fields(path).await;
    let hidden: Vec<_> = hidden.iter().map(|(name, value)| (&**name, &**value)).collect();
    let fields = [fields, &hidden].concat();
    let first = member.post_raw(path, &fields).await;
    assert_eq!(first.status, 200, "{path}: {}", first.text());
    for (language, words) in ["en", "es"].into_iter().zip(again) {
        member.language = language;
        let reloaded = member.post_raw(path, &fields).await;
        assert_eq!((reloaded.status, secret_in(&reloaded.text())), (303, None), "{path}");
        let html = member.page(reloaded.header("location")).await;
        assert!(html.contains(words) && secret_in(&html).is_none(), "{path}: {html}");
    }
    member.language = "en";
    secret_in(&first.text()).unwrap().to_owned()
}

#[tokio::test]
async fn reloading_the_response_creates_no_second_secret() {
    let (test, mut member) = TestService::with_member().await;
    let created = ["has already created its key, whose secret was shown once", "ya creó su clave"];
    let replaced = ["a new secret was already created", "ya se creó un secreto nuevo"];
    let fields = [("name", "Shop"), ("environment", "sandbox"), ("countries", "all")];
    let key = send_twice(&mut member, "/dashboard/keys", &fields, created).await;
    let key = ApiKey::parse(&key).unwrap();
    let caller = test.service.authenticate(Environment::Sandbox, Some(key.secret())).await.unwrap();
    let rotate = format!("/dashboard/keys/{}/rotate", caller.key.id);
    send_twice(&mut member, &rotate, &[("overlap", "0")], replaced).await;
    let keys = test.api_keys(&caller).await;
    assert_eq!((keys.len(), keys[0].old_secrets.len()), (1, 1));

    let page = "/dashboard/webhooks/sandbox";
    let saved = ["The webhook is saved", "El webhook se guardó"];
    let first = send_twice(&mut member, page, &[("url", HOOK)], saved).await;
    let second = send_twice(&mut member, &format!("{page}/rotate"), &[], replaced).await;
    let hook = test.service.store().endpoint(caller.tenant()).await.unwrap().unwrap();
    assert_eq!((hook.secret.expose(), hook.old.len()), (second, 1));
    assert_eq!(hook.old[0].0.expose(), first);
    // The address of the response is opened again.
    let back = member.get(&format!("{page}/rotate")).await;
    assert_eq!((back.status, back.header("location")), (303, page));
}

#[tokio::test]
async fn a_form_without_a_valid_one_time_id_creates_nothing() {
    let (test, member, caller) = TestService::with_member_and_key().await;
    set_webhook(&member, "sandbox", HOOK).await;
    let before = stored_state(&test).await;
    let token = member.token().await;
    let key = [("name", "Shop"), ("environment", "sandbox"), ("countries", "all")];
    let rotate = format!("/dashboard/keys/{}/rotate", caller.key.id);
    for wrong in [None, Some(""), Some("key_1"), Some("é"), Some(&*"0".repeat(27))] {
        let forms: [(&str, &[_], _, _); 3] = [
            ("/dashboard/keys", &key, "once", 403),
            (&rotate, &[("overlap", "0")], "seen", 303),
            ("/dashboard/webhooks/sandbox/rotate", &[], "seen", 303),
        ];
        for (path, fields, name, status) in forms {
            let wrong = wrong.map(|wrong| (name, wrong));
            let fields: Vec<_> =
                fields.iter().copied().chain([("form", &*token)]).chain(wrong).collect();
            let response = member.post_raw(path, &fields).await;
            assert_eq!(response.status, status, "{path} {wrong:?}: {}", response.text());
        }
    }
    assert_eq!(stored_state(&test).await, before);
}

#[tokio::test]
async fn an_invalid_key_form_is_shown_again_with_its_values() {
    let (test, mut member) = TestService::with_member().await;
    let wrong = [("name", ""), ("countries", "some"), ("codes", "Ecuador"), ("addresses", "here")];
    for (language, words) in [
        ("en", ["a name of 1 to 100", "“Ecuador” is not the code", "“here” is not an IP address"]),
        (
            "es",
            ["un nombre de 1 a 100", "“Ecuador” no es el código", "“here” no es una dirección IP"],
        ),
    ] {
        member.language = language;
        let response = member.post("/dashboard/keys", &wrong).await;
        assert_eq!(response.status, 400);
        for word in words.iter().chain(&["value=\"Ecuador\"", ">here</textarea>"]) {
            assert!(response.text().contains(word), "{language}: {word}");
        }
    }
    assert_eq!(test.service.store().credentials::<ApiKeyScope>().await.unwrap().len(), 0);
}

#[tokio::test]
async fn a_key_form_without_its_permissions_creates_no_key() {
    let (test, mut member) = TestService::with_member().await;
    let table = [
        ("sandbox", "all", "EC", "leave the codes empty", "deje vacíos los códigos"),
        ("production", "some", "EC, *", "leave the codes empty", "deje vacíos los códigos"),
        ("production", "EC,*", "EC", "Choose the countries", "Elija los países"),
        ("production", "", "EC", "Choose the countries", "Elija los países"),
        ("production", "ALL", "", "Choose the countries", "Elija los países"),
        ("PRODUCTION", "all", "", "Choose the environment", "Elija el entorno"),
        ("", "all", "", "Choose the environment", "Elija el entorno"),
    ];
    for (environment, countries, codes, english, spanish) in table {
        let fields = [
            ("name", "Shop"),
            ("environment", environment),
            ("countries", countries),
            ("codes", codes),
        ];
        for (language, words) in [("en", english), ("es", spanish)] {
            member.language = language;
            let response = member.post("/dashboard/keys", &fields).await;
            assert_eq!(response.status, 400, "{fields:?}");
            assert!(response.text().contains(words), "{fields:?}: {}", response.text());
            assert!(response.text().contains(&format!("name=\"codes\" value=\"{codes}\"")));
        }
    }
    assert_eq!(test.service.store().credentials::<ApiKeyScope>().await.unwrap().len(), 0);
}

#[tokio::test]
async fn a_key_is_revoked_after_confirmation_and_then_refused() {
    let (test, member, caller) = TestService::with_member_and_key().await;
    let path = format!("/dashboard/keys/{}/revoke", caller.key.id);
    let question = member.page(&path).await;
    assert!(question.contains("Revoke this key?") && question.contains(&caller.key.last4));
    assert!(test.api_keys(&caller).await[0].revoked_at.is_none(), "not yet revoked");
    let response = member.post(&path, &[]).await;
    assert_eq!((response.status, response.header("location")), (303, "/dashboard/keys"));
    assert!(test.api_keys(&caller).await[0].revoked_at.is_some());
    let html = member.page("/dashboard/keys").await;
    assert!(html.contains("The key is revoked.") && html.contains(">Revoked<"), "{html}");
    assert!(!member.page("/dashboard/keys").await.contains("The key is revoked."), "said once");
    assert!(member.page(&path).await.contains("It is already revoked."));
    assert!(matches!(caller.key.scope.countries, Countries::All));
}

#[tokio::test]
async fn a_rotation_is_confirmed_and_shows_its_secret_once() {
    let (test, mut member) = TestService::with_member().await;
    let fields = [("name", "Shop"), ("environment", "sandbox"), ("countries", "all")];
    let created = member.post("/dashboard/keys", &fields).await;
    let old = ApiKey::parse(secret_in(&created.text()).unwrap()).unwrap();
    let who = async |key: &ApiKey| {
        test.service.authenticate(Environment::Sandbox, Some(key.secret())).await.ok()
    };
    let caller = who(&old).await.unwrap();
    let path = format!("/dashboard/keys/{}/rotate", caller.key.id);
    assert!(member.page("/dashboard/keys").await.contains(&format!("href=\"{path}\"")));
    for (language, question, usual) in [
        ("en", "Give this key a new secret?", "for 24 hours"),
        ("es", "¿Dar un secreto nuevo a esta clave?", "durante 24 horas"),
    ] {
        member.language = language;
        let html = member.page(&path).await;
        assert!(
            html.contains(question)
                && html.contains(usual)
                && html.contains("value=\"86400\" checked"),
            "{html}"
        );
    }
    member.language = "en";
    assert_eq!(test.api_keys(&caller).await[0].hash, caller.key.hash, "not yet rotated");
    let response = member.post(&path, &[("overlap", "3600")]).await;
    let html = response.text();
    let new = ApiKey::parse(secret_in(&html).unwrap()).unwrap();
    assert!(html.contains("The key has a new secret."), "{html}");
    let list = member.page("/dashboard/keys").await;
    assert!(!list.contains(new.secret()) && list.contains("Old secret valid until"), "{list}");
    assert_eq!(who(&new).await.unwrap().key.row, who(&old).await.unwrap().key.row);
    test.advance_clock(Millis::HOUR);
    assert!(who(&old).await.is_none() && who(&new).await.is_some());
    assert!(!member.page("/dashboard/keys").await.contains("Old secret valid until"));

    for wrong in ["", "7200", "a day", "604801"] {
        let response = member.post(&path, &[("overlap", wrong)]).await;
        assert_eq!(response.status, 400, "{wrong:?}");
        let html = response.text();
        assert!(html.contains("Choose one of the times"), "{wrong:?}: {html}");
        assert!(html.contains("Give this key a new secret?"), "the form is shown again");
    }
    let html = member.post(&path, &[("overlap", "0")]).await.text();
    assert!(html.contains("the old one no longer works"), "{html}");
    assert!(!html.contains("before the old one expires"), "{html}");
    member.post(&format!("/dashboard/keys/{}/revoke", caller.key.id), &[]).await;
    assert!(member.page(&path).await.contains("The key is revoked and cannot get a new secret."));
    assert_eq!(member.post(&path, &[("overlap", "0")]).await.status, 303);
    let html = member.page("/dashboard/keys").await;
    assert!(secret_in(&html).is_none(), "{html}");
    assert!(html.contains("Nothing was changed: the key is revoked."), "{html}");
    let stranger = test.key("other", Environment::Sandbox).await;
    let theirs = format!("/dashboard/keys/{}/rotate", stranger.key.id);
    assert_eq!(member.get(&theirs).await.status, 404);
    assert_eq!(member.post(&theirs, &[("overlap", "0")]).await.status, 404);
}

async fn set_webhook(member: &Visitor, environment: &str, url: &str) -> HttpResponse {
    let path = format!("/dashboard/webhooks/{environment}");
    member.post(&path, &[("url", url), ("events", "parcel.created")]).await
}

#[tokio::test]
async fn a_webhook_is_set_up_tested_rotated_turned_off_and_on() {
    let (test, member) = TestService::with_member().await;
    let tenant = test.key("default", Environment::Sandbox).await.tenant();
    let page = "/dashboard/webhooks/sandbox";
    let act = async |action: &str| {
        let response = member.post(&format!("{page}/{action}"), &[]).await;
        assert_eq!((response.status, response.header("location")), (303, page), "{action}");
        member.page(page).await
    };
    let secret: Secret =
        secret_in(&set_webhook(&member, "sandbox", HOOK).await.text()).unwrap().parse().unwrap();
    let endpoint = async || test.service.store().endpoint(tenant).await.unwrap().unwrap();
    assert_eq!(endpoint().await.secret.expose(), secret.expose());
    let html = member.page(page).await;
    assert!(html.contains(HOOK) && html.contains("value=\"parcel.created\" checked"));
    assert!(secret_in(&html).is_none());

    assert_eq!(set_webhook(&member, "sandbox", "https://shop.example/other").await.status, 303);
    let html = member.page(page).await;
    assert!(secret_in(&html).is_none(), "the secret stays");
    assert!(html.contains("The webhook is saved"));
    assert!(act("test").await.contains("webhook.test"));
    let rotated = member.post(&format!("{page}/rotate"), &[]).await;
    assert_ne!(secret_in(&rotated.text()).unwrap(), secret.expose());
    assert!(member.page(page).await.contains("Previous secret signs until"));
    let off = act("disable").await;
    assert!(off.contains("It was turned off by hand.") && off.contains(">Held<"), "{off}");
    assert!(!off.contains("/sandbox/test\""), "no test while the webhook is off");
    assert!(act("test").await.contains("Nothing was sent: the webhook is turned off."));
    let on = act("enable").await;
    assert!(on.contains("Send all undelivered events again"));
    assert!(act("replay").await.contains("One event is sent again."));
    assert!(act("replay").await.contains("There was nothing to send again."));
    assert!(act("remove").await.contains("The webhook is removed."));
    assert!(test.service.store().endpoint(tenant).await.unwrap().is_none());
    for action in ["test", "rotate", "enable", "disable", "replay", "remove"] {
        let html = act(action).await;
        assert!(html.contains("Nothing was changed: the webhook no longer exists."), "{action}");
    }
    assert_eq!(member.post(&format!("{page}/explode"), &[]).await.status, 404);
}

#[tokio::test]
async fn a_test_event_continues_the_trace_of_its_request() {
    let (test, member) = TestService::with_member().await;
    set_webhook(&member, "sandbox", HOOK).await;
    let token = member.token().await;
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let request = member.form("/dashboard/webhooks/sandbox/test", &[("form", &token)]);
    assert_eq!(member.send(request.header("traceparent", parent)).await.status, 303);
    let slots = DeliverySlots::new(MAX_IN_FLIGHT_PER_ENDPOINT);
    let event = test.service.lease_deliveries(&slots).await.unwrap().remove(0);
    let delivery = test.service.prepare_delivery(event).await.unwrap().unwrap();
    let sent = delivery.traceparent.unwrap();
    assert!(sent.starts_with(&parent[..36]) && sent != parent, "{sent}");
}

#[tokio::test]
async fn events_are_paginated_and_the_oldest_can_be_replayed() {
    let (test, member, caller) = TestService::with_member_and_key().await;
    set_webhook(&member, "sandbox", HOOK).await;
    let page = "/dashboard/webhooks/sandbox";
    test.order(&caller, "SB-NORMAL-0001").await;
    member.post(&format!("{page}/disable"), &[]).await;
    member.post(&format!("{page}/enable"), &[]).await;
    let first = member.page(page).await;
    assert!(!first.contains("rel=\"next\"") && !first.contains("rel=\"prev\""));
    for _ in 0..60 {
        member.post(&format!("{page}/test"), &[]).await;
    }
    let first = member.page(page).await;
    assert!(!first.contains("SB-NORMAL-0001") && !first.contains("rel=\"prev\""));
    assert!(first.contains("href=\"/dashboard/webhooks/sandbox?page=2\""), "{first}");
    assert!(first.contains("Send all undelivered events again"), "the page does not matter");
    let second = member.page(&format!("{page}?page=2")).await;
    assert!(second.contains("SB-NORMAL-0001") && !second.contains("rel=\"next\""));
    assert!(second.contains("href=\"/dashboard/webhooks/sandbox\" rel=\"prev\""), "{second}");
    let past = member.page(&format!("{page}?page=99")).await;
    assert!(past.contains("rel=\"prev\"") && past.contains("No events here."), "{past}");
}

#[tokio::test]
async fn a_single_event_is_replayed_by_its_id() {
    let (test, member, caller) = TestService::with_member_and_key().await;
    set_webhook(&member, "sandbox", HOOK).await;
    test.order(&caller, "SB-NORMAL-0001").await;
    let page = "/dashboard/webhooks/sandbox";
    for action in ["disable", "enable"] {
        member.post(&format!("{page}/{action}"), &[]).await;
    }
    let html = member.page(page).await;
    let (_, rest) = html.split_once("name=\"event\" value=\"").unwrap();
    let event = rest.split('"').next().unwrap();
    let again = member.post(&format!("{page}/replay"), &[("event", event)]).await;
    assert_eq!(again.status, 303);
    assert!(member.page(page).await.contains("One event is sent again."));
    for unknown in ["evt_7", "7", "evt_01ARZ3NDEKTSV4RRFFQ69G5FA"] {
        let response = member.post(&format!("{page}/replay"), &[("event", unknown)]).await;
        assert_eq!(response.status, 404, "{unknown}");
    }
}

#[tokio::test]
async fn a_forbidden_webhook_url_is_refused_with_a_reason() {
    let (_test, mut member) = TestService::with_member().await;
    let long = format!("https://shop.example/{}", "a".repeat(500));
    let table = [
        ("production", "http://shop.example/hook", "begins with https", "empieza con https"),
        ("production", "https://10.0.0.7/hook", "not a public one", "no es pública"),
        ("sandbox", "http://169.254.169.254/", "not a public one", "no es pública"),
        ("sandbox", "shop", "a full URL", "una URL completa"),
        ("sandbox", "https://me:secret@shop.example/", "Leave user and", "No ponga usuario"),
        ("sandbox", &long, "at most 500", "como máximo 500"),
        ("production", "https://shop.example/\thook", "invisible character", "no se ve"),
    ];
    for (environment, url, english, spanish) in table {
        for (language, word) in [("en", english), ("es", spanish)] {
            member.language = language;
            let response = set_webhook(&member, environment, url).await;
            assert_eq!(response.status, 400, "{url}");
            assert!(response.text().contains(word), "{url}: {}", response.text());
        }
    }
    let response =
        member.post("/dashboard/webhooks/sandbox", &[("url", HOOK), ("events", "x")]).await;
    assert_eq!(response.status, 404);
    assert!(member.page("/dashboard/webhooks/sandbox").await.contains("Configurar webhook"));
}

#[tokio::test]
async fn a_search_redirects_to_a_url_without_the_typed_text() {
    let (test, member, caller) = TestService::with_member_and_key().await;
    test.order(&caller, "SB-SUCCESS-0001").await;
    let search = async |fields: &[(&str, &str)]| {
        let response = member.post("/dashboard/parcels", fields).await;
        (response.status, response.header("location").to_owned(), response.text())
    };
    let found = search(&[("number", " sb-success-0001 ")]).await;
    assert_eq!(found.1, "/dashboard/parcels/sandbox/SB-SUCCESS-0001");
    let filtered =
        search(&[("environment", "sandbox"), ("status", "DELIVERED"), ("from", "2026-01-01")])
            .await;
    let list = "/dashboard/parcels?environment=sandbox&status=DELIVERED&from=2026-01-01";
    assert_eq!(filtered.1, list);
    for (name, typed) in
        [("number", "María Gómez"), ("number", "%_"), ("from", "María"), ("to", "1714307103")]
    {
        let (status, location, html) = search(&[(name, typed)]).await;
        assert_eq!((status, location.as_str()), (400, ""), "{typed}");
        assert!(html.contains("role=\"alert\""), "{typed}");
    }
    let strange = search(&[("status", "María"), ("environment", "María"), ("page", "María")]).await;
    assert_eq!(strange.1, "/dashboard/parcels?environment=production");
    let missing = search(&[("number", "SB-SUCCESS-0009"), ("environment", "sandbox")]).await;
    assert_eq!(missing.0, 400);
    assert!(missing.2.contains("No parcel matches."));
    assert!(
        !missing.2.contains("SB-SUCCESS-0001"),
        "no list is shown below a search without results"
    );
    assert_eq!(ErrorCode::ValidationFailed.status(), missing.0);
}

#[tokio::test]
async fn the_search_field_finds_numbers_references_and_names() {
    let (test, member, caller) = TestService::with_member_and_key().await;
    test.order(&caller, "SB-SUCCESS-0001").await;
    let search = async |text: &str| {
        let fields = [("environment", "sandbox"), ("number", text)];
        let response = member.post("/dashboard/parcels", &fields).await;
        (response.status, response.header("location").to_owned(), response.text())
    };
    for only in ["0001", "sb success"] {
        let (status, address, _) = search(only).await;
        let parcel = "/dashboard/parcels/sandbox/SB-SUCCESS-0001";
        assert_eq!((status, &*address), (303, parcel), "{only}");
    }
    test.order(&caller, "SB-SECOND-0002").await;
    let (status, address, html) = search("sb-s").await;
    assert_eq!((status, &*address), (200, ""), "the URL does not contain the typed text");
    assert!(html.contains("SB-SUCCESS-0001") && html.contains("SB-SECOND-0002"));
    assert!(html.contains("value=\"sb-s\"") && !html.contains("parcels.csv"), "{html}");
    // An exact number comes before those that begin with it.
    test.order(&caller, "SB-SECOND-00021").await;
    assert_eq!(search("sb-second-000").await.0, 200, "a part of two");
    for whole in ["sb second 0002", "\"SB-SECOND-0002\""] {
        assert_eq!(search(whole).await.1, "/dashboard/parcels/sandbox/SB-SECOND-0002", "{whole}");
    }
}
