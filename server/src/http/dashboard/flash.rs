//! Flashes: what the next page says of what was just done, a sentence or a secret that is shown once. They wait in the
//! database, sealed, for one session and one page, and for a few minutes.

use parcelo::{Environment, Language};
use serde::{Deserialize, Serialize};

use super::fields::Fields;

/// A page that flashes are made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlashPage {
    Keys,
    Webhook(Environment),
    Settings,
    NewKey,
    Parcels,
    /// Any parcel's.
    Parcel,
}

impl FlashPage {
    /// Those with a form that a session's end may interrupt.
    pub(super) const WITH_FORM: [Self; 5] = [
        Self::Webhook(Environment::Production),
        Self::Webhook(Environment::Sandbox),
        Self::Settings,
        Self::NewKey,
        Self::Parcels,
    ];

    /// Its name in the database.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Keys => "keys",
            Self::Webhook(Environment::Production) => "webhook production",
            Self::Webhook(Environment::Sandbox) => "webhook sandbox",
            Self::Settings => "settings",
            Self::NewKey => "new key",
            Self::Parcels => "parcels",
            Self::Parcel => "parcel",
        }
    }

    /// Where it is.
    pub(super) const fn path(self) -> &'static str {
        match self {
            Self::Keys => "/dashboard/keys",
            Self::Webhook(Environment::Production) => "/dashboard/webhooks/production",
            Self::Webhook(Environment::Sandbox) => "/dashboard/webhooks/sandbox",
            Self::Settings => "/dashboard/settings",
            Self::NewKey => "/dashboard/keys/new",
            Self::Parcels | Self::Parcel => "/dashboard/parcels",
        }
    }
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum FlashText {
    KeyRevoked,
    KeyRotated,
    /// The same, and the old secret works no longer.
    KeyRotatedAtOnce,
    /// Nothing, since the key is revoked.
    KeyWasRevoked,
    WebhookSet,
    TestSent,
    Enabled,
    Disabled,
    Removed,
    Replayed(usize),
    /// Nothing, since the webhook is off.
    IsOff,
    /// Nothing, since there is no webhook.
    IsGone,
    ShopSet,
    ParcelVoided,
    LabelReprinted,
    PasswordChanged,
    /// Nothing was done: the session had ended.
    FormRestored,
    /// The same, of a button.
    NothingDone,
}

