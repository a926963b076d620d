//! Signing in and out: credentials, the lifetime of a session, and attacks that fail.

use std::{
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use parcelo_server::internals::{Millis, SESSION_LIFETIME_MILLIS};

use super::service::{PASSWORD, TestService, Visitor, cookie, token_in};
use crate::{
    api::HttpResponse,
    running::{BINARY, TestSetup},
};

fn status_and_location(response: &HttpResponse) -> (u16, &str) {
    (response.status, response.header("location"))
}

#[tokio::test]
async fn only_the_right_password_signs_in() {
    let test = TestService::new().await;
    let table = [
        ("default", PASSWORD, 303),
        (" default ", PASSWORD, 303),
        ("default", "", 401),
        ("default", "ñandú, twelve or mor", 401),
        ("unknown", PASSWORD, 401),
        ("", PASSWORD, 401),
    ];
    for (account, password, status) in table {
        let mut visitor = test.visitor();
        let response = visitor.sign_in(account, password).await;
        assert_eq!(response.status, status, "{account:?} {password:?}");
        assert_eq!(visitor.session.is_some(), status == 303);
        let overview = visitor.get("/dashboard").await;
        assert_eq!(overview.status, if status == 303 { 200 } else { 303 }, "{account:?}");
        test.advance_clock(Millis::MINUTE);
    }
}

#[tokio::test]
async fn a_wrong_password_looks_like_an_unknown_account() {
    let test = TestService::new().await;
    let wrong = |account: &'static str| {
        let mut visitor = test.visitor();
        async move { (visitor.sign_in(account, "wrong").await, visitor) }
    };
    let ((known, one), (unknown, other)) = (wrong("default").await, wrong("unknown").await);
    assert_eq!((known.status, unknown.status), (401, 401));
    let plain = |response: &HttpResponse, visitor: &Visitor, account: &str| {
        let token = token_in(&response.text());
        assert!(visitor.guest.is_some());
        response.text().replace(&token, "").replace(account, "")
    };
    assert_eq!(plain(&known, &one, "default"), plain(&unknown, &other, "unknown"));
    assert!(known.text().contains("Incorrect account or password"));
}

#[tokio::test]
async fn the_cookie_is_http_only_same_site_and_secure() {
    let test = TestService::new().await;
    let response = test.visitor().sign_in("default", PASSWORD).await;
    let mut lines =
        response.headers.get_all("set-cookie").iter().map(|line| line.to_str().unwrap());
    let line = lines.rfind(|line| line.starts_with("__Host-parcelo_session=")).unwrap();
    for flag in ["Path=/", "HttpOnly", "Secure", "SameSite=Strict", "Max-Age=43200"] {
        assert!(line.split("; ").any(|part| part == flag), "{line}: {flag}");
    }
}

#[tokio::test]
async fn a_session_id_chosen_by_an_attacker_is_ignored() {
    let test = TestService::new().await;
    // Cookies of the attacker that the victim's browser is made to send.
    let mut attacker = test.visitor();
    let form = attacker.get("/dashboard/sign-in").await;
    attacker.guest = cookie(&form, "__Host-parcelo_guest");
    attacker.session = Some("a-session-that-the-attacker-knows".to_owned());
    let mut victim = attacker.clone();
    assert_eq!(victim.sign_in("default", PASSWORD).await.status, 303);
    assert_ne!(victim.session, attacker.session);
    assert_ne!(victim.session, victim.guest);
    assert_eq!(status_and_location(&attacker.get("/dashboard").await), (303, "/dashboard/sign-in"));
    let mut with_guest = attacker.clone();
    with_guest.session.clone_from(&attacker.guest);
    assert_eq!(with_guest.get("/dashboard").await.status, 303);
    assert_eq!(victim.get("/dashboard").await.status, 200);
}

