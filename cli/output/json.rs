//! Results as JSON: one document, or one document a line.

use std::io::{self, Write};

use parcelo::{CreatedOrder, LabelFormat, Outcome};
use serde::Serialize;
use serde_json::{Value, json};

use crate::results::{Created, List, Results, SavedLabel, Verdict};

/// One document: an object for one thing that was asked for, an array for several.
pub(super) fn write(out: &mut impl Write, results: &Results) -> io::Result<()> {
    match (results, documents(results)?) {
        (Results::Verdicts(_), all) => document(out, &all),
        (Results::Tracked(List { asked, .. }), all) => one_or_all(out, *asked, &all),
        (Results::Labels(List { asked, .. }), all) => one_or_all(out, *asked, &all),
        (_, all) => one_or_all(out, 1, &all),
    }
}

/// One document a line.
pub(super) fn write_lines(out: &mut impl Write, results: &Results) -> io::Result<()> {
    documents(results)?.iter().try_for_each(|document| line(out, document))
}

pub(super) fn document(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}

pub(super) fn line(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    writeln!(out)
}

fn one_or_all(out: &mut impl Write, asked: usize, all: &[Value]) -> io::Result<()> {
    match (asked, all) {
        (1, [one]) => document(out, one),
        (1, _) => Ok(()),
        _ => document(out, &all),
    }
}

fn documents(results: &Results) -> serde_json::Result<Vec<Value>> {
    match results {
        Results::Help(_) | Results::File(_) => Ok(Vec::new()),
        Results::Sample(order) => Ok(vec![serde_json::to_value(order)?]),
        Results::Created(created) => Ok(vec![created_order(created)?]),
        Results::Verdicts(verdicts) => Ok(verdicts.iter().map(verdict).collect()),
        Results::Tracked(list) => list.found.iter().map(serde_json::to_value).collect(),
        Results::Labels(list) => Ok(list.found.iter().map(label).collect()),
        Results::Health(health) => Ok(vec![serde_json::to_value(health)?]),
    }
}

fn created_order(created: &Created) -> serde_json::Result<Value> {
    let Created { order, outcome, idempotency_key, request_id, label } = created;
    let CreatedOrder { parcel, warnings, .. } = order;
    Ok(json!({
        "outcome": word(*outcome),
        "parcel": serde_json::to_value(parcel)?,
        "warnings": serde_json::to_value(warnings)?,
        "idempotencyKey": idempotency_key,
        "requestId": request_id,
        "label": label.as_ref().map(self::label),
    }))
}

fn verdict(verdict: &Verdict) -> Value {
    json!({
        "file": verdict.file,
        "index": verdict.index,
        "valid": verdict.is_valid(),
        "errors": verdict.errors,
        "warnings": verdict.warnings,
    })
}

fn label(label: &SavedLabel) -> Value {
    json!({
        "trackingNumber": label.number,
        "format": LabelFormat::code(label.format),
        "file": label.file.to_string_lossy(),
        "bytes": label.bytes,
    })
}

/// The outcome as a word for machines.
pub(super) fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Created => "created",
        Outcome::Replayed => "replayed",
    }
}
