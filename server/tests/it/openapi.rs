//! The OpenAPI documents as other programs read them: binary bodies, headers, limits, names.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use parcelo::{
    ErrorCode, Operation,
    model::FieldFault,
    rules::{self, Destinations, OrderContext, Rejected},
};
use parcelo_server::internals::LEGACY_FIELDS;
use parcelo_server::mock::sample;
use parcelo_types::internal::{self, Idempotency};
use serde_json::{Map, Value, json};

use crate::{
    api::{Api, send},
    document::{fetch_document, served, server_with_controls},
    running::TestSetup,
};

/// Returns the three documents that are served.
async fn documents() -> [(&'static str, Value); 3] {
    [
        ("openapi.json", served().await),
        ("the mock server's", fetch_document(server_with_controls().await.url()).await),
        ("openapi-admin.json", fetch_document(TestSetup::new().start(&[]).url("admin")).await),
    ]
}

/// Returns every call of a document with a name, including the webhooks.
fn calls(document: &Value) -> Vec<(String, &Value)> {
    let mut calls = Vec::new();
    for part in ["paths", "webhooks"] {
        for (path, item) in document[part].as_object().into_iter().flatten() {
            let all = item.as_object().unwrap().iter();
            calls.extend(all.map(|(method, call)| (format!("{method} {path}"), call)));
        }
    }
    calls
}

/// Returns the call of an operation.
fn call(document: &Value, operation: Operation) -> &Value {
    &document["paths"][operation.path()][operation.method().as_str().to_lowercase()]
}

fn responses(call: &Value) -> impl Iterator<Item = (&String, &Value)> {
    call["responses"].as_object().unwrap().iter()
}

/// Returns the schema that a `$ref` refers to, alone or beside `null`; any other schema is returned unchanged.
fn resolve<'d>(document: &'d Value, schema: &'d Value) -> &'d Value {
    let one = schema["oneOf"].as_array().map_or(schema, |kinds| &kinds[0]);
    match one["$ref"].as_str() {
        Some(name) => document.pointer(name.trim_start_matches('#')).unwrap(),
        None => one,
    }
}

#[tokio::test]
async fn files_are_bytes_and_labels_have_a_name_and_a_version() {
    let document = served().await;
    for operation in [Operation::DownloadLabel, Operation::LegacyLabel] {
        let response = &call(&document, operation)["responses"]["200"];
        let files = response["content"].as_object().unwrap();
        let kinds: Vec<_> = files.keys().map(String::as_str).collect();
        let formats = ["application/octet-stream", "application/pdf", "image/png", "text/plain"];
        assert_eq!(kinds, formats);
        for (kind, file) in files {
            assert_eq!(file["schema"], json!({"type": "string", "format": "binary"}), "{kind}");
        }
        for name in ["etag", "content-disposition"] {
            assert_eq!(response["headers"][name]["schema"]["type"], "string", "{name}");
        }
    }
    let response = &call(&document, Operation::DownloadInvoice)["responses"]["200"];
    let kinds: Vec<_> = response["content"].as_object().unwrap().keys().collect();
    assert_eq!(kinds, ["application/octet-stream", "application/pdf"]);
}

#[tokio::test]
async fn every_response_declares_its_headers() {
    for (name, document) in documents().await {
        let counted = calls(&document).into_iter();
        let counted = counted
            .filter(|(call, _)| call.contains("/api/") || call.contains("/admin/"))
            .collect::<Vec<_>>();
        assert!(counted.len() > 15, "{name}");
        for (call, about) in counted {
            for (status, response) in responses(about) {
                let kind = |header: &str| &response["headers"][header]["schema"]["type"];
                assert_eq!(kind("x-request-id"), "string", "{name} {call} {status}");
                for header in ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"] {
                    assert_eq!(kind(header), "integer", "{name} {call} {status} {header}");
                }
                if ["429", "503"].contains(&status.as_str()) {
                    assert_eq!(kind("retry-after"), "integer", "{name} {call} {status}");
                }
            }
        }
    }
}

