//! What the page says, in both languages.

use parcelo::{Language, ParcelStatus};

/// The fixed texts of the page.
pub(super) struct Words {
    pub(super) tracking: &'static str,
    pub(super) tracking_number: &'static str,
    pub(super) progress: &'static str,
    pub(super) stages: [&'static str; 4],
    pub(super) estimated_delivery: &'static str,
    pub(super) by_end_of_day: &'static str,
    pub(super) delivered_on: &'static str,
    pub(super) history: &'static str,
    pub(super) times: &'static str,
    pub(super) sandbox: &'static str,
    pub(super) privacy: &'static str,
    pub(super) language: &'static str,
    pub(super) not_found: &'static str,
    pub(super) unknown_number: &'static str,
    pub(super) no_number: &'static str,
    pub(super) advice: [&'static str; 3],
    pub(super) unavailable: &'static str,
    pub(super) try_again: &'static str,
}

static EN: Words = Words {
    tracking: "Parcel tracking",
    tracking_number: "Tracking number",
    progress: "Progress",
    stages: ["Prepared", "On its way", "Out for delivery", "Delivered"],
    estimated_delivery: "Estimated delivery",
    by_end_of_day: "By the end of the day",
    delivered_on: "Delivered on",
    history: "History",
    times: "Times at the destination",
    sandbox: "Test environment: nothing is shipped.",
    privacy: "Anyone with the tracking number can see this page, so it shows no names or addresses.",
    language: "Language",
    not_found: "We cannot find this parcel",
    unknown_number: "No parcel has the tracking number",
    no_number: "This link does not end in a tracking number.",
    advice: [
        "Compare the number with the one under the barcode of the label: it has 10 to 30 letters, digits and hyphens.",
        "Check that the link is complete.",
        "If the number is correct, ask the shop or the person who sent the parcel.",
    ],
    unavailable: "We cannot show the parcel right now",
    try_again: "This does not affect the parcel. Reload the page in a moment.",
};

static ES: Words = Words {
    tracking: "Rastreo de paquetes",
    tracking_number: "Número de rastreo",
    progress: "Avance",
    stages: ["Preparado", "En camino", "En reparto", "Entregado"],
    estimated_delivery: "Entrega estimada",
    by_end_of_day: "Antes de terminar el día",
    delivered_on: "Entregado el",
    history: "Historial",
    times: "Horas del destino",
    sandbox: "Entorno de pruebas: nada se envía.",
    privacy: "Cualquiera que tenga el número de rastreo puede ver esta página; por eso no muestra nombres ni direcciones.",
    language: "Idioma",
    not_found: "No encontramos este paquete",
    unknown_number: "Ningún paquete tiene el número de rastreo",
    no_number: "Este enlace no termina en un número de rastreo.",
    advice: [
        "Compare el número con el que está debajo del código de barras de la etiqueta: tiene de 10 a 30 letras, dígitos y guiones.",
        "Revise que el enlace esté completo.",
        "Si el número es correcto, pregunte a la tienda o a la persona que envió el paquete.",
    ],
    unavailable: "No podemos mostrar el paquete en este momento",
    try_again: "Esto no afecta al paquete. Vuelva a cargar la página en un momento.",
};

/// The texts in a language.
pub(super) const fn words(language: Language) -> &'static Words {
    match language {
        Language::En => &EN,
        Language::Es => &ES,
    }
}

/// What a status means to someone who waits for the parcel.
pub(super) fn meaning(status: &ParcelStatus, language: Language) -> &'static str {
    let (en, es) = match status {
        ParcelStatus::Ordered => {
            ("The shipper has announced the parcel.", "El remitente ha anunciado el paquete.")
        }
        ParcelStatus::LabelGenerated => (
            "The shipper is getting the parcel ready for the carrier.",
            "El remitente prepara el paquete para entregarlo al transportista.",
        ),
        ParcelStatus::ManifestSubmitted => (
            "The parcel is booked on its flight and is waiting for pickup.",
            "El paquete tiene vuelo asignado y espera su recolección.",
        ),
        ParcelStatus::PickedUp => {
            ("The carrier has the parcel.", "El transportista ya tiene el paquete.")
        }
        ParcelStatus::CustomsClearance => (
            "Customs is checking the parcel, as with every international shipment.",
            "La aduana está revisando el paquete, como en todo envío internacional.",
        ),
        ParcelStatus::CustomsHold => (
            "Customs has stopped the parcel for now. It moves on once it is released.",
            "La aduana ha detenido el paquete por ahora. Seguirá su camino cuando lo libere.",
        ),
        ParcelStatus::InTransit => (
            "The parcel is travelling towards its destination.",
            "El paquete viaja hacia su destino.",
        ),
        ParcelStatus::OutForDelivery => (
            "The parcel is with the driver and will arrive soon.",
            "El paquete va con el repartidor y llegará pronto.",
        ),
        ParcelStatus::DeliveryAttempted => (
            "The driver could not hand over the parcel. There will be another attempt.",
            "El repartidor no pudo entregar el paquete. Habrá otro intento.",
        ),
        ParcelStatus::Delivered => ("The parcel has arrived.", "El paquete ha llegado."),
        ParcelStatus::DeliveryFailed => (
            "The carrier could not deliver the parcel. Please contact the sender.",
            "El transportista no pudo entregar el paquete. Comuníquese con el remitente.",
        ),
        ParcelStatus::ReturnToSender => (
            "The parcel is on its way back to the sender.",
            "El paquete va de regreso al remitente.",
        ),
        ParcelStatus::Voided => (
            "The shipper has cancelled this shipment. There will be no delivery.",
            "El remitente ha cancelado este envío. No habrá entrega.",
        ),
        // One that is newer than this page.
        _ => ("", ""),
    };
    language.pick(en, es)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_means_something_in_both_languages() {
        for status in ParcelStatus::KNOWN {
            let (en, es) = (meaning(status, Language::En), meaning(status, Language::Es));
            assert!(en.ends_with('.') && es.ends_with('.') && en != es, "{status}");
        }
    }
}
