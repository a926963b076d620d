//! The equality of two requests: a hash over the canonical JSON of the body (spec: Idempotency).
//!
//! In canonical JSON, keys are sorted, null members are dropped (null elements of arrays are kept), every number has
//! one spelling, and the idempotency key is omitted. White space, the order of keys, and `1` or `1.0` make no
//! difference.

use serde_json::Number;
use sha2::{Digest, Sha256};

use super::json::{Body, Json, Members};

/// The SHA-256 of canonical JSON.
pub type Fingerprint = [u8; 32];

/// Returns the fingerprint of a request: of its body, and of the variable part of its path, such as a tracking number.
///
/// ```
/// # use parcelo_types::internal::fingerprint;
/// # use serde_json::json;
/// let one = json!({"a": 1.0, "b": null, "idempotencyKey": "first-key"});
/// let two = json!({"idempotencyKey": "other-key", "a": 1});
/// assert_eq!(fingerprint(&one, ""), fingerprint(&two, ""));
/// assert_ne!(fingerprint(&one, ""), fingerprint(&json!({"a": 2}), ""));
/// ```
pub fn fingerprint<'a>(body: impl Into<Body<'a>>, subject: &str) -> Fingerprint {
    let mut text = String::with_capacity(1024);
    text.push_str(subject);
    text.push('\n');
    match &*body.into() {
        Json::Object(members) => write_members(&mut text, members, Some("idempotencyKey")),
        other => write(&mut text, other),
    }
    Sha256::digest(text).into()
}

fn write(out: &mut String, value: &Json<'_>) {
    match value {
        Json::Null => out.push_str("null"),
        Json::Bool(true) => out.push_str("true"),
        Json::Bool(false) => out.push_str("false"),
        Json::Number(number) => out.push_str(&canonical_number(number)),
        Json::Text(text) => write_text(out, text),
        Json::List(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                push_separator(out, i);
                write(out, item);
            }
            out.push(']');
        }
        Json::Object(members) => write_members(out, members, None),
    }
}

fn write_members(out: &mut String, members: &Members<'_>, left_out: Option<&str>) {
    let is_kept = |name: &str, value| !matches!(value, &Json::Null) && Some(name) != left_out;
    let kept = members.iter().filter(|(name, value)| is_kept(name, value));
    out.push('{');
    for (i, (name, value)) in kept.enumerate() {
        push_separator(out, i);
        write_text(out, name);
        out.push(':');
        write(out, value);
    }
    out.push('}');
}

fn push_separator(out: &mut String, index: usize) {
    if index > 0 {
        out.push(',');
    }
}

/// Writes a string. For different strings to differ, only the quotation mark and the backslash need an escape.
fn write_text(out: &mut String, text: &str) {
    out.push('"');
    // Most texts have neither, and are copied at once.
    if text.bytes().any(|byte| matches!(byte, b'"' | b'\\')) {
        for c in text.chars() {
            if c == '"' || c == '\\' {
                out.push('\\');
            }
            out.push(c);
        }
    } else {
        out.push_str(text);
    }
    out.push('"');
}

/// Returns the canonical spelling of a number: a whole number as digits, however it was written, and any other in its
/// shortest form.
fn canonical_number(number: &Number) -> String {
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
        fingerprint(&serde_json::from_str::<serde_json::Value>(text).unwrap(), "")
    }

    #[test]
    fn spelling_does_not_change_the_fingerprint() {
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
    fn any_changed_value_changes_the_fingerprint() {
        let table = [
            (r#"{"a":1}"#, r#"{"a":"1"}"#),
            (r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#),
            (r#"{"a":[null]}"#, r#"{"a":[]}"#),
            (r#"{"a":{}}"#, "{}"),
            (r#"{"a":"x\",\"b\":\"y"}"#, r#"{"a":"x","b":"y"}"#),
            (r#"{"a":"\\"}"#, r#"{"a":"\\\\"}"#),
            (r#"{"a":19.99}"#, r#"{"a":19.98}"#),
            (r#"{"a":18446744073709551615}"#, r#"{"a":18446744073709551614}"#),
            (r#"{"a":{"":1}}"#, r#"{"a":{"":2}}"#),
            (r#"{"a":{"idempotencyKey":"x"}}"#, r#"{"a":{"idempotencyKey":"y"}}"#),
        ];
        for (one, other) in table {
            assert_ne!(fingerprint_of(one), fingerprint_of(other), "{one} {other}");
        }
    }

    #[test]
    fn a_fingerprint_of_an_older_version_still_matches() {
        let body = r#"{"b":[1,{"z":null,"y":"q\"\\\u00e9"},null],"a":1.50,"idempotencyKey":"x"}"#;
        // SHA-256 of a line feed and {"a":1.5,"b":[1,{"y":"q\"\\é"},null]}.
        let known = "fb42ecb4fca04b69f1e8c2e7d43bc657456fad500aec4d0380d699d607431eb8";
        assert_eq!(crate::model::hex::hex(&fingerprint_of(body)), known);
    }

    #[test]
    fn the_subject_changes_the_fingerprint() {
        let body = serde_json::json!({});
        assert_ne!(fingerprint(&body, "A"), fingerprint(&body, "B"));
    }
}
