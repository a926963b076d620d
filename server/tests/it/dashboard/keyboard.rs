//! The dashboard without a mouse, in a real browser.

use super::service::{PASSWORD, TestService};
use crate::{
    browser::{Browser, ENTER, SPACE, TAB},
    waiting::until,
};

/// The path of the parcel's page.
const PARCEL: &str = "/dashboard/parcels/sandbox/SB-NORMAL-0001";

/// Presses the tab key until an element has the focus, which must be visible at each stop.
async fn tab_to(browser: &Browser, selector: &str) {
    let script = format!(
        "const e=document.activeElement,s=getComputedStyle(e),r=e.getBoundingClientRect();\
         if(e===document.body)return 'nothing more';\
         if(s.outlineStyle==='none'||parseFloat(s.outlineWidth)<2||r.right<=0||r.bottom<=0)\
         return 'no visible focus: '+e.outerHTML;\
         return e.matches(`{selector}`)?'there':'further'"
    );
    loop {
        browser.press(TAB).await;
        let stop = browser.run_script(&script).await;
        match stop.as_str().unwrap() {
            "further" => {}
            "there" => return,
            other => panic!("on the way to {selector}: {other}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a browser: `.ci/prove browser` installs it and runs this"]
async fn a_parcel_is_voided_and_a_key_created_by_the_keyboard_alone() {
    let (test, caller) = TestService::with_key().await;
    test.order(&caller, "SB-NORMAL-0001").await;
    let browser = Browser::start().await;

    // Signing in leads to the page that was asked for.
    browser.open(&format!("{}{PARCEL}?lang=en", test.url)).await;
    let is_ready = "return document.activeElement.name==='password'";
    until("the password's field has the focus", async || {
        browser.run_script(is_ready).await == true
    })
    .await;
    browser.press(PASSWORD).await;
    browser.press_and_wait(ENTER).await;
    assert_eq!(browser.text("h1").await, "SB-NORMAL-0001");

    // The first stop skips the menu.
    tab_to(&browser, ".skip").await;
    browser.press(ENTER).await;
    browser.press(TAB).await;
    let is_past_menu = "return document.activeElement===document.querySelector('main a')";
    assert_eq!(browser.run_script(is_past_menu).await, true);

    tab_to(&browser, "[value=reprint]").await;
    browser.press_and_wait(SPACE).await;
    assert!(browser.text("[role=status]").await.contains("The label has a new version"));
    tab_to(&browser, "summary").await;
    browser.press(ENTER).await;
    tab_to(&browser, "[value=void]").await;
    browser.press_and_wait(ENTER).await;
    assert!(browser.text("[role=status]").await.contains("The order is voided"));

    tab_to(&browser, "a[href='/dashboard/keys']").await;
    browser.press_and_wait(ENTER).await;
    tab_to(&browser, "a[href$='/keys/new']").await;
    browser.press_and_wait(ENTER).await;
    tab_to(&browser, "[name=name]").await;
    browser.press("Made by keys").await;
    tab_to(&browser, "main .strong").await;
    browser.press_and_wait(ENTER).await;
    tab_to(&browser, "#secret").await;
    tab_to(&browser, "main a.strong").await;
    browser.press_and_wait(ENTER).await;
    assert!(browser.text("main").await.contains("Made by keys"));

    tab_to(&browser, "form[action$='/sign-out'] button").await;
    browser.press_and_wait(ENTER).await;
    assert_eq!(browser.current_url().await, format!("{}/dashboard/sign-in", test.url));
}
