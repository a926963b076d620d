//! A shop's first day in a real browser, with the real server: sign in, create a key, use it, see the
//! parcel and its label, set a webhook up, test it, change its secret, revoke the key.

use parcelo::{ApiKey, Client, ErrorKind, OrderRequest, model::EventData};

use crate::{
    api::order,
    browser::{Browser, Window},
    deliveries::Receiver,
    running::TestSetup,
    waiting::until,
};

const PHONE: Window = Window { width: 390, height: 844, dark: false };

/// Returns the password that the server printed.
pub(super) fn password(setup: &TestSetup) -> String {
    let output = setup.output();
    output.lines().rev().find(|line| line.starts_with("  ")).unwrap().trim().to_owned()
}

fn client(key: &ApiKey, url: &str) -> Client {
    Client::builder(key.clone()).base_url(url).unwrap().build().unwrap()
}

fn an_order(key: &str) -> OrderRequest {
    serde_json::from_value(order(key)).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a browser: `.ci/prove browser` installs it and runs this"]
async fn a_shops_first_day_in_a_browser() {
    let (setup, receiver, browser) =
        (TestSetup::new(), Receiver::start().await, Browser::start().await);
    let running = setup.start(&[]);
    let dashboard = format!("{}/dashboard", running.url("admin"));
    browser.resize(PHONE).await;

    // Sign in, starting at any page.
    browser.open(&format!("{dashboard}/keys?lang=en")).await;
    let to_keys = format!("{dashboard}/sign-in?next=%2Fdashboard%2Fkeys");
    assert_eq!(browser.current_url().await, to_keys);
    browser.fill("[name=password]", "not the password").await;
    browser.click_and_wait("main button").await;
    assert!(browser.text("main").await.contains("Incorrect account or password"));
    browser.fill("[name=password]", &password(&setup)).await;
    browser.click_and_wait("main button").await;
    assert_eq!(browser.text("h1").await, "API keys", "the page that was asked for");
    let cookies = browser.cookies().await;
    let session = cookies.iter().find(|cookie| cookie["name"] == "__Host-parcelo_session").unwrap();
    assert!(session["httpOnly"] == true && session["secure"] == true, "{session}");
    assert_eq!(session["sameSite"], "Strict");
    let cookie = browser.run_script("return document.cookie").await;
    assert_eq!(cookie, "", "scripts cannot read the cookie");

    // Create a key: it is shown once, and one click selects it all.
    browser.open(&format!("{dashboard}/keys")).await;
    browser.click_and_wait("a[href$='/keys/new']").await;
    browser.fill("[name=name]", "First shop").await;
    browser.click_and_wait("main button").await;
    let key = ApiKey::parse(&browser.text("#secret").await).unwrap();
    browser.click("#secret").await;
    let select = "return getSelection().toString()";
    assert_eq!(browser.run_script(select).await, key.secret());
    browser.open(&format!("{dashboard}/keys")).await;
    assert!(
        !browser
            .run_script("return document.documentElement.outerHTML")
            .await
            .to_string()
            .contains(key.secret())
    );

    // Set a webhook up and test it; its delivery is shown.
    browser.open(&format!("{dashboard}/webhooks/sandbox")).await;
    browser.fill("[name=url]", &receiver.url).await;
    browser.click_and_wait("main form button").await;
    let secret = browser.text("#secret").await;
    browser.click_and_wait("main a.strong").await;
    browser.click_and_wait("form[action$='/test'] button").await;
    receiver.wait_for(|came| came.len() == 1).await;
    assert_eq!(receiver.events(&secret)[0].data, EventData::Test);
    while !browser.text(".log").await.contains("Delivered") {
        browser.open(&format!("{dashboard}/webhooks/sandbox")).await;
    }
    assert!(browser.text(".log").await.contains("webhook.test"));

    // Create an order through the SDK; its parcel and its label are shown.
    let client = client(&key, running.sandbox());
    let created = client.orders().create(&an_order("browser-0001")).await.unwrap();
    let number = created.parcel.tracking_number.to_string();
    receiver.wait_for(|came| came.len() == 2).await;
    browser.open(&format!("{dashboard}/parcels")).await;
    browser.fill("[name=number]", &number).await;
    browser.click_and_wait("main button").await;
    assert_eq!(browser.current_url().await, format!("{dashboard}/parcels/sandbox/{number}"));
    assert!(browser.text("main").await.contains("Label generated"));
    let drawn = "const i=document.querySelector('img.label');return i.complete&&i.naturalWidth";
    assert_eq!(browser.run_script(drawn).await, 812);

    // Rotate the secret: the next events are signed with both.
    browser.open(&format!("{dashboard}/webhooks/sandbox")).await;
    browser.click("details:has(form[action$='/rotate']) summary").await;
    browser.click_and_wait("form[action$='/rotate'] button").await;
    let rotated = browser.text("#secret").await;
    assert_ne!(rotated, secret);
    client.orders().create(&an_order("browser-0002")).await.unwrap();
    receiver.wait_for(|came| came.len() == 3).await;
    assert_eq!(receiver.events(&secret).len(), 3);
    assert!(receiver.is_signed(2, &rotated), "both secrets sign");

    // Revoke the key, after a question: it is refused.
    browser.open(&format!("{dashboard}/keys")).await;
    browser.click_and_wait("[aria-label='Revoke: First shop']").await;
    assert_eq!(browser.text("h1").await, "Revoke this key?");
    browser.click_and_wait("main button.danger").await;
    assert!(browser.text("main").await.contains("The key is revoked."));
    until("the key is refused", async || client.health().await.is_err()).await;
    let refused = client.orders().create(&an_order("browser-0003")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Authentication);

    // Sign out: no cookie is left.
    browser.click_and_wait("form[action$='/sign-out'] button").await;
    browser.open(&dashboard).await;
    assert_eq!(browser.current_url().await, format!("{dashboard}/sign-in"));
}
