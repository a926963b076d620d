//! The OpenAPI document: served, checked in, and true.

use parcelo::Operation;
use parcelo_server::mock::MockServer;
use serde_json::Value;

use crate::api::Api;

const CHECKED_IN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/openapi.json");

async fn served() -> Value {
    let server = MockServer::start().await;
    let answer = Api::new(server.url()).get("/openapi.json").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, "application/json"));
    answer.json()
}

/// `PARCELO_BLESS=1` writes the document that the code describes.
#[tokio::test]
async fn the_checked_in_document_is_the_one_that_is_served() {
    let served = serde_json::to_string_pretty(&served().await).unwrap() + "\n";
    if std::env::var_os("PARCELO_BLESS").is_some() {
        std::fs::write(CHECKED_IN, &served).unwrap();
    }
    let checked_in = std::fs::read_to_string(CHECKED_IN).unwrap();
    assert!(
        checked_in == served,
        "docs/openapi.json is old: run `just bless` and look at the diff"
    );
}

#[tokio::test]
async fn every_reference_leads_to_a_schema_and_every_path_to_an_operation() {
    let document = served().await;
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let text = document.to_string();
    let references = text.split("\"#/components/schemas/").skip(1);
    let names: Vec<_> = references.map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(!names.is_empty() && names.iter().all(|name| schemas.contains_key(*name)), "{names:?}");
    for (path, item) in document["paths"].as_object().unwrap() {
        let known = Operation::ALL.iter().find(|operation| operation.path() == path);
        let method = known.unwrap_or_else(|| panic!("{path}")).method().as_str().to_lowercase();
        assert!(item[method].is_object(), "{path}");
    }
}

/// What a page's text loads: the values of its `src` and `href`.
fn loaded(html: &str) -> Vec<String> {
    let values = html.split(" src=\"").skip(1).chain(html.split(" href=\"").skip(1));
    values.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn the_page_over_the_document_loads_its_own_files_only() {
    let server = MockServer::start().await;
    let api = Api::new(server.url());
    // The client has followed `/docs` to the page.
    let page = api.get("/docs").await;
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    assert!(page.text().contains("<title>Parcelo API</title>"));
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
    let files = loaded(&page.text());
    assert!(files.len() >= 5, "{files:?}");
    for file in files {
        let name = file.strip_prefix("./").unwrap_or(&file);
        let answer = api.get(&format!("/docs/{name}")).await;
        assert_eq!((answer.status, answer.bytes.is_empty()), (200, false), "{file}");
    }
    let start = api.get("/docs/swagger-initializer.js").await.text();
    assert!(start.contains("\"../openapi.json\""), "{start}");
    assert!(start.contains("\"validatorUrl\": \"none\""), "{start}");
    assert_eq!(api.get("/docs/no.js").await.refusal(), (404, "NOT_FOUND".to_owned()));
}
