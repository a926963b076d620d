//! Flashes: what the next page says of what was just done, a sentence or a secret that is shown once. They wait in the
//! database, sealed, for one session and one page, and for a few minutes.

use parcelo::{Environment, Language};
use serde::{Deserialize, Serialize};

/// A page that flashes are made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlashPage {
    Keys,
    Webhook(Environment),
}

impl FlashPage {
    /// Its name in the database.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Keys => "keys",
            Self::Webhook(Environment::Production) => "webhook production",
            Self::Webhook(Environment::Sandbox) => "webhook sandbox",
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
}

impl FlashText {
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
                "El webhook está guardado y activado.",
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
                "El webhook está eliminado. Los eventos no entregados se guardan durante 30 días.",
            ),
            Self::IsOff => language.pick(
                "Nothing was sent: the webhook is turned off. Turn it on first.",
                "No se envió nada: el webhook está desactivado. Actívelo primero.",
            ),
            Self::IsGone => language.pick(
                "Nothing was changed: the webhook no longer exists. Set one up first.",
                "No se cambió nada: el webhook ya no existe. Configure uno primero.",
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
}

impl ShownFlashes {
    /// Reads what was kept as JSON; what another version of the server wrote and this one cannot read is left out.
    pub(super) fn read(kept: &[Vec<u8>]) -> Self {
        let mut shown = Self::default();
        for what in kept.iter().filter_map(|kept| serde_json::from_slice(kept).ok()) {
            match what {
                FlashContent::FlashText(text) => shown.text = Some(text),
                FlashContent::OneTimeSecret(one_time) => shown.secrets.push(one_time),
            }
        }
        shown
    }
}
