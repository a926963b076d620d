//! stub
#![allow(
    missing_docs,
    missing_debug_implementations,
    clippy::all,
    clippy::pedantic,
    reason = "stub"
)]
use crate::*;
use serde_json::Value;
use std::collections::BTreeSet;
#[derive(Debug, Clone)]
pub enum Destinations {
    All,
    Only(BTreeSet<CountryCode>),
}
impl Destinations {
    pub fn supports(&self, c: CountryCode) -> bool {
        match self {
            Self::All => true,
            Self::Only(s) => s.contains(&c),
        }
    }
}
pub enum KeyReading {
    Missing,
    Key(IdempotencyKey),
    Faulty(FieldFault),
}
pub fn parse_body(b: &[u8]) -> Result<Value, FieldFault> {
    match serde_json::from_slice::<Value>(b) {
        Ok(v) if v.is_object() => Ok(v),
        _ => Err(FieldFault {
            field: "body".into(),
            code: FaultCode::MalformedJson,
            message: "x".into(),
            message_es: "y".into(),
            suggestion: None,
        }),
    }
}
pub fn read_key(b: &Value, h: Option<&str>) -> KeyReading {
    match b["idempotencyKey"].as_str().or(h).and_then(|k| IdempotencyKey::parse(k).ok()) {
        Some(k) => KeyReading::Key(k),
        None => KeyReading::Missing,
    }
}
pub struct OrderContext<'a> {
    pub environment: Option<Environment>,
    pub destinations: &'a Destinations,
    pub header_key: Option<&'a str>,
}
#[derive(Debug)]
pub struct Accepted<T> {
    pub value: T,
    pub warnings: Vec<Warning>,
}
#[derive(Debug)]
pub struct Rejected {
    pub faults: Vec<FieldFault>,
    pub warnings: Vec<Warning>,
}
pub fn check_order(b: &Value, _c: &OrderContext<'_>) -> Result<Accepted<OrderRequest>, Rejected> {
    serde_json::from_value(b.clone()).map(|value| Accepted { value, warnings: vec![] }).map_err(
        |e| Rejected {
            faults: vec![FieldFault {
                field: "stub".into(),
                code: FaultCode::Required,
                message: e.to_string(),
                message_es: "y".into(),
                suggestion: None,
            }],
            warnings: vec![],
        },
    )
}
pub fn destination(b: &Value) -> Option<CountryCode> {
    CountryCode::parse(b["receiver"]["address"]["country"].as_str()?).ok()
}
