//! The OpenAPI documents: the checked-in files are those that the server serves, and every example works.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc};

use parcelo::Operation;
use parcelo_server::mock::MockServer;
use serde_json::Value;

use crate::{
    api::{Api, order_with_number, send},
    running::TestSetup,
};

fn docs_path(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs")).join(name)
}

pub(crate) async fn fetch_document(url: &str) -> Value {
    let response = Api::new(url).get("/openapi.json").await;
    assert_eq!((response.status, response.header("content-type")), (200, "application/json"));
    response.json()
}

pub(crate) async fn served() -> Value {
    fetch_document(crate::embedded::start().await.url()).await
}

/// Starts a mock server with controls, as `parcelo-server mock` does.
pub(crate) async fn server_with_controls() -> Arc<MockServer> {
    let server = crate::embedded::builder().start_controlled("127.0.0.1:0".parse().unwrap()).await;
    server.unwrap()
}

/// A test of the library checks that these documents describe the code, including the mock server's, and writes them on
/// request.
#[tokio::test]
async fn the_checked_in_documents_match_the_served_ones() {
    let of_admin = fetch_document(TestSetup::new().start(&[]).url("admin")).await;
    let all = [("openapi.json", served().await), ("openapi-admin.json", of_admin)];
    for (name, served) in all {
        let served = serde_json::to_string_pretty(&served).unwrap() + "\n";
        let checked_in = std::fs::read_to_string(docs_path(name)).unwrap_or_default();
        assert!(checked_in == served, "docs/{name} is not what is served: build again");
    }
}

/// Returns every call under `/__mock/` in a document, as method, path and description.
fn controls(document: &Value) -> Vec<(String, String, &Value)> {
    let paths = document["paths"].as_object().unwrap().iter();
    let controls = paths.filter(|(path, _)| path.starts_with("/__mock/"));
    let calls = controls.flat_map(|(path, item)| {
        let calls = item.as_object().unwrap().iter();
        calls.map(|(method, call)| (method.to_uppercase(), path.clone(), call))
    });
    calls.collect()
}

#[tokio::test]
async fn the_mock_document_has_the_service_and_all_controls() {
    let (mock, service) =
        (fetch_document(server_with_controls().await.url()).await, served().await);
    for (path, item) in service["paths"].as_object().unwrap() {
        assert_eq!(mock["paths"][path], *item, "{path}");
    }
    let documented: BTreeSet<_> =
        controls(&mock).into_iter().map(|(method, path, _)| [method, path]).collect();
    let guide = std::fs::read_to_string(docs_path("testing.md")).unwrap();
    let rows = guide.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let calls = rows.filter_map(|call| call.split_once(' '));
    let of_guide = calls.map(|(method, path)| [method.to_owned(), path.to_owned()]).collect();
    assert_eq!(documented, of_guide);
}

#[tokio::test]
async fn every_control_accepts_its_example_as_documented() {
    let server = server_with_controls().await;
    let document = fetch_document(server.url()).await;
    let key = server.key().issue();
    let api = Api::with_key(server.url(), &key);
    api.create_parcel(&order_with_number("order-0001", "SB-NORMAL-0001")).await;
    let (mut port, mut snapshot) = (String::new(), Vec::new());
    for (method, path, call) in controls(&document) {
        let example = &call["requestBody"]["content"]["application/json"]["example"];
        let called = path.replace("{trackingNumber}", "SB-NORMAL-0001").replace("{port}", &port);
        let request = api.request(&method, &called);
        let request = request.header("content-type", "application/json");
        let body = if example.is_null() { String::new() } else { example.to_string() };
        let body = body.replace("pk_test_…", key.secret()).into_bytes();
        let is_json = call["requestBody"]["content"]["application/octet-stream"].is_null();
        let response = send(request.body(if is_json { body } else { snapshot.clone() })).await;
        assert_eq!(response.status, 200, "{method} {path}: {}", response.text());
        let content = &call["responses"]["200"]["content"];
        if content["application/json"].is_null() {
            // Only the snapshot is not JSON. It is sent back next.
            snapshot = response.bytes;
            continue;
        }
        let schema = &content["application/json"]["schema"]["$ref"];
        let schema = schema.as_str().unwrap().trim_start_matches('#');
        let schema = document.pointer(schema).unwrap();
        let (promised, known) = (schema["required"].as_array().unwrap(), &schema["properties"]);
        let response = response.json();
        if response["port"].is_u64() {
            port = response["port"].to_string();
        }
        let given = response.as_object().unwrap();
        assert!(
            promised.iter().all(|name| given.contains_key(name.as_str().unwrap())),
            "{response}"
        );
        let unknown: Vec<_> = given.keys().filter(|name| known[name].is_null()).collect();
        assert!(unknown.is_empty(), "{method} {path}: {unknown:?} in {response}");
    }
}

#[tokio::test]
async fn every_reference_resolves_and_every_path_has_operations() {
    let of_admin = fetch_document(TestSetup::new().start(&[]).url("admin")).await;
    for document in
        [served().await, fetch_document(server_with_controls().await.url()).await, of_admin]
    {
        assert_references_resolve(&document);
    }
    for (path, item) in served().await["paths"].as_object().unwrap() {
        let known = Operation::ALL.iter().find(|operation| operation.path() == path);
        let method = known.unwrap_or_else(|| panic!("{path}")).method().as_str().to_lowercase();
        assert!(item[method].is_object(), "{path}");
    }
}

fn assert_references_resolve(document: &Value) {
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let text = document.to_string();
    let references = text.split("\"#/components/schemas/").skip(1);
    let names: Vec<_> = references.map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(!names.is_empty() && names.iter().all(|name| schemas.contains_key(*name)), "{names:?}");
}

/// Returns the URLs that a page loads: the values of `src` and `href`.
fn loaded_files(html: &str) -> Vec<String> {
    let values = html.split(" src=\"").skip(1).chain(html.split(" href=\"").skip(1));
    values.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn the_api_reference_page_loads_only_its_own_files() {
    let server = crate::embedded::start().await;
    let api = Api::new(server.url());
    // The client has followed the redirect from `/docs` to the guide.
    let guide = api.get("/docs").await;
    assert_eq!(guide.header("content-type"), "text/html; charset=utf-8");
    let is_elsewhere = |link: &String| link.starts_with("http") || link.starts_with("//");
    let links = loaded_files(&guide.text());
    assert!(links.len() > 20 && !links.iter().any(is_elsewhere), "{links:?}");
    let page = api.get("/docs/reference").await;
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    assert!(page.text().contains("<title>Parcelo API: reference</title>"));
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
    let files = loaded_files(&page.text());
    assert!(files.len() >= 5, "{files:?}");
    for file in files.iter().filter(|file| !file.starts_with("./?")) {
        let name = file.strip_prefix("./").unwrap_or(file);
        let response = api.get(&format!("/docs/{name}")).await;
        assert_eq!((response.status, response.bytes.is_empty()), (200, false), "{file}");
    }
    let start = api.get("/docs/swagger-initializer.js").await.text();
    assert!(start.contains("\"../openapi.json\""), "{start}");
    assert!(start.contains("\"validatorUrl\": \"none\""), "{start}");
    assert_eq!(api.get("/docs/no.js").await.refusal(), (404, "NOT_FOUND"));
}
