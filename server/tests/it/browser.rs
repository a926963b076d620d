//! A real browser, driven through `WebDriver`: Debian's chromium with its chromedriver.

use std::{
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use reqwest::Method;
use serde_json::{Value, json};

use crate::waiting::{LONG, until};

/// The name of an element in `WebDriver`.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Keys as `WebDriver` writes them.
pub(crate) const TAB: &str = "\u{e004}";
pub(crate) const ENTER: &str = "\u{e007}";
pub(crate) const SPACE: &str = " ";

const PHONE: Window = Window { width: 390, height: 844, dark: false };
const DESKTOP: Window = Window { width: 1200, height: 860, dark: false };

/// The windows in which every page is checked.
const WINDOWS: [Window; 4] =
    [PHONE, Window { dark: true, ..PHONE }, DESKTOP, Window { dark: true, ..DESKTOP }];

/// Returns the violations that axe-core finds, one a line. Closed parts of the page are opened, as it sees only what
/// is shown.
const AXE_RUN: &str = "
    document.querySelectorAll('details').forEach(closed => { closed.open = true; });
    const rules = Object.fromEntries(arguments[0].map(rule => [rule, { enabled: false }]));
    const runOnly = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
    return axe.run(document, { runOnly, rules, resultTypes: ['violations'] }).then(result =>
        result.violations.flatMap(({ id, help, nodes }) =>
            nodes.map(node => `${id} at ${node.target.join(' ')}: ${help}`)).join('\\n'));";

/// A headless browser with one window, which ends when it is dropped.
pub(crate) struct Browser {
    driver: Child,
    http: reqwest::Client,
    session: String,
}

/// The size of a browser window, and the user's colour scheme.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) dark: bool,
}

