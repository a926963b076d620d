//! Submitting a manifest: either all of its parcels go under the air waybill, or none of them (docs/api.md, Submit a
//! manifest).

use std::collections::{BTreeMap, BTreeSet, HashSet};

use parcelo_types::{
    CurrencyCode, Decimal, ErrorCode, ManifestRequest, ParcelDetails, ParcelStatus,
    model::{DeclaredValue, ItemError, Manifest, Row, Warning, WarningCode},
};
use serde::Serialize;
use serde_json::json;
use ulid::Ulid;

use super::{
    Event, NewManifest, ParcelRow, ParcelRowId, Refusal, State, StoreOp, Tenant, Version, to_body,
};
use crate::{
    Millis,
    ids::{manifest_id, public_id},
    state::Cause,
};

const NUMBERS: &str = "trackingNumbers";

/// A requested parcel, with the values that its manifest adds up.
#[derive(Debug, Clone, PartialEq)]
pub struct ManifestCandidate {
    /// The parcel.
    pub parcel: ParcelRow,
    /// Its weight and value.
    pub details: ParcelDetails,
    /// The manifest that it is already in.
    pub manifest: Option<Ulid>,
}

/// A request to submit a manifest, with the records that were found for it.
#[derive(Debug)]
pub struct ManifestSubmission<'a> {
    /// The tenant that makes the request.
    pub tenant: Tenant,
    /// The request.
    pub request: &'a ManifestRequest,
    /// The tenant's manifest under the same air waybill.
    pub known: Option<Manifest>,
    /// The tenant's parcels for the requested numbers, in their order, or the reason why a parcel is missing.
    pub found: &'a [Result<ManifestCandidate, Refusal>],
}

/// The result of a submission that is not refused.
#[derive(Debug)]
pub enum SubmissionOutcome {
    /// The same manifest was submitted before; there is nothing to do.
    AlreadySubmitted(Manifest),
    /// It is submitted now.
    New {
        /// The manifest.
        manifest: Manifest,
        /// The parcels that the decision read, at the versions that it saw.
        expect: Vec<(ParcelRowId, Version)>,
        /// The operations.
        ops: Vec<StoreOp>,
    },
}

/// Returns the outcome of a submission and, for a new manifest, its operations.
pub fn submit(
    submission: ManifestSubmission<'_>,
    id: Ulid,
    now: Millis,
) -> Result<SubmissionOutcome, Refusal> {
    let ManifestSubmission { tenant, request, known, found } = submission;
    if let Some(known) = known {
        return if is_same_set(request, &known) {
            Ok(SubmissionOutcome::AlreadySubmitted(known))
        } else {
            let details = json!({ "manifestId": known.manifest_id });
            Err(Refusal::from(ErrorCode::ManifestAlreadySubmitted).with_details(details))
        };
    }
    let requested = request.tracking_numbers.iter().zip(found).enumerate();
    let rejected: Vec<_> = requested
        .filter_map(|(index, (number, candidate))| check_candidate(index, number, candidate))
        .collect();
    if !rejected.is_empty() {
        let details = json!({ "errors": rejected });
        return Err(Refusal::from(ErrorCode::ManifestParcelsRejected).with_details(details));
    }
    let candidates: Vec<_> = found.iter().flatten().collect();
    let manifest = build_manifest(request, &candidates, id, now);
    let new = NewManifest {
        id,
        tenant,
        awb: request.awb_number.clone(),
        submitted_at: now,
        document: to_body(&manifest),
        parcels: candidates.iter().map(|candidate| candidate.parcel.key).collect(),
    };
    let parcels = || candidates.iter().map(|candidate| &candidate.parcel);
    let expect = parcels().map(|parcel| (parcel.key, parcel.version)).collect();
    let mut ops = vec![StoreOp::InsertManifest(Box::new(new))];
    ops.extend(parcels().map(|parcel| move_to_manifest(parcel, now)));
    Ok(SubmissionOutcome::New { manifest, expect, ops })
}

/// Returns `true` if the manifest has exactly the requested parcels, regardless of order and case.
fn is_same_set(request: &ManifestRequest, known: &Manifest) -> bool {
    let requested: HashSet<_> =
        request.tracking_numbers.iter().map(|number| number.to_ascii_uppercase()).collect();
    let submitted: HashSet<_> =
        known.tracking_numbers.iter().map(|number| number.as_str().to_ascii_uppercase()).collect();
    requested == submitted
}

/// A parcel that prevents the submission of the manifest.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RejectedParcel<'a> {
    field: String,
    tracking_number: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<ParcelStatus>,
    #[serde(flatten)]
    error: ItemError,
}

