//! The sentences in both languages: the fixed texts of the page, and the meaning of each status.

use parcelo_types::{Language, ParcelStatus};

/// The fixed texts of the tracking page, some of which e-mails use too.
pub(crate) struct TrackingPageTexts {
    pub tracking: &'static str,
    pub tracking_number: &'static str,
    pub progress: &'static str,
    pub stages: [&'static str; 4],
    pub estimated_delivery: &'static str,
    pub today: &'static str,
    pub by_end_of_day: &'static str,
    pub delayed: &'static str,
    pub no_new_date: &'static str,
    pub delivered_on: &'static str,
    pub what_to_do: &'static str,
    pub sent_by: &'static str,
    pub questions: &'static str,
    pub history: &'static str,
    pub times: &'static str,
    pub times_in_utc: &'static str,
    pub updated: &'static str,
    pub updates_itself: &'static str,
    pub sandbox: &'static str,
    pub privacy: &'static str,
    pub language: &'static str,
    pub find: &'static str,
    pub find_hint: &'static str,
    pub find_button: &'static str,
    pub preview_title: &'static str,
    pub preview: &'static str,
    pub not_found: &'static str,
    pub unknown_number: &'static str,
    pub no_number: &'static str,
    pub advice: [&'static str; 3],
    pub unavailable: &'static str,
    pub try_again: &'static str,
}

static EN: TrackingPageTexts = TrackingPageTexts {
    tracking: "Parcel tracking",
    tracking_number: "Tracking number",
    progress: "Progress",
    stages: ["Prepared", "On its way", "Out for delivery", "Delivered"],
    estimated_delivery: "Estimated delivery",
    today: "Today",
    by_end_of_day: "By the end of the day",
    delayed: "Delayed: expected on",
    no_new_date: "The new date is not known yet.",
    delivered_on: "Delivered on",
    what_to_do: "What you can do",
    sent_by: "Sent by",
    questions: "Questions:",
    history: "History",
    times: "Times at the destination",
    times_in_utc: "Times in UTC",
    updated: "Last updated:",
    updates_itself: "This page updates itself every five minutes.",
    sandbox: "Test environment: nothing is shipped.",
    privacy: "Anyone with the tracking number can see this page, so it shows no names or addresses.",
    language: "Language",
    find: "Where is my parcel?",
    find_hint: "It is on the label, under the barcode, and in the shop's message. You can also paste the whole link.",
    find_button: "Track the parcel",
    preview_title: "Track parcel",
    preview: "See where the parcel is and when it arrives.",
    not_found: "We cannot find this parcel",
    unknown_number: "No parcel has the tracking number",
    no_number: "This is not a tracking number.",
    advice: [
        "Compare the number with the one under the barcode on the label: it has 10 to 30 letters, digits and hyphens.",
        "Check that the link is complete.",
        "If the number is correct, ask the shop or the person who sent the parcel.",
    ],
    unavailable: "We cannot show the parcel right now",
    try_again: "This does not affect the parcel. Reload the page in a moment.",
};

static ES: TrackingPageTexts = TrackingPageTexts {
    tracking: "Rastreo de paquetes",
    tracking_number: "Número de rastreo",
    progress: "Avance",
    stages: ["Preparado", "En camino", "En reparto", "Entregado"],
    estimated_delivery: "Entrega estimada",
    today: "Hoy",
    by_end_of_day: "Antes de que termine el día",
    delayed: "Con retraso: se esperaba el",
    no_new_date: "Todavía no se conoce la nueva fecha.",
    delivered_on: "Entregado el",
    what_to_do: "Qué puede hacer",
    sent_by: "Enviado por",
    questions: "Preguntas:",
    history: "Historial",
    times: "Hora del destino",
    times_in_utc: "Hora en UTC",
    updated: "Última actualización:",
    updates_itself: "Esta página se actualiza sola cada cinco minutos.",
    sandbox: "Entorno de pruebas: no se envía nada.",
    privacy: "Cualquiera que tenga el número de rastreo puede ver esta página; por eso no muestra nombres ni direcciones.",
    language: "Idioma",
    find: "¿Dónde está mi paquete?",
    find_hint: "Está en la etiqueta, debajo del código de barras, y en el mensaje de la tienda. También puede pegar el enlace completo.",
    find_button: "Rastrear el paquete",
    preview_title: "Rastree el paquete",
    preview: "Vea dónde está el paquete y cuándo llega.",
    not_found: "No encontramos este paquete",
    unknown_number: "Ningún paquete tiene el número de rastreo",
    no_number: "Esto no es un número de rastreo.",
    advice: [
        "Compare el número con el que está debajo del código de barras de la etiqueta: tiene de 10 a 30 letras, dígitos y guiones.",
        "Revise que el enlace esté completo.",
        "Si el número es correcto, pregunte a la tienda o a la persona que envió el paquete.",
    ],
    unavailable: "No podemos mostrar el paquete en este momento",
    try_again: "Esto no afecta al paquete. Vuelva a cargar la página en un momento.",
};

/// Returns the fixed texts of the tracking page in a language.
pub(crate) fn page_texts(language: Language) -> &'static TrackingPageTexts {
    language.pick(&EN, &ES)
}

/// Returns the explanation of a status for the receiver; empty for a status that this version does not know.
pub(crate) fn status_explanation(status: &ParcelStatus, language: Language) -> &'static str {
    let (en, es) = match status {
        ParcelStatus::Ordered => {
            ("The sender has registered the parcel.", "El remitente ya registró el paquete.")
        }
        ParcelStatus::LabelGenerated => (
            "The sender is getting the parcel ready for the carrier.",
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
            "Customs is holding the parcel for now. It will continue on its way once it is released.",
            "La aduana tiene retenido el paquete por ahora. Seguirá su camino cuando lo libere.",
        ),
        ParcelStatus::InTransit => (
            "The parcel is travelling towards its destination.",
            "El paquete viaja hacia su destino.",
        ),
        ParcelStatus::OutForDelivery => {
            ("The parcel is with the driver.", "El paquete va con el repartidor.")
        }
        ParcelStatus::DeliveryAttempted => (
            "The driver could not deliver the parcel. There will be another attempt.",
            "El repartidor no pudo entregar el paquete. Habrá otro intento.",
        ),
        ParcelStatus::Delivered => ("The parcel has arrived.", "El paquete ya llegó."),
        ParcelStatus::DeliveryFailed => (
            "The carrier could not deliver the parcel. Please contact the sender.",
            "El transportista no pudo entregar el paquete. Comuníquese con el remitente.",
        ),
        ParcelStatus::ReturnToSender => (
            "The parcel is on its way back to the sender.",
            "El paquete va de regreso al remitente.",
        ),
        ParcelStatus::Voided => (
            "The sender has cancelled this shipment. There will be no delivery.",
            "El remitente canceló este envío. No habrá entrega.",
        ),
        // A status that this version does not know.
        _ => ("", ""),
    };
    language.pick(en, es)
}

