//! The promises of the validator, in tables: the values that every rule accepts, and those that it refuses or warns
//! about.
#![allow(clippy::too_many_lines, reason = "a table of cases is as long as it is")]

mod countries;
mod everywhere;
mod places;
mod promises;

use serde_json::{Value, json};

use super::{Accepted, Destinations, OrderContext, Rejected, check_order};
use crate::model::{Environment, OrderRequest};

const OFFLINE: OrderContext<'_> =
    OrderContext { environment: None, destinations: &Destinations::All, header_key: None };

/// Returns an order without faults or warnings.
fn order(to: &str) -> Value {
    let receiver = match to {
        "EC" => {
            json!({"fullName": "Luis Paz", "phone": "+593 99 123 4567", "nationalId": "1714307103",
            "idType": "cedula", "address": {"line1": "Av. Amazonas N34-451", "city": "Quito",
            "province": "Pichincha", "zipCode": "170150", "country": "EC"}})
        }
        "CO" => {
            json!({"fullName": "Sofía Gómez", "phone": "+57 300 123 4567", "nationalId": "1.020.304.050",
            "idType": "cedula", "address": {"line1": "Cra. 43A 1-50", "city": "Medellín",
            "province": "Antioquia", "zipCode": "050021", "country": "CO"}})
        }
        "MX" => {
            json!({"fullName": "Iñaki Peña", "phone": "+52 33 1234 5678", "nationalId": "GODE561231GR8",
            "address": {"line1": "Av. Vallarta 1020", "city": "Guadalajara",
            "province": "Jalisco", "zipCode": "44100", "country": "MX"}})
        }
        other => json!({"fullName": "Rosa Díaz", "phone": "+51 987 654 321",
            "address": {"line1": "Av. Larco 345", "city": "Lima", "zipCode": "15074", "country": other}}),
    };
    json!({"idempotencyKey": "order-0001",
        "sender": {"fullName": "Ana Ruiz", "phone": "+1 (305) 555-0100", "address": {"line1": "1 Main St",
            "city": "Miami", "state": "FL", "zipCode": "33101", "country": "US"}},
        "receiver": receiver,
        "parcelDetails": {"weightKg": 1.2, "declaredValue": 39.98},
        "products": [{"description": "Shirt", "quantity": 2, "unitFobValue": 19.99, "hsCode": "6109.10"}]})
}

/// Sets the value at a path; `null` counts as absent.
fn set(body: &mut Value, path: &str, value: Value) {
    let mut here = body;
    for step in path.split('.') {
        here = match step.parse::<usize>() {
            Ok(place) => &mut here[place],
            Err(_) => &mut here[step],
        };
    }
    *here = value;
}

/// Returns the order with another value at a path, or with several values at paths separated by `|`.
fn order_with(to: &str, at: &str, value: &Value) -> Value {
    let mut body = order(to);
    let paths: Vec<_> = at.split('|').collect();
    match (paths.as_slice(), value) {
        ([path], value) => set(&mut body, path, value.clone()),
        (paths, Value::Array(values)) => {
            assert_eq!(paths.len(), values.len(), "{at}");
            for (path, value) in paths.iter().zip(values) {
                set(&mut body, path, value.clone());
            }
        }
        _ => panic!("{at} wants a list"),
    }
    body
}

/// Returns the faults and warnings as `path CODE`, and checks that each has a text in both languages.
fn verdict_with(body: &Value, context: &OrderContext<'_>) -> (Vec<String>, Vec<String>) {
    let (faults, warnings) = match check_order(body, context) {
        Ok(Accepted { warnings, .. }) => (Vec::new(), warnings),
        Err(Rejected { faults, warnings }) => {
            assert!(!faults.is_empty(), "rejected without a fault: {body}");
            (faults, warnings)
        }
    };
    let texts = faults.iter().map(|fault| (&fault.message, &fault.message_es));
    for (en, es) in
        texts.chain(warnings.iter().map(|warning| (&warning.message, &warning.message_es)))
    {
        assert!(!en.is_empty() && !es.is_empty() && en != es, "{en} / {es}");
    }
    (
        faults.iter().map(|fault| format!("{} {}", fault.field, fault.code)).collect(),
        warnings.iter().map(|warning| format!("{} {}", warning.field, warning.code)).collect(),
    )
}

fn verdict(body: &Value) -> (Vec<String>, Vec<String>) {
    verdict_with(body, &OFFLINE)
}

fn accepted(body: &Value) -> OrderRequest {
    check_order(body, &OFFLINE).unwrap_or_else(|rejected| panic!("{rejected:?}")).value
}

fn environment(environment: Environment) -> OrderContext<'static> {
    OrderContext { environment: Some(environment), ..OFFLINE }
}

/// A rule: the country, the field, accepted values, refused or odd values, and the fault or warning for these.
struct Rule(&'static str, &'static str, Value, Value, &'static str);

/// Checks that each bad value causes exactly one fault, and that each good one causes neither a fault nor a warning.
fn assert_refused(rules: Vec<Rule>) {
    assert_rules(rules, |(faults, _), says| faults == [says]);
}

/// Checks that each odd value causes exactly one warning and no fault, and that each good one causes neither.
fn assert_warned(rules: Vec<Rule>) {
    assert_rules(rules, |(faults, warnings), says| faults.is_empty() && warnings == [says]);
}

fn assert_rules(rules: Vec<Rule>, says_so: impl Fn((Vec<String>, Vec<String>), &str) -> bool) {
    for Rule(to, at, good, bad, says) in rules {
        let (Value::Array(good), Value::Array(bad)) = (good, bad) else { panic!("{at}") };
        assert!(!good.is_empty() && !bad.is_empty(), "{at}: a rule needs both sides");
        for value in good {
            let found = verdict(&order_with(to, at, &value));
            assert_eq!(found, (vec![], vec![]), "{to} {at} = {value} is fine");
        }
        for value in bad {
            let found = verdict(&order_with(to, at, &value));
            assert!(says_so(found.clone(), says), "{to} {at} = {value}: {says}, not {found:?}");
        }
    }
}