#[tokio::test]
async fn signing_in_again_ends_the_previous_session() {
    let test = TestService::new().await;
    let first = test.member("default").await;
    let mut again = test.visitor();
    let form = again.get("/dashboard/sign-in").await;
    let token = token_in(&form.text());
    again.guest = cookie(&form, "__Host-parcelo_guest");
    again.session.clone_from(&first.session);
    let fields = [("form", token.as_str()), ("account", "default"), ("password", PASSWORD)];
    let response = again.post_raw("/dashboard/sign-in", &fields).await;
    let second = cookie(&response, "__Host-parcelo_session");
    assert!(second.is_some() && second != first.session);
    assert_eq!(first.get("/dashboard").await.status, 303);
}

#[tokio::test]
async fn a_session_ends_after_exactly_twelve_hours() {
    let (test, member) = TestService::with_member().await;
    test.advance_clock(SESSION_LIFETIME_MILLIS - 1);
    assert_eq!(member.get("/dashboard").await.status, 200);
    test.advance_clock(1);
    assert_eq!(status_and_location(&member.get("/dashboard").await), (303, "/dashboard/sign-in"));
    let posted = member.post_raw("/dashboard/keys", &[("name", "Late")]).await;
    assert_eq!(posted.status, 401, "the form to sign in is shown");
    test.service.purge_sessions().await.unwrap();
    test.advance_clock(-Millis::HOUR);
    assert_eq!(member.get("/dashboard").await.status, 303, "the session is deleted");
}

#[tokio::test]
async fn signing_out_ends_the_session_for_every_copy_of_its_cookie() {
    let (_test, member) = TestService::with_member().await;
    let copy = member.clone();
    let response = member.post("/dashboard/sign-out", &[]).await;
    assert_eq!(status_and_location(&response), (303, "/dashboard/sign-in"));
    assert_eq!(cookie(&response, "__Host-parcelo_session"), None);
    assert!(response.headers.get_all("set-cookie").iter().any(|line| {
        line.to_str().unwrap().starts_with("__Host-parcelo_session=; ")
            && line.to_str().unwrap().contains("Max-Age=0")
    }));
    assert_eq!(copy.get("/dashboard").await.status, 303);
}

#[tokio::test]
async fn a_new_password_ends_all_sessions_of_its_account_only() {
    let test = TestService::new().await;
    test.set_password("other").await;
    let (one, two, other) =
        (test.member("default").await, test.member("default").await, test.member("other").await);
    test.set_password("default").await;
    assert_eq!(one.get("/dashboard").await.status, 303);
    assert_eq!(two.get("/dashboard").await.status, 303);
    assert_eq!(other.get("/dashboard").await.status, 200);
}

/// Tries passwords for an account from many IP addresses.
struct PasswordGuesser {
    form: Visitor,
    token: String,
}

impl PasswordGuesser {
    async fn new(test: &TestService) -> Self {
        let mut form = test.visitor();
        let page = form.get("/dashboard/sign-in").await;
        form.guest = cookie(&page, "__Host-parcelo_guest");
        Self { form, token: token_in(&page.text()) }
    }

    async fn try_password(&self, account: &str, client: &str, password: &str) -> HttpResponse {
        let fields = [("form", self.token.as_str()), ("account", account), ("password", password)];
        let request = self.form.form("/dashboard/sign-in", &fields);
        crate::api::send(request.header("x-forwarded-for", client)).await
    }
}

/// Starts a service that takes the addresses of its visitors from a trusted proxy.
async fn start_behind_proxy() -> TestService {
    TestService::with(|settings| settings.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()])
        .await
}

#[tokio::test]
async fn after_five_failures_an_ip_address_waits_ever_longer() {
    let test = start_behind_proxy().await;
    let guesser = PasswordGuesser::new(&test).await;
    let default = async |client: &str, password: &str| {
        guesser.try_password("default", client, password).await
    };
    for _ in 0..5 {
        assert_eq!(default("203.0.113.7", "wrong").await.status, 401);
    }
    for password in ["wrong", PASSWORD] {
        let refused = default("203.0.113.7", password).await;
        assert_eq!((refused.status, refused.header("retry-after")), (429, "60"));
        assert!(refused.text().contains("Too many attempts") && refused.text().contains("60 s"));
    }
    assert_eq!(default("203.0.113.8", PASSWORD).await.status, 303, "another address may");
    test.advance_clock(Millis::MINUTE);
    assert_eq!(default("203.0.113.7", "wrong").await.status, 401);
    assert_eq!(default("203.0.113.7", "wrong").await.header("retry-after"), "120");
    test.advance_clock(2 * Millis::MINUTE);
    assert_eq!(default("203.0.113.7", PASSWORD).await.status, 303);
    // An IPv6 network of one household counts as one address.
    for last in 0..5 {
        let response = guesser.try_password("other", &format!("2001:db8::{last}"), "wrong").await;
        assert_eq!(response.status, 401);
    }
    assert_eq!(guesser.try_password("other", "2001:db8::ffff", PASSWORD).await.status, 429);
}