#[tokio::test]
async fn headers_of_requests_are_parameters() {
    let document = served().await;
    for operation in Operation::ALL {
        let parameters = call(&document, *operation)["parameters"].as_array().unwrap();
        let has = |name: &str| {
            parameters.iter().any(|one| {
                (&one["name"], &one["in"], &one["required"])
                    == (&json!(name), &json!("header"), &json!(false))
            })
        };
        let has_key =
            matches!(operation.idempotency(), Idempotency::Required | Idempotency::Optional);
        assert!(has("Accept-Language"), "{}", operation.name());
        assert_eq!(has("X-Idempotency-Key"), has_key, "{}", operation.name());
        // Voiding an order that is already void is not a replay.
        let has_key = has_key && *operation != Operation::LegacyCancelOrder;
        let again = &call(&document, *operation)["responses"]["200"]["headers"];
        assert_eq!(again["idempotent-replayed"].is_object(), has_key, "{}", operation.name());
    }
}

/// A function that validates a request.
type Check = fn(&Value) -> Vec<FieldFault>;

fn faults<T>(checked: Result<T, Rejected>) -> Vec<FieldFault> {
    checked.err().map(|rejected| rejected.faults).unwrap_or_default()
}

fn check_order(body: &Value) -> Vec<FieldFault> {
    let destinations = &Destinations::All;
    faults(rules::check_order(body, &OrderContext::new(destinations)))
}

fn check_carrier_events(body: &Value) -> Vec<FieldFault> {
    let now: DateTime<Utc> = "2026-02-01T00:00:00Z".parse().unwrap();
    faults(parcelo_wire::check_carrier_events(body, now))
}

/// Returns every type of request with rules, a valid request, and the function that validates it.
fn requests() -> Vec<(&'static str, Value, Check)> {
    let numbers = json!({ "idempotencyKey": "void-0001", "trackingNumbers": ["SB-SUCCESS-0001"] });
    let key = json!({ "name": "n", "environment": "sandbox", "allowedCountries": ["EC"] });
    let named = json!({ "name": "n", "environment": "sandbox" });
    let reprint = json!({ "idempotencyKey": "reprint-0001" });
    vec![
        ("OrderRequest", sample::order(), check_order),
        ("VoidRequest", numbers.clone(), |body| faults(internal::check_void(body, None))),
        ("ManifestRequest", sample::manifest(), |body| {
            faults(internal::check_manifest(body, None))
        }),
        ("ReprintRequest", reprint, |body| faults(internal::check_reprint(body, None))),
        ("BatchTrackingRequest", numbers, |body| faults(internal::check_batch(body))),
        ("CarrierEvents", sample::carrier_events(), check_carrier_events),
        ("KeyRequest", key, |body| faults(parcelo_wire::check_key(body, &Destinations::All))),
        ("CarrierKeyRequest", named.clone(), |body| faults(parcelo_wire::check_carrier_key(body))),
        ("AccountRequest", named, |body| faults(parcelo_wire::check_account(body))),
        ("ReplayRequest", json!({}), |body| faults(parcelo_wire::check_replay(body))),
    ]
}

/// A field of a request: its path as in violations, and its schema.
struct Field<'d> {
    path: String,
    schema: &'d Value,
    is_required: bool,
}

/// Returns every field below a schema; a list is represented by its first element.
fn fields<'d>(document: &'d Value, path: &str, schema: &'d Value) -> Vec<Field<'d>> {
    let mut found = Vec::new();
    let required = schema["required"].as_array();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let schema = resolve(document, property);
        let is_required = required.is_some_and(|names| names.contains(&json!(name)));
        found.push(Field { path: path.clone(), schema, is_required });
        found.extend(fields(document, &path, schema));
        if schema["items"].is_object() {
            let (path, schema) = (format!("{path}[0]"), resolve(document, &schema["items"]));
            found.push(Field { path: path.clone(), schema, is_required: false });
            found.extend(fields(document, &path, schema));
        }
    }
    found
}

