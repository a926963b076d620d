//! What is known about a label, and making it anew (docs/api.md, Label metadata, Reprint).

use parcelo::{
    Barcode, Downloads, Environment, ErrorCode, LabelFormat, LabelMetadata, LabelSize, LabelStatus,
    QrCode,
};

use super::{ParcelRow, Refusal, Secrets, Site, State};
use crate::{clock::Millis, ids::named};

/// The metadata of a parcel's label; an order without a label has none.
pub fn metadata(
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
    Ok(LabelMetadata {
        label_id: named("lbl", parcel.id),
        tracking_number: number.clone(),
        status: if is_void { LabelStatus::Voided } else { LabelStatus::Active },
        version: parcel.label_version,
        reprint_count: parcel.label_version.saturating_sub(1),
        size: LabelSize::PAPER,
        dpi: LabelMetadata::DPI,
        barcode: Barcode { symbology: "CODE_128".to_owned(), value: number.to_string() },
        qr_code: QrCode { content: site.tracking_url(number) },
        sandbox: site.environment == Environment::Sandbox,
        formats: LabelFormat::ALL.map(Into::into).into(),
        label_url: (!is_void).then(|| file(LabelFormat::default())),
        downloads: (!is_void).then(|| Downloads {
            pdf: file(LabelFormat::Pdf),
            zpl: file(LabelFormat::Zpl),
            png: file(LabelFormat::Png),
        }),
        created_at: parcel.created_at.to_utc(),
        last_reprinted_at: parcel.reprinted_at.map(Millis::to_utc),
        voided_at: is_void.then(|| parcel.updated_at.to_utc()),
    })
}

/// Whether a parcel in this state has a label that can be used.
pub fn check_alive(state: State) -> Result<(), Refusal> {
    if state == State::Ordered {
        return Err(ErrorCode::LabelNotFound.into());
    }
    if state == State::Voided {
        return Err(ErrorCode::LabelVoided.into());
    }
    Ok(())
}

/// The parcel as it is after its label was made anew, unless its journey is over.
pub fn reprint(parcel: &ParcelRow, now: Millis) -> Result<ParcelRow, Refusal> {
    check_alive(parcel.state)?;
    match parcel.state {
        State::Delivered | State::ReturnToSender => {
            Err(Refusal::status(ErrorCode::LabelNotReprintable, parcel.state))
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