fn check_candidate<'a>(
    index: usize,
    number: &'a str,
    found: &Result<ManifestCandidate, Refusal>,
) -> Option<RejectedParcel<'a>> {
    let refusal = match found {
        Err(refusal) => refusal.clone(),
        Ok(ManifestCandidate { manifest: Some(manifest), .. }) => {
            Refusal::already_manifested(&public_id("man", *manifest))
        }
        Ok(ManifestCandidate { parcel, .. }) if can_be_added(parcel.state) => {
            return None;
        }
        Ok(ManifestCandidate { parcel, .. }) => {
            Refusal::for_status(ErrorCode::ParcelNotManifestable, parcel.state)
        }
    };
    Some(RejectedParcel {
        field: format!("{NUMBERS}[{index}]"),
        tracking_number: number,
        status: found.as_ref().ok().map(|candidate| candidate.parcel.state.into()),
        error: refusal.to_item(),
    })
}

fn can_be_added(state: State) -> bool {
    state.can_become_by(Cause::Manifest, State::ManifestSubmitted)
}

fn move_to_manifest(parcel: &ParcelRow, now: Millis) -> StoreOp {
    let event = Event {
        sequence: parcel.last_sequence + 1,
        state: State::ManifestSubmitted,
        at: now,
        location: parcel.origin.clone(),
        description: None,
    };
    StoreOp::Move { parcel: parcel.key, event }
}

fn build_manifest(
    request: &ManifestRequest,
    candidates: &[&ManifestCandidate],
    id: Ulid,
    now: Millis,
) -> Manifest {
    let countries: BTreeSet<_> =
        candidates.iter().map(|candidate| candidate.parcel.country).collect();
    let weights = candidates.iter().filter_map(|candidate| candidate.details.kilograms());
    let numbers = candidates.iter().map(|candidate| candidate.parcel.tracking_number.clone());
    let (id, awb) = (manifest_id(id), request.awb_number.clone());
    let warnings =
        if countries.len() > 1 { vec![mixed_destinations_warning()] } else { Vec::new() };
    let mut manifest = Manifest::new(id, awb, numbers.collect(), now.to_utc())
        .with_total_weight_kg(weights.sum())
        .with_declared_values(declared_values(candidates))
        .with_destination_countries(countries.into_iter().map(Into::into).collect())
        .with_warnings(warnings);
    manifest.flight_number.clone_from(&request.flight_number);
    manifest.departure_date = request.departure_date;
    manifest.origin_airport.clone_from(&request.origin_airport);
    manifest.destination_airport.clone_from(&request.destination_airport);
    manifest.reference.clone_from(&request.reference);
    manifest
}

/// Returns the sums by currency, in the order of their codes.
fn declared_values(candidates: &[&ManifestCandidate]) -> Vec<Row<DeclaredValue>> {
    let mut sums: BTreeMap<&str, (CurrencyCode, Decimal)> = BTreeMap::new();
    for ParcelDetails { currency, declared_value, .. } in
        candidates.iter().map(|candidate| &candidate.details)
    {
        let (_, sum) = sums.entry(currency.as_str()).or_insert((*currency, Decimal::ZERO));
        *sum += declared_value;
    }
    sums.into_values().map(|(currency, amount)| Ok(DeclaredValue::new(currency, amount))).collect()
}

fn mixed_destinations_warning() -> Warning {
    let texts = (
        "The parcels go to several countries: check that a single air waybill is intended.",
        "Los paquetes van a varios países: verifique que corresponda una sola guía aérea.",
    );
    Warning::new(WarningCode::MixedDestinations, NUMBERS, texts)
}

#[cfg(test)]
mod tests {
    use parcelo_types::{Awb, CountryCode, TrackingNumber};
    use serde_json::Value;

    use super::*;
    use crate::{parcel::tests::parcel, sample};

    const NOW: Millis = Millis(9_000);

    fn request(numbers: &[&str]) -> ManifestRequest {
        let mut request: ManifestRequest = serde_json::from_value(sample::manifest()).unwrap();
        request.tracking_numbers = numbers.iter().map(|number| (*number).to_owned()).collect();
        request
    }

    fn candidate(state: State, details: Value) -> ManifestCandidate {
        let details = serde_json::from_value(details).unwrap();
        ManifestCandidate { parcel: parcel(state, Millis(1_000)), details, manifest: None }
    }

    fn submit_now(
        request: &ManifestRequest,
        known: Option<Manifest>,
        found: &[Result<ManifestCandidate, Refusal>],
    ) -> Result<SubmissionOutcome, Refusal> {
        let submission =
            ManifestSubmission { tenant: Tenant::from_number(3), request, known, found };
        submit(submission, Ulid::nil(), NOW)
    }