/// Returns `true` if a schema has this JSON type, or this one and `null`.
fn has_type(schema: &Value, kind: &str) -> bool {
    schema["type"] == kind || schema["type"].as_array().is_some_and(|all| all[0] == kind)
}

/// Returns the request with one field set. Objects and lists on its path are created.
fn with_value(body: &Value, path: &str, value: Value) -> Value {
    let pointer = format!("/{}", path.replace("[0]", "/0").replace('.', "/"));
    let mut body = body.clone();
    let mut at = &mut body;
    for step in pointer.split('/').skip(1) {
        if step == "0" {
            if !at.is_array() {
                *at = json!([{}]);
            }
            at = &mut at[0];
        } else {
            if !at.is_object() {
                *at = Value::Object(Map::new());
            }
            at = &mut at[step];
        }
    }
    *at = value;
    body
}

/// Returns values within a field's limits, and values just beyond them with the expected code.
fn limit_values(field: &Field<'_>, element: &Value) -> Vec<(Value, Option<&'static str>)> {
    let schema = field.schema;
    let mut limit_values = Vec::new();
    if let Some(max) = schema["maxLength"].as_u64() {
        let text = |length: u64| json!("x".repeat(usize::try_from(length).unwrap()));
        limit_values.extend([(text(max), None), (text(max + 1), Some("TOO_LONG"))]);
    }
    if schema["minLength"] == 1 {
        limit_values.push((json!(""), Some("REQUIRED")));
    }
    if let Some(max) = schema["maxItems"].as_u64() {
        let list = |length: u64| json!(vec![element; usize::try_from(length).unwrap()]);
        limit_values.extend([(list(max), None), (list(max + 1), Some("TOO_LONG"))]);
    }
    if schema["minItems"] == 1 {
        limit_values.push((json!([]), Some("TOO_SHORT")));
    }
    let step = if has_type(schema, "integer") { 1.0 } else { 0.01 };
    #[expect(clippy::cast_possible_truncation, reason = "a bound of whole numbers is one")]
    let number = |value: f64| if step < 1.0 { json!(value) } else { json!(value as i64) };
    if let Some(max) = schema["maximum"].as_f64() {
        limit_values.extend([(number(max), None), (number(max + step), Some("OUT_OF_RANGE"))]);
    }
    if let Some(least) = schema["minimum"].as_f64() {
        limit_values.extend([(number(least), None), (number(least - step), Some("OUT_OF_RANGE"))]);
    }
    if let Some(below) = schema["exclusiveMinimum"].as_f64() {
        limit_values.extend([(number(below), Some("OUT_OF_RANGE")), (number(below + step), None)]);
    }
    limit_values
}

/// The fields beyond the specification, in which a value outside the limits is ignored or cut.
const LENIENT: [&str; 3] =
    ["receiver.companyName", "receiver.address.line2", "products[0].unitNetWeightKg"];

const LIMIT_CODES: [&str; 4] = ["TOO_LONG", "TOO_SHORT", "OUT_OF_RANGE", "REQUIRED"];

#[tokio::test]
async fn every_field_of_a_request_has_the_limits_of_the_rules() {
    let [(_, service), _, (_, admin)] = documents().await;
    let mut tried = 0;
    for (name, body, check) in requests() {
        let document = [&service, &admin]
            .into_iter()
            .find(|document| document["components"]["schemas"][name].is_object())
            .unwrap();
        let all = fields(document, "", &document["components"]["schemas"][name]);
        for field in &all {
            assert_is_bounded(name, field);
            let pointer = format!("/{}/0", field.path.replace("[0]", "/0").replace('.', "/"));
            let element = body.pointer(&pointer).cloned().unwrap_or_else(|| json!({}));
            for (value, expected) in limit_values(field, &element) {
                let found = check(&with_value(&body, &field.path, value.clone()));
                let found = found.iter().filter(|fault| fault.field == field.path);
                let codes: Vec<_> = found.map(|fault| fault.code.to_string()).collect();
                let shown: String = value.to_string().chars().take(60).collect();
                let case = format!("{name} {} {shown}: {codes:?}", field.path);
                let expected = expected.filter(|_| !LENIENT.contains(&field.path.as_str()));
                if let Some(code) = expected {
                    assert!(codes.iter().any(|found| found == code), "{case}");
                } else {
                    let has_length = codes.iter().any(|code| LIMIT_CODES.contains(&code.as_str()));
                    assert!(!has_length, "{case}");
                }
                tried += 1;
            }
        }
    }
    assert!(tried > 150, "{tried}");
}

