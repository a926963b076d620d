//! Results for people: aligned columns, names in words, times to the second.

use std::io::{self, Write};

use chrono::{DateTime, Utc};
use parcelo::{
    IdempotencyKey, Language, ParcelStatus,
    model::{
        Deleted, Health, LabelMetadata, LabelStatus, Manifest, ParcelSummary, Row, SandboxReset,
        TrackingRecord, VoidedOrders,
    },
};

use super::{
    errors, findings,
    grid::{headed, write_facts, write_table},
    import, plain,
};
use crate::{
    results::{Created, Results, SavedLabel, Verdict, Written},
    texts,
};

pub(super) fn write(out: &mut impl Write, results: &Results, language: Language) -> io::Result<()> {
    match results {
        Results::Help(_) | Results::File(_) | Results::Sample(_) | Results::Columns(_) => Ok(()),
        Results::Imported(imported) => import::write_people(out, imported, language),
        Results::Created(created) => write_created(out, created, language),
        Results::Verdicts(verdicts) => {
            verdicts.iter().try_for_each(|verdict| write_verdict(out, verdict, language))
        }
        Results::Voided(voided) => write_voided(out, voided, language),
        Results::Submitted(submitted) => write_manifest(out, &submitted.value, language),
        Results::Manifest(manifest) => write_manifest(out, manifest, language),
        Results::Tracked(list) => write_tracked(out, &list.found, language),
        Results::Listed(listing) => write_parcels(out, &listing.parcels, language),
        Results::Labels(list) => write_labels(out, &list.found, language),
        Results::Label(label) => write_label(out, label, None, language),
        Results::Reprinted(reprinted) => {
            write_label(out, &reprinted.value, reprinted.idempotency_key.as_ref(), language)
        }
        Results::Reset(reset) => write_reset(out, reset, language),
        Results::Health(health) => write_health(out, health, language),
        Results::Finding(finding) => findings::write_people(out, finding, language),
    }
}

fn write_health(out: &mut impl Write, health: &Health, language: Language) -> io::Result<()> {
    let environment = health.environment.as_ref().map_or("", |environment| environment.as_str());
    let countries = match &*health.allowed_countries {
        [all] if all == "*" => texts::EVERY_COUNTRY.pick(language).to_owned(),
        some => some.join(", "),
    };
    let facts = [
        (texts::STATUS, health.status.clone()),
        (texts::KEY_NAME, health.key_name.clone()),
        (texts::ENVIRONMENT, environment.to_owned()),
        (texts::COUNTRIES, countries),
    ];
    write_facts(out, &facts, language)
}

fn write_created(out: &mut impl Write, created: &Created, language: Language) -> io::Result<()> {
    let parcel = &created.order.parcel;
    let mut facts = vec![
        (texts::TRACKING_NUMBER, parcel.tracking_number.to_string()),
        (texts::STATUS, status_of(&parcel.status, parcel.status.name(language))),
        (texts::CREATED, parcel.created_at.map(moment).unwrap_or_default()),
        (texts::LABEL, parcel.label_url.clone().map(String::from).unwrap_or_default()),
        (texts::IDEMPOTENCY_KEY, created.idempotency_key.to_string()),
    ];
    if let Some(label) = &created.label {
        facts.push((texts::LABEL_FILE, label.file.to_string_lossy().into_owned()));
    }
    write_facts(out, &facts, language)
}

fn write_verdict(out: &mut impl Write, verdict: &Verdict, language: Language) -> io::Result<()> {
    let word = if verdict.is_valid() { texts::VALID } else { texts::NOT_VALID };
    writeln!(out, "{}[{}]: {}", plain(&verdict.file), verdict.index, word.pick(language))?;
    for fault in &verdict.errors {
        errors::write_fault(out, fault, language)?;
    }
    for warning in &verdict.warnings {
        write!(out, "  ")?;
        errors::write_warning(out, warning, language)?;
    }
    Ok(())
}

fn write_tracked(
    out: &mut impl Write,
    records: &[TrackingRecord],
    language: Language,
) -> io::Result<()> {
    let mut table = headed(&[texts::TRACKING_NUMBER, texts::STATUS, texts::ESTIMATED], language);
    for record in records {
        table.add_row([
            record.tracking_number.to_string(),
            status_of(&record.status, &record.status_name),
            record.estimated_delivery.date_naive().to_string(),
        ]);
    }
    if !records.is_empty() {
        write_table(out, table)?;
    }
    records.iter().try_for_each(|record| write_history(out, record, language))
}