    #[test]
    fn under_an_air_waybill_the_same_parcels_are_the_same_manifest_and_others_are_refused() {
        let numbers = ["SB-SUCCESS-0001", "SB-SUCCESS-0002"]
            .map(|number| TrackingNumber::parse(number).unwrap());
        let awb = Awb::parse("176-12345675").unwrap();
        let known = Manifest::new(manifest_id(Ulid::nil()), awb, numbers.into(), NOW.to_utc());
        let table: [(&[&str], bool); 3] = [
            (&["sb-success-0002", "SB-SUCCESS-0001"], true),
            (&["SB-SUCCESS-0001"], false),
            (&["SB-SUCCESS-0001", "SB-SUCCESS-0003"], false),
        ];
        for (numbers, is_same) in table {
            match submit_now(&request(numbers), Some(known.clone()), &[]) {
                Ok(SubmissionOutcome::AlreadySubmitted(manifest)) => {
                    assert!(is_same, "{numbers:?}");
                    assert_eq!(manifest, known);
                }
                Ok(new) => panic!("{new:?}"),
                Err(refusal) => {
                    assert!(!is_same, "{numbers:?}");
                    assert_eq!(refusal.code, ErrorCode::ManifestAlreadySubmitted);
                    let details = json!({ "manifestId": "man_00000000000000000000000000" });
                    assert_eq!(refusal.to_envelope("req_1").error.details, Some(details));
                }
            }
        }
    }

    #[test]
    fn a_manifest_adds_up_its_parcels_and_moves_each() {
        let state = State::LabelGenerated;
        let mut to_mexico = candidate(state, json!({ "weightKg": 0.5, "declaredValue": 4.5 }));
        to_mexico.parcel.country = CountryCode::MX;
        to_mexico.parcel.key = ParcelRowId(2);
        let found = [
            Ok(candidate(state, json!({ "weightKg": 1.25, "declaredValue": 45.5 }))),
            Ok(to_mexico),
            Ok(candidate(state, json!({ "weightKg": 2, "declaredValue": 10, "currency": "EUR" }))),
        ];
        let numbers = ["SB-SUCCESS-0001"; 3];
        let Ok(SubmissionOutcome::New { manifest, expect, ops }) =
            submit_now(&request(&numbers), None, &found)
        else {
            panic!("it is new")
        };
        let keys = [1, 2, 1].map(ParcelRowId);
        assert_eq!(expect, keys.map(|key| (key, Version(1))));
        let Some((StoreOp::InsertManifest(new), moves)) = ops.split_first() else {
            panic!("{ops:?}")
        };
        assert_eq!(new.parcels, keys);
        assert_eq!(serde_json::from_slice::<Manifest>(&new.document).unwrap(), manifest);
        let moves = moves.iter().map(|op| match op {
            StoreOp::Move { parcel, event } => (*parcel, event.state, event.sequence),
            other => panic!("{other:?}"),
        });
        let expected = keys.map(|key| (key, State::ManifestSubmitted, 3));
        assert_eq!(moves.collect::<Vec<_>>(), expected);
        let shown = serde_json::to_value(&manifest).unwrap();
        assert_eq!(shown["totalWeightKg"], 3.75);
        assert_eq!(
            shown["declaredValues"],
            json!([{ "currency": "EUR", "amount": 10 }, { "currency": "USD", "amount": 50 }])
        );
        assert_eq!(shown["destinationCountries"], json!(["EC", "MX"]));
        assert_eq!(shown["warnings"][0]["code"], "MIXED_DESTINATIONS");
        let Ok(SubmissionOutcome::New { manifest, .. }) =
            submit_now(&request(&numbers[..1]), None, &found[..1])
        else {
            panic!("it is new")
        };
        assert_eq!(manifest.warnings, [], "a single destination");
    }

    #[test]
    fn each_parcel_that_prevents_a_manifest_is_named_with_its_reason() {
        let details = || json!({ "weightKg": 1, "declaredValue": 1 });
        let mut taken = candidate(State::LabelGenerated, details());
        taken.manifest = Some(Ulid::nil());
        let found = [
            Err(Refusal::from(ErrorCode::ParcelNotFound)),
            Ok(candidate(State::LabelGenerated, details())),
            Ok(taken),
            Ok(candidate(State::InTransit, details())),
        ];
        let refusal = submit_now(&request(&["A", "B", "C", "D"]), None, &found).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::ManifestParcelsRejected);
        let details = refusal.to_envelope("req_1").error.details.unwrap();
        let rejected: Vec<_> = details["errors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|parcel| json!([parcel["field"], parcel["status"], parcel["code"]]))
            .collect();
        assert_eq!(
            rejected,
            [
                json!(["trackingNumbers[0]", null, "PARCEL_NOT_FOUND"]),
                json!(["trackingNumbers[2]", "LABEL_GENERATED", "PARCEL_ALREADY_MANIFESTED"]),
                json!(["trackingNumbers[3]", "IN_TRANSIT", "PARCEL_NOT_MANIFESTABLE"]),
            ]
        );
    }
}
