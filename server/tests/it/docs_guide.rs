//! The guide on `/docs/`: its commands are run in order in one shell, and print what the guide shows.

use std::{io::Write, process::Command, time::Duration};

use parcelo_server::mock::{Clock, MockServer};
use serde_json::Value;

use crate::api::{Api, order_with_number};

/// The time at which the guide's responses were made.
const NOW: &str = "2026-01-10T15:05:00Z";
/// Sets the same time in the shell, whose `date` becomes part of a tracking number.
const DATE_FUNCTION: &str = "date() { echo 1768057500; }\n";
/// Separates the outputs of two commands.
const SEPARATOR: char = '\u{1e}';

/// A code block of the guide: its class, and its text as a reader copies it.
struct CodeBlock {
    class: String,
    text: String,
}

async fn server() -> MockServer {
    crate::embedded::builder().clock(Clock::frozen(NOW)).start().await
}

fn blocks(page: &str) -> Vec<CodeBlock> {
    let blocks = page.split("<pre><code class=\"").skip(1);
    let block = |rest: &str| {
        let (class, rest) = rest.split_once("\">").unwrap();
        let (text, _) = rest.split_once("</code></pre>").unwrap();
        let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&#34;", "\"");
        CodeBlock { class: class.to_owned(), text: text.replace("&amp;", "&") }
    };
    blocks.map(block).collect()
}

/// Runs the commands in one shell, as a reader does. Returns the output of each.
async fn run(commands: &[&str], server: &MockServer) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut script = tempfile::NamedTempFile::new().unwrap();
    write!(script, "set -euo pipefail\n{DATE_FUNCTION}").unwrap();
    for command in commands {
        write!(script, "{command}\nprintf '{SEPARATOR}'\n").unwrap();
    }
    let mut shell = Command::new("bash");
    shell.arg(script.path()).current_dir(folder.path());
    shell
        .env("PARCELO_BASE_URL", server.url())
        .env("PARCELO_API_KEY", server.key().issue().secret());
    let output = tokio::task::spawn_blocking(move || shell.output().unwrap()).await.unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{printed}\n{}", String::from_utf8_lossy(&output.stderr));
    let label = std::fs::read(folder.path().join("label.pdf")).unwrap();
    assert!(label.starts_with(b"%PDF"));
    assert_eq!(std::fs::read(folder.path().join("labels.pdf")).unwrap(), label);
    printed.split(SEPARATOR).map(|part| part.trim().to_owned()).collect()
}

/// Returns `true` if a response equals the one in the guide, member by member. `…` in the guide matches any text.
fn matches_shown(shown: &Value, real: &Value) -> bool {
    match (shown, real) {
        (Value::Object(shown), Value::Object(real)) => {
            let is_same = |(name, shown)| real.get(name).is_some_and(|v| matches_shown(shown, v));
            shown.len() == real.len() && shown.iter().all(is_same)
        }
        (Value::Array(shown), Value::Array(real)) => {
            shown.len() == real.len() && shown.iter().zip(real).all(|(a, b)| matches_shown(a, b))
        }
        (Value::String(shown), Value::String(real)) => {
            let mut rest = real.as_str();
            let mut parts = shown.split('…');
            let starts = parts.next().is_some_and(|part| {
                rest = rest.strip_prefix(part).unwrap_or("");
                real.starts_with(part)
            });
            let follows = |part: &str| {
                let found = rest.find(part);
                rest = found.map_or("", |at| &rest[at + part.len()..]);
                found.is_some()
            };
            starts && parts.all(follows) && (shown.ends_with('…') || rest.is_empty())
        }
        (shown, real) => shown == real,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_of_the_guide_gets_the_response_shown() {
    let server = server().await;
    let page = Api::new(server.url()).get("/docs/").await.text();
    let blocks = blocks(&page);
    let is_command = |block: &&CodeBlock| block.class == "shell";
    let commands: Vec<_> = blocks.iter().filter(is_command).map(|b| b.text.as_str()).collect();
    assert!(commands.len() >= 10, "{commands:?}");
    let mut printed = run(&commands, &server).await.into_iter();
    let mut last = String::new();
    for CodeBlock { class, text } in &blocks {
        match class.as_str() {
            "shell" => last = printed.next().unwrap(),
            "answer" => {
                let [shown, real] =
                    [text, &last].map(|text| serde_json::from_str::<Value>(text).unwrap());
                assert!(matches_shown(&shown, &real), "shown {shown:#}\nreal {real:#}");
            }
            "output" => assert_eq!(text, &last),
            "event" | "rust" => {}
            other => panic!("a block of class {other}"),
        }
    }
}

#[tokio::test]
async fn the_webhook_in_the_guide_matches_the_one_sent() {
    let server = server().await;
    let api = Api::with_key(server.url(), &server.key().issue());
    let inbox = server.webhook_inbox().start().await;
    api.create_parcel(&order_with_number("guide-0001", "SB-SUCCESS-1001")).await;
    server.clock().advance(Duration::from_secs(5 * 60)).await;
    let page = api.get("/docs/").await.text();
    let blocks = blocks(&page);
    let shown = &blocks.iter().find(|block| block.class == "event").unwrap().text;
    let shown: Value = serde_json::from_str(shown).unwrap();
    let sent = inbox.deliveries();
    let sent: Vec<_> =
        sent.iter().map(|d| serde_json::from_slice::<Value>(&d.body).unwrap()).collect();
    assert!(sent.iter().any(|real| matches_shown(&shown, real)), "{sent:#?}");
}

#[tokio::test]
async fn the_guide_is_in_the_language_of_its_reader() {
    let server = server().await;
    let api = Api::new(server.url());
    let first = |page: String| page.split("<html lang=\"").nth(1).unwrap()[..2].to_owned();
    assert_eq!(first(api.get("/docs/").await.text()), "en");
    assert_eq!(first(api.get("/docs/?lang=es").await.text()), "es");
}