impl FlashText {
    #[expect(clippy::too_many_lines, reason = "one table of texts")]
    pub(super) fn text(self, language: Language) -> String {
        let text = match self {
            Self::KeyRevoked => language.pick(
                "The key is revoked. Calls with it are refused from now on.",
                "La clave está revocada. Desde ahora se rechazan las llamadas con ella.",
            ),
            Self::KeyRotated => language.pick(
                "The key has a new secret. Put it into your shop before the old one expires.",
                "La clave tiene un secreto nuevo. Póngalo en su tienda antes de que venza el anterior.",
            ),
            Self::KeyRotatedAtOnce => language.pick(
                "The key has a new secret, and the old one no longer works. Put the new one into your shop now.",
                "La clave tiene un secreto nuevo y el anterior ya no sirve. Ponga el nuevo en su tienda ahora.",
            ),
            Self::KeyWasRevoked => language.pick(
                "Nothing was changed: the key is revoked. Create a new one.",
                "No se cambió nada: la clave está revocada. Cree otra.",
            ),
            Self::WebhookSet => language.pick(
                "The webhook is saved and turned on.",
                "El webhook se guardó y está activado.",
            ),
            Self::TestSent => language.pick(
                "A test event is on its way. Reload the page to see the result.",
                "Un evento de prueba va en camino. Vuelva a cargar la página para ver el resultado.",
            ),
            Self::Enabled => {
                language.pick("The webhook is turned on.", "El webhook está activado.")
            }
            Self::Disabled => language.pick(
                "The webhook is turned off. Its events are held for 30 days.",
                "El webhook está desactivado. Sus eventos se guardan durante 30 días.",
            ),
            Self::Removed => language.pick(
                "The webhook is removed. Undelivered events are held for 30 days.",
                "El webhook se eliminó. Los eventos no entregados se guardan durante 30 días.",
            ),
            Self::IsOff => language.pick(
                "Nothing was sent: the webhook is turned off. Turn it on first.",
                "No se envió nada: el webhook está desactivado. Actívelo primero.",
            ),
            Self::IsGone => language.pick(
                "Nothing was changed: the webhook no longer exists. Set one up first.",
                "No se cambió nada: el webhook ya no existe. Configure uno primero.",
            ),
            Self::ShopSet => language.pick("Saved.", "Guardado."),
            Self::ParcelVoided => language.pick(
                "The order is voided, and its label can no longer be used.",
                "El pedido se anuló y su etiqueta ya no se puede usar.",
            ),
            Self::LabelReprinted => language.pick(
                "The label has a new version. Print it, and throw the old one away.",
                "La etiqueta tiene una versión nueva. Imprímala y deseche la anterior.",
            ),
            Self::PasswordChanged => language.pick(
                "The password is changed. All other sessions of this account have ended.",
                "La contraseña se cambió. Las demás sesiones de esta cuenta se cerraron.",
            ),
            Self::FormRestored => language.pick(
                "Your session had ended, so nothing was sent. The form is as you filled it in: check it and send it.",
                "Su sesión había terminado, así que no se envió nada. El formulario está como lo llenó: revíselo y envíelo.",
            ),
            Self::NothingDone => language.pick(
                "Your session had ended, so nothing was done. Press the button again.",
                "Su sesión había terminado, así que no se hizo nada. Presione el botón de nuevo.",
            ),
            Self::Replayed(0) => {
                language.pick("There was nothing to send again.", "No había nada que reenviar.")
            }
            Self::Replayed(1) => {
                language.pick("One event is sent again.", "Se reenvía un evento.")
            }
            Self::Replayed(events) => {
                return match language {
                    Language::En => format!("{events} events are sent again."),
                    Language::Es => format!("Se reenvían {events} eventos."),
                };
            }
        };
        text.to_owned()
    }
}

/// A secret that is shown once.
#[derive(Serialize, Deserialize)]
pub(super) struct OneTimeSecret {
    /// Whose it is: a key's name, or nothing.
    pub(super) name: String,
    pub(super) secret: String,
}

/// What a flash says.
#[derive(Serialize, Deserialize)]
pub(super) enum FlashContent {
    FlashText(FlashText),
    OneTimeSecret(OneTimeSecret),
    /// A form that the end of a session interrupted, as a browser encodes it.
    FilledForm(String),
}

impl From<FlashText> for FlashContent {
    fn from(text: FlashText) -> Self {
        Self::FlashText(text)
    }
}

impl From<OneTimeSecret> for FlashContent {
    fn from(one_time: OneTimeSecret) -> Self {
        Self::OneTimeSecret(one_time)
    }
}

/// All that a page shows: what was done last, and the secrets, oldest first.
#[derive(Default)]
pub(super) struct ShownFlashes {
    pub(super) text: Option<FlashText>,
    pub(super) secrets: Vec<OneTimeSecret>,
    /// What the page's form is filled with.
    pub(super) form: Option<Fields>,
}

impl ShownFlashes {
    /// Reads what was kept as JSON; what another version of the server wrote and this one cannot read is left out.
    pub(super) fn read(kept: &[Vec<u8>]) -> Self {
        let mut shown = Self::default();
        for what in kept.iter().filter_map(|kept| serde_json::from_slice(kept).ok()) {
            match what {
                FlashContent::FlashText(text) => shown.text = Some(text),
                FlashContent::OneTimeSecret(one_time) => shown.secrets.push(one_time),
                FlashContent::FilledForm(filled) => {
                    shown.text = Some(FlashText::FormRestored);
                    shown.form = Some(Fields::parse(filled.as_bytes()));
                }
            }
        }
        shown
    }
}
