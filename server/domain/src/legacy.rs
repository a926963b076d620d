//! Translates the legacy API's flat `snake_case` requests to `/api/v1`, and the responses of `/api/v1` back
//! (docs/api.md, Legacy API). It adds no rules.

use parcelo_types::{
    Language,
    internal::BatchTracking,
    model::{BatchResult, CreatedOrder, FieldFault, HistoryEntry, TrackingRecord},
};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::Refusal;
use crate::Millis;

/// Maximum number of tracking numbers in one request.
pub const MAX_NUMBERS: usize = 20;

/// The dates on which the legacy API was deprecated and will end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LegacySchedule {
    /// The start of the deprecation.
    pub deprecated: Millis,
    /// The time from which the legacy API responds with 410.
    pub sunset: Option<Millis>,
}

impl Default for LegacySchedule {
    /// Returns a schedule with deprecation from 2026-01-01 and without a sunset.
    fn default() -> Self {
        Self { deprecated: Millis(1_767_225_600_000), sunset: None }
    }
}

impl LegacySchedule {
    /// Returns `true` if the legacy API has ended.
    pub fn is_over(self, now: Millis) -> bool {
        self.sunset.is_some_and(|sunset| now >= sunset)
    }
}

/// A key's use of the legacy API on one day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DailyUsage {
    /// The key's public id.
    pub key_id: String,
    /// The key's name.
    pub name: String,
    /// The day, in UTC.
    pub day: chrono::NaiveDate,
    /// The number of requests.
    pub requests: u64,
}

/// Legacy fields, each with the field of an order that it stands for.
pub const FIELDS: &[(&str, &str)] = &[
    ("reference", "externalOrderId"),
    ("tracking_number", "trackingNumber"),
    ("sender_name", "sender.fullName"),
    ("sender_phone", "sender.phone"),
    ("sender_address", "sender.address.line1"),
    ("sender_city", "sender.address.city"),
    ("sender_country", "sender.address.country"),
    ("sender_zip", "sender.address.zipCode"),
    ("receiver_name", "receiver.fullName"),
    ("receiver_phone", "receiver.phone"),
    ("receiver_document", "receiver.nationalId"),
    ("receiver_document_type", "receiver.idType"),
    ("receiver_address", "receiver.address.line1"),
    ("receiver_city", "receiver.address.city"),
    ("receiver_province", "receiver.address.province"),
    ("receiver_zip", "receiver.address.zipCode"),
    ("receiver_country", "receiver.address.country"),
    ("weight_kg", "parcelDetails.weightKg"),
    ("weight_lb", "parcelDetails.weightLbs"),
    ("value", "parcelDetails.declaredValue"),
    ("currency", "parcelDetails.currency"),
    ("description", "customsInfo.description"),
];

/// Legacy names for further fields of `/api/v1`, which appear in faults but have no legacy field.
const ALIASES: &[(&str, &str)] =
    &[("X-Idempotency-Key", "idempotencyKey"), ("receiver_province", "receiver.address.state")];

/// Converts a legacy body to an order without an idempotency key.
pub fn to_order(body: &Value) -> Value {
    let mut order =
        json!({ "sender": { "address": {} }, "receiver": { "address": {} }, "parcelDetails": {} });
    for (legacy, path) in FIELDS {
        let value = body.get(legacy).filter(|value| !value.is_null());
        if let Some(value) = value {
            set_at_path(&mut order, path, value.clone());
        }
    }
    order
}

/// Derives the idempotency key from the reference, if there is one: the same reference means the same order.
pub fn idempotency_key_from_reference(body: &Value) -> Option<String> {
    let reference = body.get("reference")?.as_str()?.trim();
    let hash = Sha256::digest(reference);
    let hex: Vec<_> = hash.iter().take(20).map(|byte| format!("{byte:02x}")).collect();
    (!reference.is_empty()).then(|| format!("legacy-{}", hex.concat()))
}

fn set_at_path(order: &mut Value, path: &str, value: Value) {
    let mut target = order;
    for name in path.split('.') {
        if !target.is_object() {
            *target = Value::Object(Map::new());
        }
        let Some(members) = target.as_object_mut() else { return };
        target = members.entry(name).or_insert(Value::Null);
    }
    *target = value;
}

/// Returns the legacy name of a field of `/api/v1`, or the same name if it has none.
fn legacy_name(path: &str) -> &str {
    let known = FIELDS.iter().chain(ALIASES).find(|(_, known)| *known == path);
    known.map_or(path, |(legacy, _)| legacy)
}

/// Converts a refusal to the legacy format.
pub fn to_legacy_refusal(refusal: &Refusal) -> Value {
    let mut body = json!({
        "ok": false,
        "error": refusal.code.code(),
        "message": refusal.text(Language::En),
        "message_es": refusal.text(Language::Es),
    });
    let faults = refusal.faults();
    if let Some(members) = body.as_object_mut().filter(|_| !faults.is_empty()) {
        members.insert("fields".to_owned(), first_faults(&faults, Language::En));
        members.insert("fields_es".to_owned(), first_faults(&faults, Language::Es));
    }
    body
}