/// Checks that texts, lists and numbers have some limit, and required texts a minimum.
fn assert_is_bounded(name: &str, field: &Field<'_>) {
    let (schema, path) = (field.schema, &field.path);
    let has = |names: &[&str]| names.iter().any(|name| !schema[name].is_null());
    let is_formed = has(&["enum", "format"]) || schema["pattern"].is_string();
    if has_type(schema, "string") {
        assert!(is_formed || has(&["maxLength"]), "{name} {path}");
        let has_least = !field.is_required || has(&["enum", "pattern", "format", "minLength"]);
        assert!(has_least, "{name} {path}");
    } else if has_type(schema, "array") {
        assert!(has(&["maxItems"]), "{name} {path}");
        assert!(!field.is_required || has(&["minItems"]), "{name} {path}");
    } else if has_type(schema, "number") || has_type(schema, "integer") {
        assert!(has(&["maximum"]) && has(&["minimum", "exclusiveMinimum"]), "{name} {path}");
    }
}

const LIMITS: [&str; 8] = [
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "minItems",
    "maxItems",
];

#[tokio::test]
async fn a_legacy_field_has_the_limits_of_its_counterpart() {
    let document = served().await;
    let schemas = &document["components"]["schemas"];
    let order = fields(&document, "", &schemas["OrderRequest"]);
    for (name, stands_for) in LEGACY_FIELDS {
        let legacy = &schemas["LegacyOrder"]["properties"][name];
        let ours = order.iter().find(|field| field.path == *stands_for).unwrap().schema;
        let differ = LIMITS.iter().find(|limit| {
            let is_asked =
                **limit != "minLength" || has_type(legacy, "string") && legacy["type"].is_string();
            is_asked && legacy[**limit] != ours[**limit]
        });
        assert_eq!(differ, None, "{name}: {legacy} {ours}");
    }
}

#[tokio::test]
async fn limits_outside_the_rules_are_declared_too() {
    let [(_, service), _, (_, admin)] = documents().await;
    let url = &admin["components"]["schemas"]["WebhookRequest"]["properties"]["url"];
    assert_eq!(url["maxLength"], parcelo_server::internals::MAX_URL_CHARS);
    let list = call(&service, Operation::ListParcels)["parameters"].as_array().unwrap();
    let parameter = |name| &list.iter().find(|one| one["name"] == name).unwrap()["schema"];
    assert_eq!(parameter("limit")["maximum"], internal::ListQuery::MAX_LIMIT);
    assert_eq!(parameter("externalOrderId")["maxLength"], internal::ListQuery::MAX_ORDER_ID);
}

#[tokio::test]
async fn error_codes_are_an_open_list_with_examples() {
    let codes: Vec<_> = ErrorCode::ALL.iter().map(|code| code.code()).collect();
    for (name, document) in documents().await {
        let schemas = &document["components"]["schemas"];
        for owner in ["ErrorBody", "ItemError"] {
            let code = resolve(&document, &schemas[owner]["properties"]["code"]);
            assert_eq!((&code["type"], &code["enum"]), (&json!("string"), &Value::Null), "{name}");
            assert_eq!(code["examples"], json!(codes), "{name} {owner}");
        }
        let details = resolve(&document, &schemas["ErrorBody"]["properties"]["details"]);
        let errors = details["properties"]["errors"]["items"].to_string();
        assert!(errors.contains("schemas/FieldFault") && schemas["FieldFault"].is_object());
    }
}

