//! E-mails on the dashboard: the kinds that an account sends, and the e-mails of a parcel.

use axum::{extract::State, response::Response};
use parcelo::Language;

use super::{
    auth::{SignedIn, SubmittedForm},
    context::go_to,
    flash::Flash,
    frame::{Moment, Section},
};
use crate::{
    domain::{
        audit::Actor,
        mail::{Dropped, LoggedMail, MailKind, MailRecipient, MailStatus, MailsOff},
    },
    http::{Api, Refused},
};

/// A kind of e-mail that can be switched off and on.
pub(super) struct Choice {
    pub(super) code: &'static str,
    pub(super) name: &'static str,
    pub(super) is_on: bool,
}

/// One of a parcel's e-mails.
pub(super) struct MailLine {
    pub(super) what: &'static str,
    pub(super) to: &'static str,
    pub(super) became: &'static str,
    pub(super) is_fault: bool,
    pub(super) at: Moment,
}

/// Returns the account's choices, or `None` if the server sends no e-mails.
pub(super) async fn choices(api: &Api, member: &SignedIn) -> Result<Option<Vec<Choice>>, Refused> {
    if !api.service.sends_mails() {
        return Ok(None);
    }
    let off = api.service.store().mails_off(member.session.account).await?;
    let choice = |kind: MailKind| Choice {
        code: kind.code(),
        name: kind_name(kind, member.language()),
        is_on: !off.contains(kind),
    };
    Ok(Some(MailKind::ALL.into_iter().map(choice).collect()))
}

/// Switches off the kinds that are not ticked.
pub(super) async fn set(
    State(api): State<Api>,
    SubmittedForm { member, fields }: SubmittedForm,
) -> Result<Response, Refused> {
    let is_off = |kind: &MailKind| !fields.all("kind").any(|code| code == kind.code());
    let off = MailKind::ALL.into_iter().filter(is_off).fold(MailsOff::default(), MailsOff::with);
    let (store, account) = (api.service.store(), member.session.account);
    // A form that changes nothing is not recorded in the audit log.
    if store.mails_off(account).await? != off {
        store.set_mails_off(account, off, &Actor::Session.at(api.service.now())).await?;
    }
    Ok(go_to(Section::Settings.path(), Flash::ShopSet))
}

impl MailLine {
    pub(super) fn new(mail: &LoggedMail, language: Language) -> Self {
        Self {
            what: kind_name(mail.kind, language),
            to: match mail.recipient {
                MailRecipient::Receiver => language.pick("to the receiver", "al destinatario"),
                MailRecipient::Sender => language.pick("to the sender", "al remitente"),
            },
            became: became(mail.status, language),
            is_fault: matches!(mail.status, MailStatus::Bounced | MailStatus::GivenUp),
            at: Moment::from_millis(mail.at),
        }
    }
}

fn kind_name(kind: MailKind, language: Language) -> &'static str {
    match kind {
        MailKind::OnItsWay => language.pick("On its way", "En camino"),
        MailKind::Held => language.pick("Held at customs", "Retenido en la aduana"),
        MailKind::OutForDelivery => language.pick("Out for delivery", "En reparto"),
        MailKind::Delivered => language.pick("Delivered", "Entregado"),
        MailKind::Failed => language.pick("Not delivered", "No entregado"),
        MailKind::Returning => language.pick("Going back to the sender", "De regreso al remitente"),
    }
}

fn became(status: MailStatus, language: Language) -> &'static str {
    match status {
        MailStatus::Waiting => language.pick("not sent yet", "aún sin enviar"),
        MailStatus::Sent => language.pick("sent", "enviado"),
        MailStatus::Bounced => language
            .pick("refused: the address does not exist", "rechazado: la dirección no existe"),
        MailStatus::GivenUp => language.pick(
            "failed: the mail server did not take it",
            "falló: el servidor de correo no lo aceptó",
        ),
        MailStatus::Dropped(why) => match why {
            Dropped::Superseded => language.pick(
                "not sent: the parcel had moved on",
                "no se envió: el paquete ya había avanzado",
            ),
            Dropped::Older => language.pick(
                "not sent: the parcel is from before e-mails were switched on",
                "no se envió: el paquete es anterior a la activación de los correos",
            ),
            Dropped::NoAddress => language.pick(
                "not sent: the order has no address",
                "no se envió: el pedido no tiene dirección",
            ),
            Dropped::OptedOut => language.pick(
                "not sent: unsubscribed, or the address does not exist",
                "no se envió: la dirección se dio de baja o no existe",
            ),
            Dropped::SwitchedOff => language
                .pick("not sent: switched off in Settings", "no se envió: desactivado en Ajustes"),
            Dropped::NotAllowed => language.pick(
                "not sent: the sandbox may not write to this address",
                "no se envió: el entorno de pruebas no puede escribir a esta dirección",
            ),
            Dropped::TooMany => language.pick(
                "not sent: too many e-mails to the address, or of the account",
                "no se envió: demasiados correos a esa dirección o de esta cuenta",
            ),
        },
    }
}
