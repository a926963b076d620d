//! Calls to the API as any HTTP client makes them, without an SDK.

use parcelo::{ApiKey, ErrorCode, Operation};
use reqwest::{Method, StatusCode, header::HeaderMap};
use serde_json::{Value, json};

/// An HTTP client of one server, with or without a key.
#[derive(Debug, Clone)]
pub(crate) struct Api {
    http: reqwest::Client,
    url: String,
    key: Option<String>,
}

/// A response, with its body read.
#[derive(Debug, Clone)]
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Vec<u8>,
}

impl HttpResponse {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|_| panic!("no JSON: {:?}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Returns status and code of an error response, after checking that its envelope is complete.
    pub(crate) fn refusal(&self) -> (u16, &'static str) {
        let body = self.json();
        let error = &body["error"];
        assert_eq!(body["success"], false, "{body}");
        assert_eq!(error["requestId"], self.header("x-request-id"), "{body}");
        assert_ne!(error["message"], error["message_es"], "{body}");
        assert!(error["message"].as_str().is_some_and(|text| !text.contains('{')), "{body}");
        assert_eq!(self.header("content-type"), "application/json");
        (self.status, ErrorCode::known(error["code"].as_str().unwrap()).unwrap().code())
    }

    /// Returns the violations in an error response, each as `field CODE`.
    pub(crate) fn faults(&self) -> Vec<String> {
        assert_eq!(self.refusal(), (400, "VALIDATION_FAILED"));
        let body = self.json();
        let faults = body["error"]["details"]["errors"].as_array().unwrap().clone();
        let text = |fault: &Value, name: &str| fault[name].as_str().unwrap().to_owned();
        faults
            .iter()
            .map(|fault| format!("{} {}", text(fault, "field"), text(fault, "code")))
            .collect()
    }
}

impl Api {
    pub(crate) fn new(url: &str) -> Self {
        Self { http: reqwest::Client::new(), url: url.to_owned(), key: None }
    }

    pub(crate) fn with_key(url: &str, key: &ApiKey) -> Self {
        Self::new(url).key(key.secret())
    }

    /// Returns a client of another server that shares the HTTP connections.
    pub(crate) fn at(&self, url: &str, key: &ApiKey) -> Self {
        Self { http: self.http.clone(), url: url.to_owned(), key: Some(key.secret().to_owned()) }
    }

    pub(crate) fn key(self, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..self }
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let url =
            if path.starts_with("http") { path.to_owned() } else { format!("{}{path}", self.url) };
        let request = self.http.request(Method::from_bytes(method.as_bytes()).unwrap(), url);
        match &self.key {
            Some(key) => request.header("X-API-Key", key),
            None => request,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> HttpResponse {
        send(self.request("GET", path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> HttpResponse {
        let request = self.request("POST", path).header("content-type", "application/json");
        send(request.body(body.to_string())).await
    }

    pub(crate) async fn create(&self, order: &Value) -> HttpResponse {
        self.post(Operation::CreateOrder.path(), order).await
    }

    pub(crate) async fn create_text(&self, body: &str) -> HttpResponse {
        let request = self.request("POST", Operation::CreateOrder.path());
        send(request.header("content-type", "application/json").body(body.to_owned())).await
    }

    /// Creates an order that must succeed, and returns its tracking number.
    pub(crate) async fn create_parcel(&self, order: &Value) -> String {
        let response = self.create(order).await;
        assert_eq!(response.status, StatusCode::CREATED, "{}", response.text());
        response.json()["parcel"]["trackingNumber"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn track(&self, number: &str) -> HttpResponse {
        self.get(&Operation::GetTracking.path_of(number)).await
    }

    /// Returns the record of a parcel with its history.
    pub(crate) async fn record(&self, number: &str) -> Value {
        let path = Operation::GetTracking.path_of(number) + "?includeHistory=true";
        self.get(&path).await.json()
    }

    /// Voids an order, which must succeed.
    pub(crate) async fn void(&self, number: &str) {
        let body = json!({ "idempotencyKey": "void-0001", "trackingNumbers": [number] });
        let response = self.post(Operation::VoidOrders.path(), &body).await;
        assert_eq!(response.status, 200, "{}", response.text());
    }

    /// Pushes events as the carrier with this key, and returns the results.
    pub(crate) async fn push_events(&self, key: &str, events: Value) -> Value {
        let request = self.request("POST", Operation::PushCarrierEvents.path());
        let request = request.header("X-Carrier-Key", key);
        let request = request.header("content-type", "application/json");
        let response = send(request.body(json!({ "events": events }).to_string())).await;
        response.json()["data"]["results"].clone()
    }
}

pub(crate) async fn send(request: reqwest::RequestBuilder) -> HttpResponse {
    try_send(request).await.unwrap()
}

pub(crate) async fn try_send(request: reqwest::RequestBuilder) -> reqwest::Result<HttpResponse> {
    let response = request.send().await?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Ok(HttpResponse { status, headers, bytes: response.bytes().await?.to_vec() })
}

/// Returns an order to Ecuador that follows every rule, under a key.
pub(crate) fn order(key: &str) -> Value {
    json!({
        "idempotencyKey": key,
        "sender": {
            "fullName": "Ana Ruiz", "phone": "+13055550100",
            "address": { "line1": "8400 NW 25th St", "city": "Miami", "state": "FL", "zipCode": "33122", "country": "US" }
        },
        "receiver": {
            "fullName": "José Ángel Muñoz", "phone": "+593991234567", "nationalId": "1714307103", "idType": "cedula",
            "address": { "line1": "Av. Amazonas N34-451", "city": "Quito", "province": "Pichincha", "zipCode": "170515", "country": "EC" }
        },
        "parcelDetails": { "weightKg": 1.25, "declaredValue": 45.5 },
        "customsInfo": { "description": "Cotton shirts", "hsCode": "610910" }
    })
}

/// Returns the same order with the caller's tracking number.
pub(crate) fn order_with_number(key: &str, number: &str) -> Value {
    with(order(key), "/trackingNumber", json!(number))
}

/// Returns the order with one member changed. `path` is a JSON pointer whose last segment need not exist yet.
pub(crate) fn with(mut order: Value, path: &str, value: Value) -> Value {
    let (parent, name) = path.rsplit_once('/').unwrap();
    order.pointer_mut(parent).unwrap()[name] = value;
    order
}