/// Returns the text of the first fault of each field, by the legacy name of the field.
fn first_faults(faults: &[FieldFault], language: Language) -> Value {
    let mut fields = Map::new();
    for fault in faults {
        let text = language.pick(&fault.message, &fault.message_es);
        fields.entry(legacy_name(&fault.field)).or_insert_with(|| json!(replace_field_names(text)));
    }
    Value::Object(fields)
}

/// Replaces the names of fields in a text by their legacy names.
fn replace_field_names(text: &str) -> String {
    FIELDS.iter().fold(text.to_owned(), |text, (legacy, path)| match unambiguous_name(path) {
        Some(name) => text.replace(name, legacy),
        None => text,
    })
}

/// Returns the last segment of a path if it is unambiguous in a sentence: it is in camelCase, unlike any
/// English word, and no other field ends with it.
fn unambiguous_name(path: &str) -> Option<&str> {
    let name = path.rsplit('.').next()?;
    let fields_with_name = FIELDS.iter().filter(|(_, other)| other.ends_with(name)).count();
    (fields_with_name == 1 && name.contains(char::is_uppercase)).then_some(name)
}

/// Converts a created order to the legacy format.
pub fn to_legacy_order(order: &CreatedOrder) -> Value {
    let parcel = &order.parcel;
    json!({
        "ok": true,
        "id": parcel.id,
        "tracking_number": parcel.tracking_number,
        "status": parcel.status,
        "label_url": parcel.label_url,
    })
}

/// Converts tracking records to the legacy format.
pub fn to_legacy_tracking(batch: &BatchTracking) -> Value {
    let results = batch.results.iter().map(|result| match result {
        BatchResult::Found { tracking, .. } => to_legacy_record(tracking),
        BatchResult::NotFound { tracking_number, error, .. } => {
            json!({ "tracking_number": tracking_number, "error": error.code })
        }
        // Only clients read this variant; the server never creates it.
        BatchResult::Unreadable { row, .. } => row.json().clone(),
    });
    json!({ "ok": true, "tracking": results.collect::<Vec<_>>() })
}