#[tokio::test]
async fn successful_sign_ins_are_never_throttled() {
    let test = start_behind_proxy().await;
    let guesser = PasswordGuesser::new(&test).await;
    for _ in 0..20 {
        assert_eq!(guesser.try_password("default", "203.0.113.7", PASSWORD).await.status, 303);
    }
}

#[tokio::test]
async fn guessing_throttles_an_account_but_not_its_owner() {
    let test = start_behind_proxy().await;
    let guesser = PasswordGuesser::new(&test).await;
    assert_eq!(guesser.try_password("default", "2001:db8:7::1", PASSWORD).await.status, 303);
    let member = test.member("default").await;
    for client in 1..=10 {
        let response =
            guesser.try_password("default", &format!("198.51.100.{client}"), "wrong").await;
        assert_eq!(response.status, 401);
    }
    for account in ["default", "unknown"] {
        // The response does not show whether the account exists.
        for client in 1..=10 {
            guesser.try_password(account, &format!("203.0.113.{client}"), "wrong").await;
        }
        let refused = guesser.try_password(account, "192.0.2.1", PASSWORD).await;
        assert_eq!((refused.status, refused.header("retry-after")), (429, "60"), "{account}");
    }
    assert_eq!(member.get("/dashboard").await.status, 200, "a signed-in user is not throttled");
    let again = guesser.try_password("default", "2001:db8:7::2", PASSWORD).await;
    assert_eq!(again.status, 303, "from a network that signed in before");
    let mut elsewhere = PasswordGuesser::new(&test).await;
    elsewhere.form.session.clone_from(&member.session);
    let again = elsewhere.try_password("default", "192.0.2.77", PASSWORD).await;
    assert_eq!(again.status, 303, "with a session, from anywhere");
    test.advance_clock(Millis::MINUTE);
    let later = guesser.try_password("default", "192.0.2.1", PASSWORD).await;
    assert_eq!(later.status, 303, "the pause ends");
}

#[tokio::test]
async fn the_sign_in_form_must_come_from_its_own_page() {
    let test = TestService::new().await;
    let (mut one, mut other) = (test.visitor(), test.visitor());
    let (first, second) =
        (one.get("/dashboard/sign-in").await, other.get("/dashboard/sign-in").await);
    one.guest = cookie(&first, "__Host-parcelo_guest");
    other.guest = cookie(&second, "__Host-parcelo_guest");
    let (own, foreign) = (token_in(&first.text()), token_in(&second.text()));
    assert_ne!(own, foreign);
    let fields = |token| [("form", token), ("account", "default"), ("password", PASSWORD)];
    for token in ["", "guess", &foreign] {
        assert_eq!(one.post_raw("/dashboard/sign-in", &fields(token)).await.status, 403, "{token}");
    }
    let cross =
        one.form("/dashboard/sign-in", &fields(&own)).header("sec-fetch-site", "cross-site");
    assert_eq!(crate::api::send(cross).await.status, 403);
    let without = Visitor { guest: None, ..one.clone() };
    let response = without.post_raw("/dashboard/sign-in", &fields(&own)).await;
    assert_eq!(response.status, 403);
    let html = response.text();
    assert!(html.contains("does not keep cookies"), "it says what to do: {html}");
    assert_eq!(one.post_raw("/dashboard/sign-in", &fields(&own)).await.status, 303);
}

