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