/// Where a watched parcel stands now, in one line.
pub(super) fn write_change(out: &mut impl Write, record: &TrackingRecord) -> io::Result<()> {
    let status = status_of(&record.status, &record.status_name);
    let since = record.history.iter().flatten().flatten().last();
    let since = since
        .map(|event| format!("  {}  {}", moment(event.timestamp.to_utc()), plain(&event.location)));
    writeln!(out, "{}  {status}{}", record.tracking_number, since.unwrap_or_default())
}

fn write_history(
    out: &mut impl Write,
    record: &TrackingRecord,
    language: Language,
) -> io::Result<()> {
    let Some(history) = &record.history else { return Ok(()) };
    let headings = [texts::TIME, texts::STATUS, texts::PLACE, texts::DETAILS];
    let mut table = headed(&headings, language);
    for event in history {
        let event = match event {
            Ok(event) => event,
            Err(row) => {
                let empty = String::new;
                table.add_row([empty(), empty(), empty(), plain(&row.json().to_string())]);
                continue;
            }
        };
        table.add_row([
            event.timestamp.format(SECOND).to_string(),
            status_of(&event.status, &event.status_name),
            plain(&event.location),
            plain(event.description.as_deref().unwrap_or_default()),
        ]);
    }
    writeln!(out, "\n{}", record.tracking_number)?;
    write_table(out, table)
}

fn write_labels(out: &mut impl Write, labels: &[SavedLabel], language: Language) -> io::Result<()> {
    let headings = [texts::TRACKING_NUMBER, texts::FORMAT, texts::BYTES, texts::FILE];
    let mut table = headed(&headings, language);
    for label in labels {
        table.add_row([
            label.number.to_string(),
            label.format.to_string(),
            label.bytes.to_string(),
            plain(&label.file.to_string_lossy()),
        ]);
    }
    if labels.is_empty() { Ok(()) } else { write_table(out, table) }
}

/// The orders that are void now; why the others are not is told with the failure.
fn write_voided(
    out: &mut impl Write,
    voided: &Written<VoidedOrders>,
    language: Language,
) -> io::Result<()> {
    let headings = [texts::TRACKING_NUMBER, texts::STATUS, texts::BEFORE, texts::VOIDED];
    let mut table = headed(&headings, language);
    for result in voided.value.results.iter().flatten().filter(|result| result.voided) {
        let named = |status: &ParcelStatus| status_of(status, status.name(language));
        let before = match result.already_voided {
            Some(true) => texts::NOTHING_CHANGED.pick(language).to_owned(),
            Some(false) | None => result.previous_status.as_ref().map(named).unwrap_or_default(),
        };
        table.add_row([
            plain(&result.tracking_number),
            result.status.as_ref().map(named).unwrap_or_default(),
            before,
            result.voided_at.map(moment).unwrap_or_default(),
        ]);
    }
    write_table(out, table)?;
    let key = voided.idempotency_key.as_ref().map(ToString::to_string);
    write_facts(
        out,
        &key.map(|key| (texts::IDEMPOTENCY_KEY, key)).into_iter().collect::<Vec<_>>(),
        language,
    )
}

fn write_manifest(out: &mut impl Write, manifest: &Manifest, language: Language) -> io::Result<()> {
    let values = manifest.declared_values.iter();
    let values = values.map(|sum| match sum {
        Ok(sum) => format!("{} {}", sum.amount, sum.currency),
        Err(row) => row.json().to_string(),
    });
    let values: Vec<_> = values.collect();
    let countries = manifest.destination_countries.iter().map(ToString::to_string);
    let route = [&manifest.origin_airport, &manifest.destination_airport].map(Option::as_deref);
    let route: Vec<_> = route.into_iter().flatten().collect();
    let facts = [
        (texts::MANIFEST, manifest.manifest_id.to_string()),
        (texts::AWB, manifest.awb_number.to_string()),
        (texts::PARCELS, manifest.parcel_count.to_string()),
        (texts::WEIGHT, manifest.total_weight_kg.to_string()),
        (texts::VALUE, values.join(", ")),
        (texts::COUNTRIES, countries.collect::<Vec<_>>().join(", ")),
        (texts::FLIGHT, manifest.flight_number.clone().unwrap_or_default()),
        (texts::DEPARTURE, manifest.departure_date.map(|day| day.to_string()).unwrap_or_default()),
        (texts::ROUTE, route.join(" → ")),
        (texts::REFERENCE, manifest.reference.clone().unwrap_or_default()),
        (texts::SUBMITTED, moment(manifest.submitted_at)),
    ];
    let told: Vec<_> = facts.into_iter().filter(|(_, fact)| !fact.is_empty()).collect();
    write_facts(out, &told, language)?;
    manifest
        .tracking_numbers
        .iter()
        .try_for_each(|number| writeln!(out, "  {}", plain(number.as_str())))
}

