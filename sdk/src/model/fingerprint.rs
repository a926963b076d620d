//! What makes two requests the same: a hash over the body's canonical JSON (spec: Idempotency).
//!
//! Keys are sorted, null members dropped (array elements are kept), numbers in one spelling,
//! the idempotency key left out; white space, key order and `1` or `1.0` make no difference.

use serde_json::{Number, Value};
use sha2::{Digest, Sha256};

/// A SHA-256 over canonical JSON.
pub type Fingerprint = [u8; 32];

/// The fingerprint of a body; `subject` is what the path adds to it, such as a tracking number.
///
/// ```
/// # use parcelo::model::fingerprint;
/// # use serde_json::json;
/// let one = json!({"a": 1.0, "b": null, "idempotencyKey": "first-key"});
/// let two = json!({"idempotencyKey": "other-key", "a": 1});
/// assert_eq!(fingerprint(&one, ""), fingerprint(&two, ""));
/// assert_ne!(fingerprint(&one, ""), fingerprint(&json!({"a": 2}), ""));
/// ```
pub fn fingerprint(body: &Value, subject: &str) -> Fingerprint {
    let mut text = String::with_capacity(1024);
    text.push_str(subject);
    text.push('\n');
    match body {
        Value::Object(members) => write_members(&mut text, members, "idempotencyKey"),
        other => write(&mut text, other),
    }
    Sha256::digest(text).into()
}

fn write(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => out.push_str(&spelled(number)),
        Value::String(text) => write_text(out, text),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                separate(out, i);
                write(out, item);
            }
            out.push(']');
        }
        Value::Object(members) => write_members(out, members, ""),
    }
}

fn write_members(out: &mut String, members: &serde_json::Map<String, Value>, left_out: &str) {
    let mut kept: Vec<_> =
        members.iter().filter(|(name, value)| !value.is_null() && *name != left_out).collect();
    kept.sort_unstable_by_key(|(name, _)| *name);
    out.push('{');
    for (i, (name, value)) in kept.into_iter().enumerate() {
        separate(out, i);
        write_text(out, name);
        out.push(':');
        write(out, value);
    }
    out.push('}');
}

fn separate(out: &mut String, place: usize) {
    if place > 0 {
        out.push(',');
    }
}

/// Only what ends or escapes a string needs an escape for two different strings to differ.
fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        if c == '"' || c == '\\' {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
}

/// A number's one spelling: a whole number as digits, however it was written; any other shortest.
fn spelled(number: &Number) -> String {
    if let Some(whole) = number.as_i64() {
        return whole.to_string();
    }
    if let Some(whole) = number.as_u64() {
        return whole.to_string();
    }
    match number.as_f64() {
        Some(0.0) => "0".to_owned(),
        Some(float) => float.to_string(),
        None => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprint_of(text: &str) -> Fingerprint {
        fingerprint(&serde_json::from_str(text).unwrap(), "")
    }

    #[test]
    fn spelling_makes_no_difference() {
        let table = [
            (r#"{"a":1,"b":2}"#, r#"{ "b" : 2, "a" : 1 }"#),
            (r#"{"a":1.0}"#, r#"{"a":1}"#),
            (r#"{"a":100}"#, r#"{"a":1e2}"#),
            (r#"{"a":-0.0}"#, r#"{"a":0}"#),
            (r#"{"a":19.990}"#, r#"{"a":19.99}"#),
            (r#"{"a":null}"#, "{}"),
            (r#"{"a":{"b":null}}"#, r#"{"a":{}}"#),
            (r#"{"a":"\u00e9"}"#, r#"{"a":"é"}"#),
        ];
        for (one, other) in table {
            assert_eq!(fingerprint_of(one), fingerprint_of(other), "{one} {other}");
        }
    }

    #[test]
    fn any_value_makes_a_difference() {
        let table = [
            (r#"{"a":1}"#, r#"{"a":"1"}"#),
            (r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#),
            (r#"{"a":[null]}"#, r#"{"a":[]}"#),
            (r#"{"a":{}}"#, "{}"),
            (r#"{"a":"x\",\"b\":\"y"}"#, r#"{"a":"x","b":"y"}"#),
            (r#"{"a":"\\"}"#, r#"{"a":"\\\\"}"#),
            (r#"{"a":19.99}"#, r#"{"a":19.98}"#),
            (r#"{"a":18446744073709551615}"#, r#"{"a":18446744073709551614}"#),
            (r#"{"a":{"idempotencyKey":"x"}}"#, r#"{"a":{"idempotencyKey":"y"}}"#),
        ];
        for (one, other) in table {
            assert_ne!(fingerprint_of(one), fingerprint_of(other), "{one} {other}");
        }
    }

    #[test]
    fn the_subject_counts() {
        let body = serde_json::json!({});
        assert_ne!(fingerprint(&body, "A"), fingerprint(&body, "B"));
    }
}
