//! E-mails on the dashboard: the kinds that an account sends, and the e-mails of a parcel.

use axum::{extract::State, response::Response};
use parcelo_domain::{
    audit::Actor,
    mail::{DisabledMailKinds, DropReason, LoggedMail, MailKind, MailRecipient, MailStatus},
};
use parcelo_service::http::{Api, HttpRefusal};
use parcelo_types::Language;

use super::{
    auth::{SignedInUser, SubmittedForm},
    context::redirect_with_flash,
    flash::FlashMessage,
    frame::{DisplayTime, Section},
};

/// A kind of e-mail that can be switched off and on.
pub(super) struct MailKindChoice {
    pub(super) code: &'static str,
    pub(super) name: &'static str,
    pub(super) is_on: bool,
}

/// One of a parcel's e-mails.
pub(super) struct MailRow {
    pub(super) kind: &'static str,
    pub(super) recipient: &'static str,
    pub(super) outcome: &'static str,
    pub(super) is_fault: bool,
    pub(super) at: DisplayTime,
}

/// Returns the kinds of e-mails with the account's choices, or `None` if the server sends no e-mails.
pub(super) async fn mail_kind_choices(
    api: &Api,
    user: &SignedInUser,
) -> Result<Option<Vec<MailKindChoice>>, HttpRefusal> {
    if !api.service.is_mail_enabled() {
        return Ok(None);
    }
    let off = api.service.store().mails_off(user.session.account).await?;
    let choice = |kind: MailKind| MailKindChoice {
        code: kind.code(),
        name: kind_name(kind, user.language()),
        is_on: !off.contains(kind),
    };
    Ok(Some(MailKind::ALL.into_iter().map(choice).collect()))
}

/// Switches off the kinds that are not ticked.
pub(super) async fn set(
    State(api): State<Api>,
    SubmittedForm { user, fields }: SubmittedForm,
) -> Result<Response, HttpRefusal> {
    let is_off = |kind: &MailKind| !fields.all("kind").any(|code| code == kind.code());
    let off = MailKind::ALL
        .into_iter()
        .filter(is_off)
        .fold(DisabledMailKinds::default(), DisabledMailKinds::with);
    let (store, account) = (api.service.store(), user.session.account);
    // A form that changes nothing is not recorded in the audit log.
    if store.mails_off(account).await? != off {
        store.set_mails_off(account, off, &Actor::Session.at(api.service.now())).await?;
    }
    Ok(redirect_with_flash(Section::Settings.path(), FlashMessage::SettingsSaved))
}

impl MailRow {
    pub(super) fn new(mail: &LoggedMail, language: Language) -> Self {
        Self {
            kind: kind_name(mail.kind, language),
            recipient: match mail.recipient {
                MailRecipient::Receiver => language.pick("to the receiver", "al destinatario"),
                MailRecipient::Sender => language.pick("to the sender", "al remitente"),
            },
            outcome: outcome_text(mail.status, language),
            is_fault: matches!(mail.status, MailStatus::Bounced | MailStatus::GivenUp),
            at: DisplayTime::from_millis(mail.at),
        }
    }
}

/// Returns the name of a kind of e-mail.
fn kind_name(kind: MailKind, language: Language) -> &'static str {
    let (en, es) = match kind {
        MailKind::OnItsWay => ("On its way", "En camino"),
        MailKind::Held => ("Held at customs", "Retenido en la aduana"),
        MailKind::OutForDelivery => ("Out for delivery", "En reparto"),
        MailKind::Delivered => ("Delivered", "Entregado"),
        MailKind::Failed => ("Not delivered", "No entregado"),
        MailKind::Returning => ("Going back to the sender", "De regreso al remitente"),
    };
    language.pick(en, es)
}

/// Returns the text for the outcome of an e-mail.
fn outcome_text(status: MailStatus, language: Language) -> &'static str {
    let (en, es) = match status {
        MailStatus::Waiting => ("not sent yet", "aún sin enviar"),
        MailStatus::Sent => ("sent", "enviado"),
        MailStatus::Bounced => {
            ("refused: the address does not exist", "rechazado: la dirección no existe")
        }
        MailStatus::GivenUp => {
            ("failed: the mail server did not take it", "falló: el servidor de correo no lo aceptó")
        }
        MailStatus::Dropped(reason) => match reason {
            DropReason::Superseded => {
                ("not sent: the parcel had moved on", "no se envió: el paquete ya había avanzado")
            }
            DropReason::Older => (
                "not sent: the parcel is from before e-mails were switched on",
                "no se envió: el paquete es anterior a la activación de los correos",
            ),
            DropReason::NoAddress => {
                ("not sent: the order has no address", "no se envió: el pedido no tiene dirección")
            }
            DropReason::OptedOut => (
                "not sent: unsubscribed, or the address does not exist",
                "no se envió: la dirección se dio de baja o no existe",
            ),
            DropReason::SwitchedOff => {
                ("not sent: switched off in Settings", "no se envió: desactivado en Ajustes")
            }
            DropReason::NotAllowed => (
                "not sent: the sandbox may not write to this address",
                "no se envió: el entorno de pruebas no puede escribir a esta dirección",
            ),
            DropReason::TooMany => (
                "not sent: too many e-mails to the address, or of the account",
                "no se envió: demasiados correos a esa dirección o de esta cuenta",
            ),
        },
    };
    language.pick(en, es)
}
