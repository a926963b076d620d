//! The statuses of a parcel and their names (spec: States and transitions).

use super::{Language, macros::wire_enum};

wire_enum! {
    /// The status of a parcel (docs/api.md, Statuses, has the transitions).
    ///
    /// ```
    /// # use parcelo::{Language, ParcelStatus};
    /// assert_eq!(ParcelStatus::from("DELIVERED"), ParcelStatus::Delivered);
    /// assert_eq!(ParcelStatus::Delivered.name(Language::Es), "Entregado");
    /// ```
    ParcelStatus {
        /// The order exists and awaits its label.
        Ordered = "ORDERED",
        /// The shipping label exists; the order can still be voided.
        LabelGenerated = "LABEL_GENERATED",
        /// The parcel belongs to a manifest.
        ManifestSubmitted = "MANIFEST_SUBMITTED",
        /// The carrier has collected the parcel.
        PickedUp = "PICKED_UP",
        /// Customs is processing the parcel.
        CustomsClearance = "CUSTOMS_CLEARANCE",
        /// Customs has stopped the parcel.
        CustomsHold = "CUSTOMS_HOLD",
        /// The parcel is on the way to its destination.
        InTransit = "IN_TRANSIT",
        /// The parcel is with the delivery driver.
        OutForDelivery = "OUT_FOR_DELIVERY",
        /// One delivery attempt failed; another follows.
        DeliveryAttempted = "DELIVERY_ATTEMPTED",
        /// The parcel was delivered.
        Delivered = "DELIVERED",
        /// The carrier has stopped trying to deliver the parcel.
        DeliveryFailed = "DELIVERY_FAILED",
        /// The parcel is on its way back to the sender.
        ReturnToSender = "RETURN_TO_SENDER",
        /// The order was cancelled.
        Voided = "VOIDED",
    }
}

impl ParcelStatus {
    /// Returns `true` if the status is final: the parcel was delivered, is on its way back, or was voided, so there is
    /// no need to ask again. An unknown status is not final, and neither is `DELIVERY_FAILED`, after which the carrier
    /// may try again.
    ///
    /// ```
    /// # use parcelo::ParcelStatus;
    /// assert!(ParcelStatus::Delivered.is_final());
    /// assert!(!ParcelStatus::DeliveryFailed.is_final());
    /// ```
    pub const fn is_final(&self) -> bool {
        matches!(self, Self::Delivered | Self::ReturnToSender | Self::Voided)
    }

    /// Returns the status's name; for an unknown status, its code.
    pub fn name(&self, language: Language) -> &str {
        match self {
            Self::Ordered => language.pick("Order created", "Pedido creado"),
            Self::LabelGenerated => language.pick("Label generated", "Etiqueta generada"),
            Self::ManifestSubmitted => language.pick("Manifest submitted", "Manifiesto enviado"),
            Self::PickedUp => language.pick("Picked up", "Recolectado"),
            Self::CustomsClearance => language.pick("In customs clearance", "En trámite aduanero"),
            Self::CustomsHold => language.pick("Held at customs", "Retenido en aduana"),
            Self::InTransit => language.pick("In transit", "En tránsito"),
            Self::OutForDelivery => language.pick("Out for delivery", "En reparto"),
            Self::DeliveryAttempted => language.pick("Delivery attempted", "Intento de entrega"),
            Self::Delivered => language.pick("Delivered", "Entregado"),
            Self::DeliveryFailed => language.pick("Delivery failed", "Entrega fallida"),
            Self::ReturnToSender => {
                language.pick("Returning to sender", "En devolución al remitente")
            }
            Self::Voided => language.pick("Voided", "Anulado"),
            Self::Unknown(code) => code,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_two_names_and_reads_back() {
        assert_eq!(ParcelStatus::KNOWN.len(), 13);
        for status in ParcelStatus::KNOWN {
            assert_eq!(&ParcelStatus::from(status.code()), status);
            assert_ne!(status.name(Language::En), status.name(Language::Es), "{status}");
        }
    }

    #[test]
    fn an_unknown_status_is_kept() {
        let text = r#""LOST_AT_SEA""#;
        let status: ParcelStatus = serde_json::from_str(text).unwrap();
        assert_eq!(status, ParcelStatus::Unknown("LOST_AT_SEA".into()));
        assert_eq!(serde_json::to_string(&status).unwrap(), text);
    }
}
