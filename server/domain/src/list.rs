//! Summaries of parcels for lists, without personal data (spec: GET parcels).

use parcelo_types::{Awb, Language, ParcelStatus, model::ParcelSummary};
use ulid::Ulid;

use super::{ParcelRow, State, arrival::arrival};
use crate::{
    Millis,
    ids::{manifest_id, parcel_id},
};

/// A parcel as the store returns it for a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParcelListRow {
    /// The parcel.
    pub parcel: ParcelRow,
    /// The order's id in the caller's system.
    pub external_order_id: Option<String>,
    /// The customer's reference.
    pub customer_reference: Option<String>,
    /// The manifest it belongs to.
    pub manifest: Option<(Ulid, Awb)>,
}

/// Returns the summary of a parcel as of `now`. `label_url` is called only if the parcel has a valid label.
pub fn parcel_summary(
    listed: ParcelListRow,
    label_url: impl FnOnce(&ParcelRow) -> String,
    language: Language,
    now: Millis,
) -> ParcelSummary {
    let ParcelListRow { parcel, external_order_id, customer_reference, manifest } = listed;
    let status = ParcelStatus::from(parcel.state);
    let has_label = !matches!(parcel.state, State::Ordered | State::Voided);
    let (manifest, awb) = manifest.unzip();
    let name = status.name(language).to_owned();
    let label_url = has_label.then(|| label_url(&parcel));
    let id = parcel_id(parcel.id);
    let arrival = arrival(&parcel, now);
    let mut summary = ParcelSummary::new(id, parcel.tracking_number, status, parcel.country)
        .with_status_name(name)
        .with_created_at(parcel.created_at.to_utc())
        .with_updated_at(parcel.updated_at.to_utc());
    summary.arrival = arrival;
    summary.external_order_id = external_order_id;
    summary.customer_reference = customer_reference;
    summary.label_url = label_url.map(Into::into);
    summary.manifest_id = manifest.map(manifest_id);
    summary.awb_number = awb.map(Into::into);
    summary
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parcel::tests::parcel, state::TRANSITIONS};

    #[test]
    fn only_a_valid_label_is_linked() {
        for (state, _) in TRANSITIONS {
            let listed = ParcelListRow {
                parcel: parcel(state, Millis(0)),
                external_order_id: None,
                customer_reference: None,
                manifest: None,
            };
            let link = |_: &ParcelRow| "https://labels.example/1.pdf".to_owned();
            let summary = parcel_summary(listed, link, Language::En, Millis(0));
            let has_no_label = [State::Ordered, State::Voided].contains(&state);
            assert_eq!(summary.label_url.is_none(), has_no_label, "{state:?}");
        }
    }
}