/// Returns the name of a status for receivers. For them, a voided order is a cancelled shipment.
pub(crate) fn status_name(status: &ParcelStatus, language: Language) -> &str {
    match status {
        ParcelStatus::Voided => language.pick("Cancelled", "Cancelado"),
        other => other.name(language),
    }
}

/// Returns advice for the receiver, for statuses in which there is something to do.
pub(crate) fn receiver_advice(
    status: &ParcelStatus,
    language: Language,
) -> &'static [&'static str] {
    let (en, es): (&[&str], &[&str]) = match status {
        ParcelStatus::CustomsHold => (
            &[
                "Customs may need an invoice, an identity document or the payment of duties. Reply promptly if customs, the carrier or the sender contacts you.",
                "Before you pay, check with the sender that the request is genuine: fraudsters also send messages about parcels.",
                "If you hear nothing for several days, ask the sender what is missing.",
            ],
            &[
                "La aduana puede necesitar una factura, un documento de identidad o el pago de impuestos. Responda pronto si la aduana, el transportista o el remitente se lo pide.",
                "Pague solo después de confirmar con el remitente quién lo pide: también los estafadores envían mensajes sobre paquetes.",
                "Si no tiene noticias en varios días, pregunte al remitente qué falta.",
            ],
        ),
        ParcelStatus::DeliveryAttempted => (
            &[
                "Make sure that someone can receive the parcel at the address, with an identity document at hand.",
                "If that is not possible, or if the address or telephone number is wrong, tell the sender now, before the next attempt.",
            ],
            &[
                "Asegúrese de que alguien pueda recibir el paquete en la dirección, con un documento de identidad a la mano.",
                "Si no es posible, o si la dirección o el teléfono están mal, avise ya al remitente, antes del próximo intento.",
            ],
        ),
        ParcelStatus::DeliveryFailed => (
            &[
                "Contact the sender soon: another delivery can still be arranged before the parcel goes back.",
                "Have your full address and a telephone number ready.",
            ],
            &[
                "Comuníquese pronto con el remitente: aún se puede acordar otra entrega antes de que el paquete regrese.",
                "Tenga a la mano su dirección completa y un número de teléfono.",
            ],
        ),
        ParcelStatus::ReturnToSender => (
            &["Ask the sender for a new shipment or a refund."],
            &["Pida al remitente un nuevo envío o un reembolso."],
        ),
        ParcelStatus::Voided => (
            &[
                "If you still expect a parcel, ask the sender whether it has another tracking number.",
            ],
            &[
                "Si todavía espera un paquete, pregunte al remitente si tiene otro número de rastreo.",
            ],
        ),
        _ => (&[], &[]),
    };
    language.pick(en, es)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_is_explained_in_both_languages() {
        for status in ParcelStatus::KNOWN {
            let (en, es) = (
                status_explanation(status, Language::En),
                status_explanation(status, Language::Es),
            );
            assert!(en.ends_with('.') && es.ends_with('.') && en != es, "{status}");
        }
    }

    #[test]
    fn there_is_advice_for_every_problem_in_both_languages() {
        for status in ParcelStatus::KNOWN {
            let (en, es) =
                (receiver_advice(status, Language::En), receiver_advice(status, Language::Es));
            let is_trouble = matches!(
                status,
                ParcelStatus::CustomsHold
                    | ParcelStatus::DeliveryAttempted
                    | ParcelStatus::DeliveryFailed
                    | ParcelStatus::ReturnToSender
                    | ParcelStatus::Voided
            );
            assert_eq!((en.is_empty(), es.is_empty()), (!is_trouble, !is_trouble), "{status}");
            assert!(en.len() == es.len() && en.iter().chain(es).all(|line| line.ends_with('.')));
        }
    }
}