fn to_legacy_record(record: &TrackingRecord) -> Value {
    let event = |entry: &HistoryEntry| {
        let date = parcelo_types::internal::time::to_text(entry.timestamp);
        json!({ "status": entry.status, "date": date, "location": entry.location })
    };
    json!({
        "tracking_number": record.tracking_number,
        "status": record.status,
        "status_name": record.status_name,
        "estimated_delivery": record.estimated_delivery,
        "events": record.history.iter().flatten().flatten().map(event).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use parcelo_types::{
        Environment, OrderRequest, Parcel, ParcelStatus, TrackingNumber,
        model::{FaultCode, ItemError, ParcelId},
        rules,
    };

    use super::*;

    fn body() -> Value {
        json!({
            "reference": "PO-77", "tracking_number": "SB-SUCCESS-0001",
            "sender_name": "Ana Ruiz", "sender_phone": "+13055550100", "sender_address": "8400 NW 25th St",
            "sender_city": "Miami", "sender_country": "US", "sender_zip": "33122",
            "receiver_name": "Luis Paredes", "receiver_phone": "+593991234567",
            "receiver_document": "1714307103", "receiver_document_type": "cedula",
            "receiver_address": "Av. Amazonas N34-451", "receiver_city": "Quito",
            "receiver_province": "Pichincha", "receiver_zip": "170515", "receiver_country": "EC",
            "weight_kg": 1.25, "weight_lb": 2.75577, "value": 45.5, "currency": "USD",
            "description": "Cotton shirts"
        })
    }

    fn check_order(order: &Value) -> Result<rules::Accepted<OrderRequest>, rules::Rejected> {
        let context = rules::OrderContext::new(&rules::Destinations::All)
            .with_environment(Environment::Sandbox)
            .with_header_key(Some("legacy-0001"));
        rules::check_order(order, &context)
    }

    #[test]
    fn every_legacy_field_maps_to_its_order_field() {
        let order = to_order(&body());
        for (legacy, path) in FIELDS {
            let pointer = format!("/{}", path.replace('.', "/"));
            assert_eq!(order.pointer(&pointer), body().get(legacy), "{legacy}");
            assert_eq!(legacy_name(path), *legacy);
        }
        let accepted = check_order(&order).unwrap();
        let unknown: Vec<_> = accepted
            .warnings
            .iter()
            .filter(|warning| warning.code.to_string() == "UNKNOWN_FIELD")
            .collect();
        assert!(unknown.is_empty(), "the rules know every path: {unknown:?}");
    }

    #[test]
    fn an_empty_body_is_refused_by_the_rules_in_legacy_names_only() {
        for country in ["EC", "MX", "CO", "US"] {
            let order = to_order(&json!({ "receiver_country": country }));
            let faults = check_order(&order).unwrap_err().faults;
            assert!(faults.len() > 8);
            let Value::Object(fields) = first_faults(&faults, Language::Es) else { panic!() };
            assert!(fields.keys().all(|name| !name.contains('.')), "{country}: {fields:?}");
        }
    }

    #[test]
    fn fault_texts_name_legacy_fields_only() {
        let table = [
            ("weight_kg", json!(null), json!(null), "weight_kg or weight_lb."),
            ("weight_lb", json!(9), json!("cedula"), "weight_lb and weight_kg differ by more than"),
            ("receiver_document", json!("1"), json!("cedula"), "use receiver_document_type ruc"),
            (
                "receiver_document_type",
                json!("dni"),
                json!("dni"),
                "set receiver_document_type to cedula",
            ),
        ];
        for (field, value, kind, says) in table {
            let mut body = body();
            body["receiver_country"] = json!(if kind == "dni" { "CO" } else { "EC" });
            body["receiver_document_type"] = kind;
            if value.is_null() {
                body["weight_lb"] = Value::Null;
            }
            body[field] = value;
            let faults = check_order(&to_order(&body)).unwrap_err().faults;
            let english = first_faults(&faults, Language::En);
            assert!(english[field].as_str().is_some_and(|text| text.contains(says)), "{english}");
            let spanish = first_faults(&faults, Language::Es).to_string();
            assert!(["weightKg", "weightLbs", "idType"].iter().all(|name| !spanish.contains(name)));
        }
    }

    #[test]
    fn the_key_of_a_reference_is_unique_and_valid() {
        let key =
            |reference: Value| idempotency_key_from_reference(&json!({ "reference": reference }));
        let derived = key(json!("PO-77")).unwrap();
        assert!(parcelo_types::IdempotencyKey::parse(&derived).is_ok());
        assert_eq!(key(json!(" PO-77 ")), Some(derived.clone()));
        assert_ne!(key(json!("PO-78")), Some(derived));
        for none in [json!(null), json!(""), json!("  "), json!(7)] {
            assert_eq!(key(none.clone()), None, "{none}");
        }
    }

    #[test]
    fn a_refusal_is_flat_and_names_legacy_fields() {
        let fault =
            |field: &str| FieldFault::new(field, FaultCode::Required, ("It is missing.", "Falta."));
        let refused = Refusal::invalid(&[
            fault("receiver.address.city"),
            fault("receiver.address.city"),
            fault("idempotencyKey"),
        ]);
        assert_eq!(
            to_legacy_refusal(&refused),
            json!({
                "ok": false, "error": "VALIDATION_FAILED", "message": "The request is not valid.",
                "message_es": "La solicitud no es válida.",
                "fields": { "receiver_city": "It is missing.", "X-Idempotency-Key": "It is missing." },
                "fields_es": { "receiver_city": "Falta.", "X-Idempotency-Key": "Falta." },
            })
        );
        let plain = to_legacy_refusal(&parcelo_types::ErrorCode::ParcelNotFound.into());
        assert!(plain.get("fields").is_none(), "{plain}");
    }

    #[test]
    fn the_legacy_api_ends_at_its_sunset() {
        let schedule = LegacySchedule { sunset: Some(Millis(10)), ..LegacySchedule::default() };
        assert_eq!([9, 10, 11].map(|now| schedule.is_over(Millis(now))), [false, true, true]);
        assert!(!LegacySchedule::default().is_over(Millis(i64::MAX)));
    }

    #[test]
    fn orders_and_tracking_records_are_flat() {
        let number = TrackingNumber::parse("SB-SUCCESS-0001").unwrap();
        let link = "https://labels.example/1.pdf";
        let parcel = Parcel::new(ParcelId::unchecked("par_1"), number.clone(), link);
        assert_eq!(
            to_legacy_order(&CreatedOrder::new(parcel)),
            json!({
                "ok": true, "id": "par_1", "tracking_number": "SB-SUCCESS-0001",
                "status": "LABEL_GENERATED", "label_url": link,
            })
        );
        let estimated = "2026-01-18T23:59:59-05:00";
        let ordered = HistoryEntry::new(ParcelStatus::Ordered, Millis(0).to_utc(), "Miami, US");
        let record = TrackingRecord::new(number, ParcelStatus::Voided, estimated.parse().unwrap())
            .with_status_name("Anulado")
            .with_history(vec![Ok(ordered)]);
        let missing = ItemError::new("PARCEL_NOT_FOUND", ("It is missing.", "Falta."));
        let results = vec![
            BatchResult::found("SB-SUCCESS-0001", record),
            BatchResult::not_found("SB-SUCCESS-0002", missing),
        ];
        let event = json!({
            "status": "ORDERED", "date": "1970-01-01T00:00:00.000Z", "location": "Miami, US",
        });
        let found = json!({
            "tracking_number": "SB-SUCCESS-0001", "status": "VOIDED", "status_name": "Anulado",
            "estimated_delivery": estimated, "events": [event],
        });
        let missing = json!({ "tracking_number": "SB-SUCCESS-0002", "error": "PARCEL_NOT_FOUND" });
        assert_eq!(
            to_legacy_tracking(&BatchTracking::new(results)),
            json!({ "ok": true, "tracking": [found, missing] })
        );
    }
}