#[tokio::test]
async fn the_sign_in_page_redirects_a_signed_in_user() {
    let (_test, member) = TestService::with_member().await;
    assert_eq!(status_and_location(&member.get("/dashboard/sign-in").await), (303, "/dashboard"));
    for path in ["/", "/dashboard/"] {
        assert_eq!(status_and_location(&member.get(path).await), (303, "/dashboard"));
    }
}

fn set_password(setup: &TestSetup, account: &str, password: &str) -> (bool, String) {
    let mut command = Command::new(BINARY);
    command.env_clear().args(["accounts", "password", account, "--database", &setup.database()]);
    run_with_input(&mut command, password)
}

fn run_with_input(command: &mut Command, input: &str) -> (bool, String) {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

fn run_in_shell(command: &str, input: &str) -> (bool, String) {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).env_clear().env("PATH", Path::new(BINARY).parent().unwrap());
    run_with_input(&mut shell, input)
}

#[tokio::test]
async fn the_command_to_change_the_password_works_as_shown() {
    let (setup, running) = TestSetup::new_and_start();
    let visitor = Visitor::at(running.url("admin"), "en");
    let page = visitor.page("/dashboard/sign-in").await;
    let page = page.replace("&#39;", "'").replace("&#38;", "&");
    let shown = page.split("<code>").nth(1).unwrap().split("</code>").next().unwrap();
    let printed = setup.output();
    let printed = printed.rsplit("run `").next().unwrap().split('`').next().unwrap();
    for (command, password) in [(shown, "twelve or more, one"), (printed, "twelve or more, two")] {
        let (done, output) = run_in_shell(command, password);
        assert!(done, "{command}: {output}");
        let mut member = Visitor::at(running.url("admin"), "en");
        assert_eq!(member.sign_in("default", password).await.status, 303, "{command}");
    }
}

#[tokio::test]
async fn a_new_database_prints_its_password_once() {
    let setup = TestSetup::new();
    let running = setup.start_with(&[("PARCELO_LOG", "debug")], &[]);
    let visitor = |language| Visitor::at(running.url("admin"), language);
    let output = setup.output();
    let (_, rest) = output.rsplit_once("shown only once:\n\n  ").unwrap();
    let first = rest.lines().next().unwrap();
    assert_eq!(output.matches(first).count(), 1);
    let mut member = visitor("en");
    assert_eq!(member.sign_in("default", first).await.status, 303);

    let (done, output) = set_password(&setup, "default", "another one, twelve\n");
    assert!(done && !output.contains("twelve"), "{output}");
    assert_eq!(member.get("/dashboard").await.status, 303, "its sessions have ended");
    assert_eq!(visitor("en").sign_in("default", first).await.status, 401);
    assert_eq!(visitor("en").sign_in("default", "another one, twelve").await.status, 303);
    let (done, output) = set_password(&setup, "Second shop", "another one, twelve\r\n");
    assert!(!done && output.contains("no account is named Second shop"), "{output}");
    let mut create = Command::new(BINARY);
    create.args(["accounts", "create", "Second shop", "--database", &setup.database()]);
    assert!(create.env_clear().status().unwrap().success());
    let (done, output) = set_password(&setup, "Second shop", "another one, twelve\r\n");
    assert!(done, "{output}");
    assert_eq!(visitor("es").sign_in("Second shop", "another one, twelve").await.status, 303);
    for bad in ["", "short\n", "twelve chars\nand more\n", &" ".repeat(12), &"a".repeat(201)] {
        let (done, output) = set_password(&setup, "default", bad);
        assert!(!done && output.contains("12 to 200 characters"), "{bad:?}: {output}");
    }
    running.stop();
    let logs = setup.output();
    let after = logs.replacen(first, "", 1);
    let session = member.session.as_deref().unwrap();
    for secret in [first, "another one, twelve", session, "Second shop"] {
        assert!(!after.contains(secret), "{secret} is in the logs");
    }
    let again = setup.start(&[]);
    assert!(again.url("admin").starts_with("http"));
    assert_eq!(setup.output().matches("account default, with this password").count(), 1);
}