fn write_parcels(
    out: &mut impl Write,
    parcels: &[Row<ParcelSummary>],
    language: Language,
) -> io::Result<()> {
    let headings = [
        texts::TRACKING_NUMBER,
        texts::STATUS,
        texts::DESTINATION,
        texts::ORDER_ID,
        texts::AWB,
        texts::CREATED,
    ];
    let mut table = headed(&headings, language);
    for parcel in parcels.iter().flatten() {
        table.add_row([
            parcel.tracking_number.to_string(),
            status_of(&parcel.status, &parcel.status_name),
            plain(parcel.destination_country.as_str()),
            plain(parcel.external_order_id.as_deref().unwrap_or_default()),
            plain(parcel.awb_number.as_deref().unwrap_or_default()),
            moment(parcel.created_at),
        ]);
    }
    if parcels.is_empty() { Ok(()) } else { write_table(out, table) }
}

pub(super) fn write_label(
    out: &mut impl Write,
    label: &LabelMetadata,
    key: Option<&IdempotencyKey>,
    language: Language,
) -> io::Result<()> {
    let facts = [
        (texts::TRACKING_NUMBER, Some(label.tracking_number.to_string())),
        (texts::STATUS, Some(usable(&label.status, language))),
        (texts::VERSION, Some(label.version.to_string())),
        (texts::CREATED, Some(moment(label.created_at))),
        (texts::REPRINTED, label.last_reprinted_at.map(moment)),
        (texts::VOIDED, label.voided_at.map(moment)),
        (texts::LABEL, label.label_url.clone().map(String::from)),
        (texts::IDEMPOTENCY_KEY, key.map(ToString::to_string)),
    ];
    let told: Vec<_> = facts.into_iter().filter_map(|(name, fact)| Some((name, fact?))).collect();
    write_facts(out, &told, language)
}

fn usable(status: &LabelStatus, language: Language) -> String {
    let name = match status {
        LabelStatus::Active => texts::USABLE.pick(language),
        LabelStatus::Voided => texts::VOIDED.pick(language),
        other => return plain(other.code()),
    };
    format!("{name} ({status})")
}

fn write_reset(out: &mut impl Write, reset: &SandboxReset, language: Language) -> io::Result<()> {
    let Deleted {
        parcels,
        labels,
        manifests,
        tracking_events,
        idempotency_keys,
        webhook_deliveries,
        ..
    } = reset.deleted;
    let facts = [
        (texts::DELETED_PARCELS, parcels.to_string()),
        (texts::DELETED_LABELS, labels.to_string()),
        (texts::DELETED_MANIFESTS, manifests.to_string()),
        (texts::DELETED_EVENTS, tracking_events.to_string()),
        (texts::DELETED_KEYS, idempotency_keys.to_string()),
        (texts::DELETED_DELIVERIES, webhook_deliveries.to_string()),
        (texts::RESET_AT, moment(reset.reset_at)),
    ];
    write_facts(out, &facts, language)
}

/// A moment to the second.
pub(super) fn moment(moment: DateTime<Utc>) -> String {
    format!("{} UTC", moment.format(SECOND))
}

const SECOND: &str = "%Y-%m-%d %H:%M:%S";

/// A status in words and, for those who search for it, as the API spells it.
fn status_of(status: &ParcelStatus, name: &str) -> String {
    match (status.code(), name) {
        (code, name) if code == name => plain(code),
        (code, name) => format!("{} ({})", plain(name), plain(code)),
    }
}