impl Browser {
    pub(crate) async fn start() -> Self {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("Debian's chromium-driver is installed");
        let output = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = output.map_while(Result::ok).find_map(|line| {
            let (_, port) = line.split_once("started successfully on port ")?;
            Some(port.trim_end_matches('.').to_owned())
        });
        let url = format!("http://127.0.0.1:{}/session", port.expect("chromedriver says its port"));
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
        ];
        let capabilities = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": { "args": arguments },
        } } });
        let http = reqwest::Client::new();
        let mut browser = Self { driver, http, session: url.clone() };
        let session = browser.send_command(Method::POST, "", &capabilities).await;
        browser.session = format!("{url}/{}", session["sessionId"].as_str().unwrap());
        browser
    }

    async fn send_command(&self, method: Method, path: &str, body: &Value) -> Value {
        let response = self.try_command(method, path, body).await;
        response.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    async fn try_command(&self, method: Method, path: &str, body: &Value) -> Result<Value, Value> {
        let request = self.http.request(method.clone(), format!("{}{path}", self.session));
        let request = if method == Method::POST { request.body(body.to_string()) } else { request };
        let response = request.send().await.unwrap();
        let is_done = response.status().is_success();
        let response: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
        if is_done {
            Ok(response["value"].clone())
        } else {
            Err(response["value"]["message"].clone())
        }
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        self.send_command(Method::POST, path, body).await
    }

    /// Runs a command of the Chrome `DevTools` protocol, for what `WebDriver` does not offer.
    async fn chromium_command(&self, command: &str, values: &Value) -> Value {
        self.post("/goog/cdp/execute", &json!({ "cmd": command, "params": values })).await
    }

    pub(crate) async fn resize(&self, window: Window) {
        let size = json!({ "width": window.width, "height": window.height,
            "deviceScaleFactor": 1, "mobile": window.width < 600 });
        self.chromium_command("Emulation.setDeviceMetricsOverride", &size).await;
        let likes = if window.dark { "dark" } else { "light" };
        let likes = json!([{ "name": "prefers-color-scheme", "value": likes }]);
        self.chromium_command("Emulation.setEmulatedMedia", &json!({ "features": likes })).await;
    }

    pub(crate) async fn open(&self, url: &str) {
        self.post("/url", &json!({ "url": url })).await;
    }

    pub(crate) async fn current_url(&self) -> String {
        self.send_command(Method::GET, "/url", &json!({})).await.as_str().unwrap().to_owned()
    }

    async fn find(&self, selector: &str) -> String {
        let by = json!({ "using": "css selector", "value": selector });
        self.post("/element", &by).await[ELEMENT].as_str().unwrap().to_owned()
    }

    /// Clicks an element.
    pub(crate) async fn click(&self, selector: &str) {
        let element = self.find(selector).await;
        self.post(&format!("/element/{element}/click"), &json!({})).await;
    }

    /// Clicks a button or a link, and waits for the next page.
    pub(crate) async fn click_and_wait(&self, selector: &str) {
        self.run_script("document.old = true").await;
        self.click(selector).await;
        self.wait_for_next_page().await;
    }

    /// Presses keys, and waits for the next page.
    pub(crate) async fn press_and_wait(&self, keys: &str) {
        self.run_script("document.old = true").await;
        self.press(keys).await;
        self.wait_for_next_page().await;
    }

    /// Presses keys one after another, wherever the focus is.
    pub(crate) async fn press(&self, keys: &str) {
        let event = |(kind, key): (&str, char)| json!({ "type": kind, "value": key });
        let both = |key| [("keyDown", key), ("keyUp", key)].map(event);
        let events: Vec<_> = keys.chars().flat_map(both).collect();
        let keyboard = json!({ "type": "key", "id": "keyboard", "actions": events });
        self.post("/actions", &json!({ "actions": [keyboard] })).await;
    }

    async fn wait_for_next_page(&self) {
        let script = "return document.old !== true && document.readyState === 'complete'";
        let is_new = json!({ "script": script, "args": [] });
        // While a page is being left, the browser may respond with an error.
        until("the next page is loaded", async || {
            self.try_command(Method::POST, "/execute/sync", &is_new).await == Ok(json!(true))
        })
        .await;
    }

    /// Replaces the content of a field.
    pub(crate) async fn fill(&self, selector: &str, text: &str) {
        let element = self.find(selector).await;
        self.post(&format!("/element/{element}/clear"), &json!({})).await;
        self.post(&format!("/element/{element}/value"), &json!({ "text": text })).await;
    }

    /// Returns an element's visible text.
    pub(crate) async fn text(&self, selector: &str) -> String {
        let element = self.find(selector).await;
        let text =
            self.send_command(Method::GET, &format!("/element/{element}/text"), &json!({})).await;
        text.as_str().unwrap().to_owned()
    }

    /// Returns the result of a script, given as the body of a function.
    pub(crate) async fn run_script(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({ "script": script, "args": [] })).await
    }

    /// Checks in the browser's layout that nothing on the page is wider than the window.
    pub(crate) async fn assert_fits(&self, what: &str) {
        let script = "const e=document.documentElement;return e.scrollWidth>e.clientWidth?\
            [...document.querySelectorAll('body *')].filter(x=>x.getBoundingClientRect().right>e.clientWidth)\
            .map(x=>x.outerHTML.slice(0,80)).join('\\n')||'wide':''";
        let wide = self.run_script(script).await;
        assert_eq!(wide, "", "{what} is too wide");
    }

    /// Checks with axe-core that the page breaks no rule of WCAG 2.2 A and AA and no best practice, except for the
    /// exempt rules.
    pub(crate) async fn assert_accessible(&self, what: &str, exempt_rules: &[&str]) {
        let file =
            std::env::var_os("PARCELO_AXE").expect("PARCELO_AXE names axe-core's axe.min.js");
        let script = fs::read_to_string(file).unwrap() + AXE_RUN;
        let body = json!({ "script": script, "args": [exempt_rules] });
        let violations = self.post("/execute/sync", &body).await;
        assert_eq!(violations, "", "{what} has violations of accessibility");
    }

    /// Checks a page in both languages, in light and dark, on a phone and on a desk: it fits, loads nothing from
    /// elsewhere, and axe-core finds no violation. `PARCELO_PICTURES` names a folder for its screenshots.
    pub(crate) async fn check_page(&self, name: &str, url: &str, exempt_rules: &[&str]) {
        let folder = std::env::var_os("PARCELO_PICTURES").map(PathBuf::from);
        let join = if url.contains('?') { '&' } else { '?' };
        for language in ["en", "es"] {
            for window in WINDOWS {
                self.resize(window).await;
                self.open(&format!("{url}{join}lang={language}")).await;
                let dark = if window.dark { "-dark" } else { "" };
                let what = format!("{name}-{language}-{}{dark}", window.width);
                // The reference is drawn by a script.
                let is_drawn = "return !document.querySelector('#swagger-ui')||!!document.querySelector('.opblock')";
                until("the page is drawn", async || self.run_script(is_drawn).await == true).await;
                self.assert_fits(&what).await;
                let elsewhere = "return performance.getEntriesByType('resource').map(x=>x.name)\
                    .filter(x=>!x.startsWith(location.origin+'/')&&!x.startsWith('data:')).join('\\n')";
                assert_eq!(
                    self.run_script(elsewhere).await,
                    "",
                    "{what} loads files from elsewhere"
                );
                if let Some(folder) = &folder {
                    let picture = self.screenshot().await;
                    fs::write(folder.join(format!("{what}.png")), picture).unwrap();
                }
                self.assert_accessible(&what, exempt_rules).await;
            }
        }
    }

    /// Returns the page's cookies, as the browser keeps them.
    pub(crate) async fn cookies(&self) -> Vec<Value> {
        let cookies = self.send_command(Method::GET, "/cookie", &json!({})).await;
        cookies.as_array().unwrap().clone()
    }

    /// Takes a screenshot of the window, as PNG.
    pub(crate) async fn screenshot(&self) -> Vec<u8> {
        let picture = self.send_command(Method::GET, "/screenshot", &json!({})).await;
        STANDARD.decode(picture.as_str().unwrap()).unwrap()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Browser and files are removed when chromedriver is asked to end, but not when it is killed.
        if self.shut_down().is_err() {
            let _ = self.driver.kill();
        }
        let _ = self.driver.wait();
    }
}

impl Browser {
    fn shut_down(&self) -> io::Result<()> {
        let host = self.session.split('/').nth(2).unwrap();
        let mut stream = TcpStream::connect(host)?;
        stream.set_read_timeout(Some(LONG))?;
        write!(stream, "GET /shutdown HTTP/1.1\r\nhost: {host}\r\n\r\n")?;
        stream.read_exact(&mut [0])
    }
}
