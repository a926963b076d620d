//! The guarantees of the validator, in tables: the values that every rule accepts, and those that it refuses or warns
//! about.
#![allow(clippy::too_many_lines, reason = "a table of cases is as long as it is")]

mod countries;
mod everywhere;
mod places;
mod promises;

use serde_json::{Value, json};

use super::{
    Accepted, Destinations, OrderContext, Rejected, check_order,
    fields::{Fields, Kind},
    order::FIELDS,
};
use crate::model::{Environment, FieldFault, OrderRequest};

const OFFLINE: OrderContext<'_> = OrderContext::new(&Destinations::All);

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
            Ok(index) => &mut here[index],
            Err(_) => &mut here[step],
        };
    }
    *here = value;
}

/// Returns the order with a value at a path, or with several at paths separated by `|`.
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

/// Returns the faults of a request as `path CODE`.
pub(super) fn faults_of<T>(checked: Result<T, Rejected>) -> Vec<String> {
    let faults = checked.err().map(|rejected| rejected.faults).unwrap_or_default().into_iter();
    faults
        .map(|fault| {
            assert_ne!(fault.message, fault.message_es);
            format!("{} {}", fault.field, fault.code)
        })
        .collect()
}

/// Returns faults and warnings as `path CODE`, after checking that both languages have a message.
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

/// Returns the first fault of an order with a value at a path, or with several at paths separated by `|`.
fn fault(to: &str, at: &str, value: &Value) -> FieldFault {
    check_order(&order_with(to, at, value), &OFFLINE).unwrap_err().faults.remove(0)
}

/// Returns the path of every field of an order, with `true` for a text or a number; an element stands for its list.
fn all_fields() -> Vec<(String, bool)> {
    fn add(all: &mut Vec<(String, bool)>, fields: &Fields, before: &str) {
        for (name, kind) in fields.0 {
            let element = if *name == "products" { ".0" } else { "" };
            let path = format!("{before}{name}{element}");
            all.push((path.clone(), matches!(kind, Kind::Leaf)));
            if let Kind::Nested(inner) = kind {
                add(all, inner, &format!("{path}."));
            }
        }
    }
    let mut all = Vec::new();
    add(&mut all, &FIELDS, "");
    all
}

fn accepted(body: &Value) -> OrderRequest {
    check_order(body, &OFFLINE).unwrap_or_else(|rejected| panic!("{rejected:?}")).value
}

fn environment(environment: Environment) -> OrderContext<'static> {
    OrderContext { environment: Some(environment), ..OFFLINE }
}

/// A rule: the country of the receiver, its fields, accepted values, other values, and the finding for those.
struct Rule {
    to: String,
    at: String,
    good: Vec<Value>,
    bad: Vec<Value>,
    expected: String,
}

/// Returns a rule of every country. The finding is a code, after the field where that is not the first.
fn rule(at: &str, expected: &str, good: Value, bad: Value) -> Rule {
    let array = |value| serde_json::from_value(value).unwrap();
    Rule {
        to: "PE".to_owned(),
        at: at.to_owned(),
        good: array(good),
        bad: array(bad),
        expected: finding(at, expected),
    }
}

fn finding(at: &str, expected: &str) -> String {
    let first = at.split('|').next().unwrap();
    let (field, code) = expected.split_once(' ').unwrap_or((first, expected));
    format!("{} {code}", field.replace(".0", "[0]").replace(".1", "[1]"))
}

/// Reads rules: country, fields separated by `|`, the field of the finding if it is not the first, its code, a JSON array
/// of accepted values, and one of other values.
fn rules(mut table: &str) -> Vec<Rule> {
    let mut rules = Vec::new();
    while let Some((head, _)) = table.split_once('[') {
        let mut values = serde_json::Deserializer::from_str(&table[head.len()..]).into_iter();
        let mut next = || values.next().unwrap().unwrap_or_else(|err| panic!("{head}: {err}"));
        let (good, bad) = (next(), next());
        table = &table[head.len() + values.byte_offset()..];
        let mut words = head.trim().splitn(3, ' ');
        let [to, at, expected] = [(); 3].map(|()| words.next().unwrap());
        rules.push(Rule {
            to: to.to_owned(),
            at: at.to_owned(),
            good,
            bad,
            expected: finding(at, expected.trim()),
        });
    }
    rules
}

/// Checks that each refused value is one fault, and that each accepted one causes neither a fault nor a warning.
fn assert_refused(rules: impl IntoIterator<Item = Rule>) {
    assert_rules(rules, |(faults, _), expected| faults == [expected]);
}

/// Checks that each odd value is one warning of an accepted order, and that each normal one causes none.
fn assert_warned(rules: impl IntoIterator<Item = Rule>) {
    assert_rules(rules, |(faults, warnings), expected| faults.is_empty() && warnings == [expected]);
}

fn assert_rules(
    rules: impl IntoIterator<Item = Rule>,
    matches_finding: impl Fn((Vec<String>, Vec<String>), &str) -> bool,
) {
    for Rule { to, at, good, bad, expected } in rules {
        assert!(!good.is_empty() && !bad.is_empty(), "{at}: a rule needs both sides");
        for value in good {
            let found = verdict(&order_with(&to, &at, &value));
            assert_eq!(found, (vec![], vec![]), "{to} {at} = {value} is fine");
        }
        for value in bad {
            let found = verdict(&order_with(&to, &at, &value));
            assert!(
                matches_finding(found.clone(), &expected),
                "{to} {at} = {value}: {expected}, not {found:?}"
            );
        }
    }
}
