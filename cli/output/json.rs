//! Results as JSON: one document, or one document a line. The API's own records stand as it spells
//! them; the shapes of the others are here.

use std::io::{self, Write};

use parcelo::{
    IdempotencyKey, LabelFormat, Outcome, Parcel, TrackingNumber,
    model::{FieldFault, PageMeta, ParcelSummary, RequestId, Row, Unreadable, Warning},
};
use serde::Serialize;

use super::{findings, import, is_command};
use crate::results::{Created, List, Listing, Results, SavedLabel, Verdict, Written};

/// How documents follow one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// One document: an object for one thing that was asked for, an array for several.
    Document,
    /// One document a line.
    Lines,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CreatedView<'a> {
    outcome: &'static str,
    parcel: &'a Parcel,
    warnings: &'a [Warning],
    idempotency_key: &'a IdempotencyKey,
    request_id: Option<&'a RequestId>,
    label: Option<LabelView<'a>>,
}

/// What a write made, as the API spells it, between the outcome and the key.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenView<'a, T> {
    outcome: &'static str,
    #[serde(flatten)]
    value: &'a T,
    idempotency_key: Option<&'a IdempotencyKey>,
    request_id: Option<&'a RequestId>,
}

/// `meta` is null when all pages are here.
#[derive(Serialize)]
struct ListingView<'a> {
    parcels: &'a [RowView<'a>],
    meta: Option<&'a PageMeta>,
}

/// A parcel, or what the service says instead that this version cannot read.
#[derive(Serialize)]
#[serde(untagged)]
enum RowView<'a> {
    Read(&'a ParcelSummary),
    Unreadable(&'a Unreadable),
}

#[derive(Serialize)]
struct VerdictView<'a> {
    file: &'a str,
    index: usize,
    valid: bool,
    errors: &'a [FieldFault],
    warnings: &'a [Warning],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LabelView<'a> {
    tracking_number: &'a TrackingNumber,
    format: LabelFormat,
    file: String,
    bytes: u64,
}

pub(super) fn write(out: &mut impl Write, results: &Results, layout: Layout) -> io::Result<()> {
    match results {
        Results::Help(_) | Results::File(_) | Results::Columns(_) => Ok(()),
        Results::Imported(imported) => import::write_json(out, imported, layout),
        Results::Sample(order) => one(out, order, layout),
        Results::Created(created) => one(out, &CreatedView::of(created), layout),
        Results::Health(health) => one(out, health, layout),
        Results::Finding(finding) => findings::write_json(out, finding, layout),
        Results::Voided(voided) => one(out, &WrittenView::of(voided), layout),
        Results::Submitted(submitted) => one(out, &WrittenView::of(submitted), layout),
        Results::Manifest(manifest) => one(out, manifest, layout),
        Results::Label(label) => one(out, label, layout),
        Results::Reprinted(reprinted) => one(out, &WrittenView::of(reprinted), layout),
        Results::Reset(reset) => one(out, reset, layout),
        Results::Listed(Listing { parcels, meta }) => {
            let parcels: Vec<_> = parcels.iter().map(RowView::of).collect();
            let listing = ListingView { parcels: &parcels, meta: meta.as_ref() };
            match layout {
                Layout::Document => one(out, &listing, layout),
                Layout::Lines => each(out, &parcels, layout),
            }
        }
        Results::Tracked(List { asked: 1, found }) => each(out, found, layout),
        Results::Tracked(List { found, .. }) => all(out, found, layout),
        Results::Labels(List { asked, found }) => {
            let views: Vec<_> = found.iter().map(LabelView::of).collect();
            if *asked == 1 { each(out, &views, layout) } else { all(out, &views, layout) }
        }
        // A file may hold any number of orders, so this is a list whatever was found.
        Results::Verdicts(verdicts) => {
            all(out, &verdicts.iter().map(VerdictView::of).collect::<Vec<_>>(), layout)
        }
    }
}

pub(super) fn all<T: Serialize>(out: &mut impl Write, all: &[T], layout: Layout) -> io::Result<()> {
    match layout {
        Layout::Document => one(out, &all, layout),
        Layout::Lines => each(out, all, layout),
    }
}

fn each<T: Serialize>(out: &mut impl Write, all: &[T], layout: Layout) -> io::Result<()> {
    all.iter().try_for_each(|document| one(out, document, layout))
}

pub(super) fn one(out: &mut impl Write, value: &impl Serialize, layout: Layout) -> io::Result<()> {
    let text = match layout {
        Layout::Document => serde_json::to_string_pretty(value)?,
        Layout::Lines => serde_json::to_string(value)?,
    };
    writeln!(out, "{}", harmless(text))
}

/// The same JSON with the characters escaped that could command a terminal.
fn harmless(json: String) -> String {
    if !json.contains(is_command) {
        return json;
    }
    let escaped = |c: char| match c {
        '\n' => c.to_string(),
        c if is_command(c) => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    json.chars().map(escaped).collect()
}

impl<'a> CreatedView<'a> {
    fn of(created: &'a Created) -> Self {
        Self {
            outcome: word(created.outcome),
            parcel: &created.order.parcel,
            warnings: &created.order.warnings,
            idempotency_key: &created.idempotency_key,
            request_id: created.request_id.as_ref(),
            label: created.label.as_ref().map(LabelView::of),
        }
    }
}

impl<'a, T> WrittenView<'a, T> {
    fn of(written: &'a Written<T>) -> Self {
        Self {
            outcome: word(written.outcome),
            value: &written.value,
            idempotency_key: written.idempotency_key.as_ref(),
            request_id: written.request_id.as_ref(),
        }
    }
}

impl<'a> RowView<'a> {
    fn of(row: &'a Row<ParcelSummary>) -> Self {
        match row {
            Ok(parcel) => Self::Read(parcel),
            Err(row) => Self::Unreadable(row),
        }
    }
}

impl<'a> VerdictView<'a> {
    fn of(verdict: &'a Verdict) -> Self {
        let Verdict { file, index, errors, warnings } = verdict;
        Self { file, index: *index, valid: verdict.is_valid(), errors, warnings }
    }
}

impl<'a> LabelView<'a> {
    fn of(label: &'a SavedLabel) -> Self {
        let file = label.file.to_string_lossy().into_owned();
        Self { tracking_number: &label.number, format: label.format, file, bytes: label.bytes }
    }
}

/// The outcome as a word for machines.
pub(super) fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Created => "created",
        Outcome::Replayed => "replayed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_means_the_same_and_commands_no_terminal() {
        let text = "a\u{9b}2J\u{202e}\u{7f}é\n\u{1b}[2J";
        for layout in [Layout::Document, Layout::Lines] {
            let mut out = Vec::new();
            one(&mut out, &[text], layout).unwrap();
            let written = String::from_utf8(out).unwrap();
            assert!(!written.chars().any(|c| is_command(c) && c != '\n'), "{written:?}");
            assert_eq!(serde_json::from_str::<[String; 1]>(&written).unwrap(), [text]);
        }
    }
}
