//! Results as comma-separated values: a heading of stable names, then one row for each finding.

use std::io::{self, Write};

use csv::Writer;
use parcelo::{FieldFault, Language, TrackingRecord, Warning, time};

use super::json::word;
use crate::results::{Created, Results, SavedLabel, Verdict};

pub(super) fn write(out: &mut impl Write, results: &Results, language: Language) -> io::Result<()> {
    let mut rows = Writer::from_writer(out);
    match results {
        Results::Help(_) | Results::File(_) | Results::Sample(_) => {}
        Results::Created(created) => write_created(&mut rows, created)?,
        Results::Verdicts(verdicts) => write_verdicts(&mut rows, verdicts, language)?,
        Results::Tracked(list) => write_tracked(&mut rows, &list.found)?,
        Results::Labels(list) => write_labels(&mut rows, &list.found)?,
        Results::Health(health) => {
            rows.write_record(["status", "keyName", "environment", "allowedCountries"])?;
            let environment = health.environment.map_or("", |environment| environment.code());
            let countries = health.allowed_countries.join(" ");
            rows.write_record([&*health.status, &*health.key_name, environment, &countries])?;
        }
    }
    rows.flush()
}

fn write_created(rows: &mut Writer<impl Write>, created: &Created) -> csv::Result<()> {
    rows.write_record([
        "trackingNumber",
        "status",
        "labelUrl",
        "createdAt",
        "id",
        "outcome",
        "idempotencyKey",
        "labelFile",
    ])?;
    let parcel = &created.order.parcel;
    let file = created.label.as_ref().map(|label| label.file.to_string_lossy());
    rows.write_record([
        parcel.tracking_number.as_str(),
        parcel.status.code(),
        &parcel.label_url,
        &time::to_text(parcel.created_at),
        &parcel.id,
        word(created.outcome),
        created.idempotency_key.as_str(),
        file.as_deref().unwrap_or_default(),
    ])
}

/// A row for each fault and each warning; a valid order without any has one row of its own.
fn write_verdicts(
    rows: &mut Writer<impl Write>,
    verdicts: &[Verdict],
    language: Language,
) -> csv::Result<()> {
    rows.write_record([
        "file",
        "index",
        "valid",
        "severity",
        "field",
        "code",
        "message",
        "suggestion",
    ])?;
    for verdict in verdicts {
        let faults = verdict.errors.iter().map(|fault| fault_cells(fault, language));
        let warnings = verdict.warnings.iter().map(|warning| warning_cells(warning, language));
        let mut findings: Vec<_> = faults.chain(warnings).collect();
        if findings.is_empty() {
            findings.push([""; 5]);
        }
        let (index, valid) = (verdict.index.to_string(), verdict.is_valid().to_string());
        for finding in findings {
            rows.write_record([&*verdict.file, &*index, &*valid].into_iter().chain(finding))?;
        }
    }
    Ok(())
}

fn fault_cells(fault: &FieldFault, language: Language) -> [&str; 5] {
    let suggestion = fault.suggestion.as_deref().unwrap_or_default();
    ["error", &fault.field, fault.code.code(), fault.text(language), suggestion]
}

fn warning_cells(warning: &Warning, language: Language) -> [&str; 5] {
    ["warning", &warning.field, warning.code.code(), warning.text(language), ""]
}

/// With history a row for each event, else one for each parcel.
fn write_tracked(rows: &mut Writer<impl Write>, records: &[TrackingRecord]) -> csv::Result<()> {
    if records.iter().any(|record| record.history.is_some()) {
        return write_history(rows, records);
    }
    rows.write_record(["trackingNumber", "status", "statusName", "estimatedDelivery"])?;
    for record in records {
        rows.write_record([
            record.tracking_number.as_str(),
            record.status.code(),
            &record.status_name,
            &record.estimated_delivery.to_rfc3339(),
        ])?;
    }
    Ok(())
}

fn write_history(rows: &mut Writer<impl Write>, records: &[TrackingRecord]) -> csv::Result<()> {
    rows.write_record([
        "trackingNumber",
        "sequence",
        "timestamp",
        "status",
        "statusName",
        "location",
        "description",
    ])?;
    for record in records {
        for event in record.history.iter().flatten() {
            rows.write_record([
                record.tracking_number.as_str(),
                &event.sequence.map(|sequence| sequence.to_string()).unwrap_or_default(),
                &time::to_text(event.timestamp),
                event.status.code(),
                &event.status_name,
                &event.location,
                event.description.as_deref().unwrap_or_default(),
            ])?;
        }
    }
    Ok(())
}

fn write_labels(rows: &mut Writer<impl Write>, labels: &[SavedLabel]) -> csv::Result<()> {
    rows.write_record(["trackingNumber", "format", "file", "bytes"])?;
    for label in labels {
        rows.write_record([
            label.number.as_str(),
            label.format.code(),
            &label.file.to_string_lossy(),
            &label.bytes.to_string(),
        ])?;
    }
    Ok(())
}
