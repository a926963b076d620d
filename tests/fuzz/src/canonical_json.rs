//! Fingerprints of JSON documents: two documents have the same fingerprint if and only if their canonical forms, which
//! are computed independently, are equal, however the documents are written.

use std::{collections::BTreeMap, fmt::Write as _};

use parcelo_types::internal::{fingerprint, parse_body, parse_json};
use serde_json::{Map, Value, json};

use crate::{Target, corpus::hash};

pub(crate) const TARGET: Target = Target { name: "canonical_json", check, cases: 4_000 };

/// Exclusive upper bound of the whole numbers that [`respell`] writes with a fraction. They have at most 14 digits,
/// which leaves room for the digit of the fraction.
const WHOLE_LIMIT: u64 = 100_000_000_000_000;

/// Checks one document, or two on separate lines.
fn check(input: &[u8]) {
    let mut lines = input.splitn(2, |byte| *byte == b'\n');
    let one = lines.next().and_then(parse);
    let other = lines.next().and_then(parse);
    if let Some(one) = &one {
        assert_spelling_is_ignored(one);
        assert_fingerprint_of_changed_leaf(one, hash(input));
    }
    if let (Some(one), Some(other)) = (&one, &other) {
        assert_fingerprints_agree(one, other);
    }
}

/// Parses a document, and checks that the three parsers agree. Returns `None` if the product rejects it.
fn parse(bytes: &[u8]) -> Option<Value> {
    let Ok(value) = parse_body(bytes) else {
        // `serde_json` also accepts repeated members and documents that are not objects.
        if let Ok(value @ Value::Object(_)) = serde_json::from_slice::<Value>(bytes) {
            assert!(parse_body(value.to_string().as_bytes()).is_ok(), "{value}");
        }
        return None;
    };
    assert_eq!(serde_json::from_slice::<Value>(bytes).unwrap(), value);
    let borrowed = parse_json(bytes).unwrap();
    assert_eq!(fingerprint(&borrowed, "s"), fingerprint(&value, "s"));
    Some(value)
}

/// Checks that two documents have the same fingerprint if and only if their canonical forms are equal.
fn assert_fingerprints_agree(one: &Value, other: &Value) {
    let (same_fingerprint, same_form) = (
        fingerprint(one, "") == fingerprint(other, ""),
        canonical_form(one) == canonical_form(other),
    );
    assert_eq!(same_fingerprint, same_form, "{one}\n{other}");
}

/// Returns `true` if all numbers are exact. `serde_json` rounds a number of 16 digits or more to a neighbour that
/// depends on its spelling.
fn is_exact(value: &Value) -> bool {
    serde_json::from_str::<Value>(&value.to_string()).is_ok_and(|again| again == *value)
}

fn assert_spelling_is_ignored(value: &Value) {
    if !is_exact(value) {
        return;
    }
    let mut text = String::new();
    respell(value, &mut text);
    let respelled = parse_body(text.as_bytes()).unwrap_or_else(|fault| panic!("{fault:?}: {text}"));
    assert_eq!(fingerprint(value, ""), fingerprint(&respelled, ""), "{value}\n{text}");
    let mut keyed = value.clone();
    keyed["idempotencyKey"] = json!("another-key");
    assert_eq!(fingerprint(value, ""), fingerprint(&keyed, ""));
    assert_ne!(fingerprint(value, "A"), fingerprint(value, "B"));
}

/// Writes the value in another spelling: members in reverse order, with spaces, every character escaped, an additional
/// null member, and whole numbers with a fraction.
fn respell(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => {
            out.push_str("{ ");
            for (name, member) in members.iter().rev() {
                respell(&Value::from(name.as_str()), out);
                out.push_str("\t: ");
                respell(member, out);
                out.push_str(" ,\n");
            }
            // Of these names, at least one is not a member: there are more names than members.
            let mut names = (0..=members.len()).map(|n| format!("null {n}"));
            let unused = names.find(|name| !members.contains_key(name));
            write!(out, "{}:null}}", json!(unused)).unwrap();
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { " , " } else { " " });
                respell(item, out);
            }
            out.push(']');
        }
        Value::String(text) => {
            let units = text.encode_utf16().map(|unit| format!("\\u{unit:04x}"));
            write!(out, "\"{}\"", units.collect::<String>()).unwrap();
        }
        // Beyond 15 digits, `serde_json` reads a number with a fraction inexactly.
        Value::Number(number)
            if number.as_i64().is_some_and(|n| n.unsigned_abs() < WHOLE_LIMIT) =>
        {
            write!(out, "{number}.0e0").unwrap();
        }
        other => write!(out, "{other}").unwrap(),
    }
}

fn assert_fingerprint_of_changed_leaf(value: &Value, choice: u64) {
    let mut changed = value.clone();
    change_leaf(&mut changed, choice);
    assert_fingerprints_agree(value, &changed);
}

/// Changes one value in the document.
fn change_leaf(value: &mut Value, choice: u64) {
    let pick = |length: usize| usize::try_from(choice >> 3).unwrap_or_default() % length;
    let deeper = choice.rotate_right(7);
    *value = match value.take() {
        Value::Object(mut members) if !members.is_empty() => {
            let index = pick(members.len());
            change_leaf(members.values_mut().nth(index).unwrap(), deeper);
            Value::Object(members)
        }
        Value::Array(mut items) if !items.is_empty() => {
            let index = pick(items.len());
            change_leaf(&mut items[index], deeper);
            Value::Array(items)
        }
        Value::Array(_) => json!([null]),
        Value::Object(_) => json!({ "a": 0 }),
        Value::String(text) => json!(format!("{text}\"")),
        Value::Number(number) => json!(number.to_string()),
        Value::Bool(flag) => json!(!flag),
        Value::Null => json!(false),
    };
}

/// Returns the canonical form, which all documents with the same meaning share, computed independently of the product's
/// code.
fn canonical_form(value: &Value) -> String {
    let top = value.as_object().cloned().unwrap_or_default();
    let kept = top.into_iter().filter(|(name, _)| name != "idempotencyKey");
    write_canonical(&Value::Object(kept.collect::<Map<_, _>>()))
}

fn write_canonical(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(_, member)| !member.is_null());
            let sorted: BTreeMap<_, _> =
                kept.map(|(name, member)| (name, write_canonical(member))).collect();
            let parts = sorted.iter().map(|(name, member)| format!("{name:?}: {member}"));
            format!("{{{}}}", parts.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(write_canonical).collect::<Vec<_>>().join(", "))
        }
        Value::Number(number) => match (number.as_i128(), number.as_f64().unwrap()) {
            (Some(whole), _) => format!("number {whole}"),
            // From 2^53 on every float is whole, and below 2^100 it fits into an `i128`.
            (None, float) if float.fract() == 0.0 && float.abs() < 2_f64.powi(100) => {
                #[expect(clippy::cast_possible_truncation, reason = "it is whole and fits")]
                let whole = float as i128;
                format!("number {whole}")
            }
            (None, float) => format!("number {:x}", float.to_bits()),
        },
        other => format!("{other:?}"),
    }
}
