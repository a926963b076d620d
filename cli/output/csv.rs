//! Results as comma-separated values: a heading of stable names, then one row for each finding.

use std::io::{self, Write};

use csv::Writer;
use parcelo::{
    IdempotencyKey, Language,
    model::{
        FieldFault, LabelMetadata, Manifest, ParcelSummary, Row, SandboxReset, TrackingRecord,
        VoidedOrders, Warning, time,
    },
};

use super::{findings, import, json::word};
use crate::results::{Created, Results, SavedLabel, Verdict, Written};

pub(super) fn write(out: &mut impl Write, results: &Results, language: Language) -> io::Result<()> {
    if let Results::Imported(imported) = results {
        return import::write_csv(out, imported);
    }
    let mut rows = Writer::from_writer(out);
    match results {
        Results::Help(_)
        | Results::File(_)
        | Results::Sample(_)
        | Results::Columns(_)
        | Results::Imported(_) => {}
        Results::Created(created) => write_created(&mut rows, created)?,
        Results::Verdicts(verdicts) => write_verdicts(&mut rows, verdicts, language)?,
        Results::Voided(voided) => write_voided(&mut rows, voided, language)?,
        Results::Submitted(submitted) => write_manifest(&mut rows, &submitted.value)?,
        Results::Manifest(manifest) => write_manifest(&mut rows, manifest)?,
        Results::Listed(listing) => write_parcels(&mut rows, &listing.parcels)?,
        Results::Label(label) => write_label(&mut rows, label, None)?,
        Results::Reprinted(reprinted) => {
            write_label(&mut rows, &reprinted.value, reprinted.idempotency_key.as_ref())?;
        }
        Results::Reset(reset) => write_reset(&mut rows, reset)?,
        Results::Tracked(list) => write_tracked(&mut rows, &list.found)?,
        Results::Labels(list) => write_labels(&mut rows, &list.found)?,
        Results::Finding(finding) => findings::write_csv(&mut rows, finding, language)?,
        Results::Health(health) => {
            rows.write_record(["status", "keyName", "environment", "allowedCountries"])?;
            let environment =
                health.environment.as_ref().map_or("", |environment| environment.as_str());
            let countries = health.allowed_countries.join(" ");
            rows.write_record([&*health.status, &*health.key_name, environment, &countries])?;
        }
    }
    rows.flush()
}

