//! The metadata of labels, and reprints (docs/api.md, Label metadata, Reprint).

use parcelo_types::{
    Environment, ErrorCode, LabelFormat,
    model::{Downloads, LabelMetadata, LabelStatus, QrCode},
};

use super::{ParcelRow, Refusal, Secrets, Site, State};
use crate::{Millis, ids::label_id};

/// Returns the metadata of a parcel's label, or a refusal if the order has no label yet.
pub fn label_metadata(
    parcel: &ParcelRow,
    site: &Site,
    secrets: &Secrets,
) -> Result<LabelMetadata, Refusal> {
    if parcel.state == State::Ordered {
        return Err(ErrorCode::LabelNotFound.into());
    }
    let number = &parcel.tracking_number;
    let is_void = parcel.state == State::Voided;
    let file = |format| site.label_file_url(secrets, number, parcel.id, format);
    let mut label = LabelMetadata::new(label_id(parcel.id), number.clone())
        .with_version(parcel.label_version)
        .with_reprint_count(parcel.label_version.saturating_sub(1))
        .with_qr_code(QrCode::new(site.tracking_url(number)))
        .with_sandbox(site.environment == Environment::Sandbox)
        .with_created_at(parcel.created_at.to_utc());
    label.last_reprinted_at = parcel.reprinted_at.map(Millis::to_utc);
    Ok(if is_void {
        label.with_status(LabelStatus::Voided).with_voided_at(parcel.updated_at.to_utc())
    } else {
        let [pdf, zpl, png] = [LabelFormat::Pdf, LabelFormat::Zpl, LabelFormat::Png].map(file);
        label
            .with_label_url(file(LabelFormat::default()))
            .with_downloads(Downloads::new(pdf, zpl, png))
    })
}

/// Refuses a parcel that has no label yet, or whose label is void.
pub fn check_label_usable(state: State) -> Result<(), Refusal> {
    if state == State::Ordered {
        return Err(ErrorCode::LabelNotFound.into());
    }
    if state == State::Voided {
        return Err(ErrorCode::LabelVoided.into());
    }
    Ok(())
}

/// Returns the parcel with the next version of its label, or a refusal if its journey has ended.
pub fn reprint(parcel: &ParcelRow, now: Millis) -> Result<ParcelRow, Refusal> {
    check_label_usable(parcel.state)?;
    match parcel.state {
        State::Delivered | State::ReturnToSender => {
            Err(Refusal::for_status(ErrorCode::LabelNotReprintable, parcel.state))
        }
        State::Ordered
        | State::Voided
        | State::LabelGenerated
        | State::ManifestSubmitted
        | State::PickedUp
        | State::CustomsClearance
        | State::CustomsHold
        | State::InTransit
        | State::OutForDelivery
        | State::DeliveryAttempted
        | State::DeliveryFailed => Ok(ParcelRow {
            label_version: parcel.label_version.saturating_add(1),
            reprinted_at: Some(now),
            ..parcel.clone()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parcel::tests::parcel, state::TRANSITIONS};

    const CREATED: Millis = Millis(1_000);
    const NOW: Millis = Millis(9_000);

    #[test]
    fn a_label_can_be_used_until_its_void_and_reprinted_until_the_journey_ends() {
        let exceptions = [
            (State::Ordered, Err(ErrorCode::LabelNotFound), Err(ErrorCode::LabelNotFound)),
            (State::Voided, Err(ErrorCode::LabelVoided), Err(ErrorCode::LabelVoided)),
            (State::Delivered, Ok(()), Err(ErrorCode::LabelNotReprintable)),
            (State::ReturnToSender, Ok(()), Err(ErrorCode::LabelNotReprintable)),
        ];
        for (state, _) in TRANSITIONS {
            let exception = exceptions.into_iter().find(|(exception, ..)| *exception == state);
            let (_, usable, reprinted) = exception.unwrap_or((state, Ok(()), Ok(())));
            let found = check_label_usable(state).map_err(|refusal| refusal.code);
            assert_eq!(found, usable, "{state:?}");
            let found = reprint(&parcel(state, CREATED), NOW).map_err(|refusal| refusal.code);
            let found = found.map(|parcel| (parcel.label_version, parcel.reprinted_at));
            assert_eq!(found, reprinted.map(|()| (2, Some(NOW))), "{state:?}");
        }
    }

    #[test]
    fn a_void_label_is_shown_without_links() {
        let site = Site::new(Environment::Sandbox, "https://sandbox.example");
        let secrets = Secrets::derive(&[1; 32]);
        let metadata = |state| {
            let parcel = ParcelRow { label_version: 3, ..parcel(state, CREATED) };
            label_metadata(&parcel, &site, &secrets)
        };
        let active = metadata(State::InTransit).unwrap();
        assert_eq!((active.version, active.reprint_count, active.sandbox), (3, 2, true));
        assert_eq!((active.status, active.voided_at), (LabelStatus::Active, None));
        assert!(active.label_url.is_some() && active.downloads.is_some());
        let voided = metadata(State::Voided).unwrap();
        assert_eq!(voided.status, LabelStatus::Voided);
        assert_eq!(voided.voided_at, Some(CREATED.to_utc()));
        assert!(voided.label_url.is_none() && voided.downloads.is_none());
        let refusal = metadata(State::Ordered).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::LabelNotFound);
    }
}