#[tokio::test]
async fn every_json_body_is_a_component_with_a_name() {
    for (name, document) in documents().await {
        for (call, about) in calls(&document) {
            let all = responses(about).map(|(_, response)| response);
            for body in all.chain([&about["requestBody"]]) {
                let schema = &body["content"]["application/json"]["schema"];
                let is_named = schema.is_null() || schema["$ref"].is_string();
                assert!(is_named, "{name} {call}: {schema}");
            }
        }
    }
}

/// Collects the texts of every member with this name, at any depth.
fn collect_texts<'d>(value: &'d Value, name: &str, found: &mut Vec<&'d str>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get(name).and_then(Value::as_str));
            members.values().for_each(|member| collect_texts(member, name, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, name, found)),
        _ => {}
    }
}

const RUST_SYNTAX: &[&str] = &[
    "::", "[`", "```", "Option", "Vec", "serde", "struct", "Self", "Debug", "crate", "enum",
    "impl", "Some(", "Rust", "weight_",
];

#[tokio::test]
async fn no_description_contains_rust_syntax() {
    for (name, document) in documents().await {
        for member in ["description", "summary"] {
            let mut all = Vec::new();
            collect_texts(&document, member, &mut all);
            assert!(all.len() > 10, "{name}");
            let foreign =
                all.iter().find(|text| RUST_SYNTAX.iter().any(|word| text.contains(word)));
            assert_eq!(foreign, None, "{name}");
        }
    }
}

#[tokio::test]
async fn every_operation_has_its_security_id_and_tag() {
    for (name, document) in documents().await {
        let tags = document["tags"].as_array().unwrap();
        assert!(tags.iter().all(|tag| tag["description"].is_string()), "{name}");
        let case: BTreeSet<_> = tags.iter().map(|tag| tag["name"].as_str().unwrap()).collect();
        let (mut used, mut ids) = (BTreeSet::new(), BTreeSet::new());
        for (call, about) in calls(&document) {
            assert!(about["security"].is_array(), "{name} {call}");
            assert!(about["description"].is_string(), "{name} {call}");
            assert!(ids.insert(about["operationId"].as_str().unwrap()), "{name} {call}");
            used.extend(about["tags"].as_array().unwrap().iter().map(|tag| tag.as_str().unwrap()));
        }
        assert_eq!(used, case, "{name}");
        assert_eq!(document["info"]["license"]["identifier"], "MIT OR Apache-2.0", "{name}");
        assert_eq!(document["servers"][0]["url"], "/", "{name}");
    }
    let public = served().await;
    assert_eq!(call(&public, Operation::PublicTracking)["security"], json!([]));
}

#[tokio::test]
async fn an_unchanged_document_is_304() {
    let setup = TestSetup::new().start(&[]);
    let mock = server_with_controls().await;
    for url in [setup.url("sandbox"), setup.url("admin"), mock.url()] {
        let api = Api::new(url);
        let first = api.get("/openapi.json").await;
        let tag = first.header("etag").to_owned();
        assert!(tag.len() > 10 && tag.starts_with('"') && tag.ends_with('"'), "{tag}");
        assert_eq!(api.get("/openapi.json").await.bytes, first.bytes);
        let other = "\"another\"".to_owned();
        for (known, status) in [
            (tag.clone(), 304),
            (format!("W/{tag}"), 304),
            (format!("{other}, {tag}"), 304),
            ("*".to_owned(), 304),
            (other, 200),
        ] {
            let request = api.request("GET", "/openapi.json").header("if-none-match", &known);
            let response = send(request).await;
            assert_eq!(response.status, status, "{known}");
            assert_eq!(response.header("etag"), tag.as_str(), "{known}");
            assert_eq!(response.bytes.is_empty(), status == 304, "{known}");
        }
    }
}