/// The fault of the file or pipe behind one of the writer of rows.
pub(super) fn cause(fault: &io::Error) -> Option<&io::Error> {
    match fault.get_ref()?.downcast_ref::<csv::Error>()?.kind() {
        csv::ErrorKind::Io(cause) => Some(cause),
        _ => None,
    }
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
        parcel.label_url.as_deref().unwrap_or_default(),
        &parcel.created_at.map(time::to_text).unwrap_or_default(),
        parcel.id.as_str(),
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
            let event = match event {
                Ok(event) => event,
                Err(row) => {
                    let (number, json) = (record.tracking_number.as_str(), row.json().to_string());
                    rows.write_record([number, "", "", "", "", "", &json])?;
                    continue;
                }
            };
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

/// A row for each order that was asked for, voided or not.
fn write_voided(
    rows: &mut Writer<impl Write>,
    voided: &Written<VoidedOrders>,
    language: Language,
) -> csv::Result<()> {
    rows.write_record([
        "trackingNumber",
        "voided",
        "alreadyVoided",
        "previousStatus",
        "status",
        "voidedAt",
        "code",
        "message",
        "idempotencyKey",
    ])?;
    let key = voided.idempotency_key.as_ref().map_or("", IdempotencyKey::as_str);
    for result in &voided.value.results {
        let result = match result {
            Ok(result) => result,
            Err(row) => {
                let (code, json) = ("UNREADABLE_ANSWER", row.json().to_string());
                rows.write_record(["", "", "", "", "", "", code, &json, key])?;
                continue;
            }
        };
        let why = result.error.as_ref();
        let message = why.map_or("", |error| language.pick(&error.message, &error.message_es));
        rows.write_record([
            &*result.tracking_number,
            &*result.voided.to_string(),
            &*result.already_voided.map(|already| already.to_string()).unwrap_or_default(),
            result.previous_status.as_ref().map_or("", |status| status.code()),
            result.status.as_ref().map_or("", |status| status.code()),
            &*result.voided_at.map(time::to_text).unwrap_or_default(),
            why.map_or("", |error| &error.code),
            message,
            key,
        ])?;
    }
    Ok(())
}

/// A row for each parcel, so that a manifest can be joined to other lists.
fn write_manifest(rows: &mut Writer<impl Write>, manifest: &Manifest) -> csv::Result<()> {
    rows.write_record([
        "manifestId",
        "awbNumber",
        "trackingNumber",
        "flightNumber",
        "departureDate",
        "originAirport",
        "destinationAirport",
        "reference",
        "submittedAt",
    ])?;
    let departure = manifest.departure_date.map(|day| day.to_string()).unwrap_or_default();
    let submitted = time::to_text(manifest.submitted_at);
    for number in &manifest.tracking_numbers {
        rows.write_record([
            manifest.manifest_id.as_str(),
            manifest.awb_number.as_str(),
            number.as_str(),
            manifest.flight_number.as_deref().unwrap_or_default(),
            &departure,
            manifest.origin_airport.as_deref().unwrap_or_default(),
            manifest.destination_airport.as_deref().unwrap_or_default(),
            manifest.reference.as_deref().unwrap_or_default(),
            &submitted,
        ])?;
    }
    Ok(())
}

fn write_parcels(rows: &mut Writer<impl Write>, parcels: &[Row<ParcelSummary>]) -> csv::Result<()> {
    rows.write_record([
        "id",
        "trackingNumber",
        "status",
        "statusName",
        "externalOrderId",
        "customerReference",
        "destinationCountry",
        "labelUrl",
        "manifestId",
        "awbNumber",
        "createdAt",
        "updatedAt",
    ])?;
    for parcel in parcels.iter().flatten() {
        rows.write_record([
            parcel.id.as_str(),
            parcel.tracking_number.as_str(),
            parcel.status.code(),
            &parcel.status_name,
            parcel.external_order_id.as_deref().unwrap_or_default(),
            parcel.customer_reference.as_deref().unwrap_or_default(),
            parcel.destination_country.as_str(),
            parcel.label_url.as_deref().unwrap_or_default(),
            parcel.manifest_id.as_ref().map_or("", |id| id.as_str()),
            parcel.awb_number.as_deref().unwrap_or_default(),
            &time::to_text(parcel.created_at),
            &time::to_text(parcel.updated_at),
        ])?;
    }
    Ok(())
}

fn write_label(
    rows: &mut Writer<impl Write>,
    label: &LabelMetadata,
    key: Option<&IdempotencyKey>,
) -> csv::Result<()> {
    rows.write_record([
        "labelId",
        "trackingNumber",
        "status",
        "version",
        "labelUrl",
        "createdAt",
        "lastReprintedAt",
        "voidedAt",
        "idempotencyKey",
    ])?;
    rows.write_record([
        &*label.label_id,
        label.tracking_number.as_str(),
        label.status.code(),
        &label.version.to_string(),
        label.label_url.as_deref().unwrap_or_default(),
        &time::to_text(label.created_at),
        &label.last_reprinted_at.map(time::to_text).unwrap_or_default(),
        &label.voided_at.map(time::to_text).unwrap_or_default(),
        key.map_or("", IdempotencyKey::as_str),
    ])
}

fn write_reset(rows: &mut Writer<impl Write>, reset: &SandboxReset) -> csv::Result<()> {
    rows.write_record([
        "parcels",
        "labels",
        "manifests",
        "trackingEvents",
        "idempotencyKeys",
        "webhookDeliveries",
        "resetAt",
    ])?;
    let deleted = reset.deleted;
    rows.write_record([
        deleted.parcels.to_string(),
        deleted.labels.to_string(),
        deleted.manifests.to_string(),
        deleted.tracking_events.to_string(),
        deleted.idempotency_keys.to_string(),
        deleted.webhook_deliveries.to_string(),
        time::to_text(reset.reset_at),
    ])
}
