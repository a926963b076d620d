//! The texts that only e-mails need, in addition to [`crate::wording`]: subjects, greetings, and advice for senders.
//! They contain nothing that a user wrote; a subject also has the tracking number.

use parcelo_domain::{
    State,
    mail::{MailKind, MailRecipient},
};
use parcelo_types::Language;

/// The fixed texts of every e-mail.
pub(super) struct MailTexts {
    pub(super) hello: &'static str,
    pub(super) parcel_for: &'static str,
    pub(super) order: &'static str,
    pub(super) track: &'static str,
    pub(super) receiver_reason: &'static str,
    pub(super) sender_reason: &'static str,
    pub(super) unsubscribe: &'static str,
    pub(super) no_replies: &'static str,
}

static EN: MailTexts = MailTexts {
    hello: "Hello",
    parcel_for: "Receiver",
    order: "Order",
    track: "Track the parcel",
    receiver_reason: "You are receiving this e-mail because the sender of the parcel gave this address as yours.",
    sender_reason: "You are receiving this e-mail because the parcel's order has this address for its sender.",
    unsubscribe: "Stop e-mails about parcels from this sender",
    no_replies: "This e-mail was sent automatically. Replies to it are not read.",
};

static ES: MailTexts = MailTexts {
    hello: "Hola",
    parcel_for: "Destinatario",
    order: "Pedido",
    track: "Rastrear el paquete",
    receiver_reason: "Recibe este correo porque el remitente del paquete indicó esta dirección como la de usted.",
    sender_reason: "Recibe este correo porque esta dirección es la del remitente en el pedido del paquete.",
    unsubscribe: "No recibir más correos sobre paquetes de este remitente",
    no_replies: "Este correo se envió automáticamente. Las respuestas no se leen.",
};

pub(super) fn mail_texts(language: Language) -> &'static MailTexts {
    language.pick(&EN, &ES)
}

/// Returns the news as one line, for the subject and the heading.
pub(super) fn headline(
    kind: MailKind,
    state: State,
    recipient: MailRecipient,
    language: Language,
) -> &'static str {
    let is_receiver = matches!(recipient, MailRecipient::Receiver);
    let (en, es) = match (kind, is_receiver) {
        (MailKind::OnItsWay, true) => ("Your parcel is on its way", "Su paquete está en camino"),
        (MailKind::OnItsWay, false) => ("The parcel is on its way", "El paquete está en camino"),
        (MailKind::Held, true) => {
            ("Your parcel is held at customs", "Su paquete está retenido en la aduana")
        }
        (MailKind::Held, false) => {
            ("A parcel is held at customs", "Un paquete está retenido en la aduana")
        }
        (MailKind::OutForDelivery, true) => {
            ("Your parcel is out for delivery", "Su paquete está en reparto")
        }
        (MailKind::OutForDelivery, false) => {
            ("The parcel is out for delivery", "El paquete está en reparto")
        }
        (MailKind::Delivered, true) => ("Your parcel was delivered", "Su paquete fue entregado"),
        (MailKind::Delivered, false) => ("The parcel was delivered", "El paquete fue entregado"),
        (MailKind::Failed, is_receiver) => failure_headline(state, is_receiver),
        (MailKind::Returning, true) => {
            ("Your parcel is going back to the sender", "Su paquete regresa al remitente")
        }
        (MailKind::Returning, false) => {
            ("A parcel is coming back to you", "Un paquete regresa a usted")
        }
    };
    language.pick(en, es)
}

/// Returns the headline of a failed delivery. A single failed attempt is worded as temporary, because another one
/// follows.
const fn failure_headline(state: State, is_receiver: bool) -> (&'static str, &'static str) {
    match (state, is_receiver) {
        (State::DeliveryAttempted, true) => (
            "Your parcel could not be delivered yet",
            "El repartidor no pudo entregarle su paquete",
        ),
        (State::DeliveryAttempted, false) => {
            ("A parcel could not be delivered yet", "El repartidor no pudo entregar un paquete")
        }
        (_, true) => ("Your parcel could not be delivered", "Su paquete no se pudo entregar"),
        (_, false) => ("A parcel could not be delivered", "Un paquete no se pudo entregar"),
    }
}

/// Returns the explanation of a state for the sender; `None` if the text of the tracking page, which receivers get,
/// suits the sender too.
pub(super) fn sender_explanation(state: State, language: Language) -> Option<&'static str> {
    let (en, es) = match state {
        State::DeliveryFailed => (
            "The carrier has stopped trying to deliver the parcel.",
            "El transportista ya no intentará entregar el paquete.",
        ),
        State::ReturnToSender => (
            "The parcel could not be delivered and is on its way back to you.",
            "El paquete no se pudo entregar y va de regreso a usted.",
        ),
        _ => return None,
    };
    Some(language.pick(en, es))
}

/// Returns advice for the sender, for states in which there is something to do.
pub(super) fn sender_advice(state: State, language: Language) -> &'static [&'static str] {
    let (en, es): (&[&str], &[&str]) = match state {
        State::CustomsHold => (
            &[
                "Have the commercial invoice ready, and reply promptly if customs or the carrier contacts you.",
                "Let the receiver know that customs may ask for an identity document or the payment of duties.",
            ],
            &[
                "Tenga lista la factura comercial y responda pronto si la aduana o el transportista se la pide.",
                "Avise al destinatario: la aduana puede pedirle un documento de identidad o el pago de impuestos.",
            ],
        ),
        State::DeliveryAttempted => (
            &[
                "Confirm the address and the telephone number with the receiver, and tell the carrier about any mistake before the next attempt.",
            ],
            &[
                "Confirme la dirección y el teléfono con el destinatario y avise al transportista de cualquier error antes del próximo intento.",
            ],
        ),
        State::DeliveryFailed => (
            &[
                "Agree with the receiver on another delivery and arrange it with the carrier soon. Otherwise, the parcel will be returned to you.",
            ],
            &[
                "Acuerde otra entrega con el destinatario y solicítela pronto al transportista: de lo contrario el paquete regresa.",
            ],
        ),
        State::ReturnToSender => (
            &["Agree with the receiver on a new shipment or a refund."],
            &["Acuerde con el destinatario un nuevo envío o un reembolso."],
        ),
        _ => (&[], &[]),
    };
    language.pick(en, es)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The states that senders get news of.
    const EXCEPTIONS: [State; 4] = [
        State::CustomsHold,
        State::DeliveryAttempted,
        State::DeliveryFailed,
        State::ReturnToSender,
    ];

    #[test]
    fn senders_get_news_and_advice_in_both_languages() {
        for state in EXCEPTIONS {
            let [en, es] =
                [Language::En, Language::Es].map(|language| sender_explanation(state, language));
            assert!(en.is_none_or(|en| en.ends_with('.')) && es.is_none_or(|es| es.ends_with('.')));
            assert!(en.is_none() || en != es, "{state:?}");
            let [en, es] =
                [Language::En, Language::Es].map(|language| sender_advice(state, language));
            assert!(!en.is_empty() && en.len() == es.len(), "{state:?}");
            assert!(en.iter().chain(es).all(|line| line.ends_with('.')), "{state:?}");
        }
        assert!(sender_advice(State::Delivered, Language::En).is_empty());
    }
}
