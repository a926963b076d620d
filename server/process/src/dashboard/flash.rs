//! Flash messages: the result of a form, shown once on the page to which the browser is redirected. The browser keeps
//! the message in a cookie, so that any server can show the page. Messages hold no secrets.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use parcelo_domain::to_body;
use parcelo_types::Language;
use serde::{Deserialize, Serialize};

/// A flash message: the result of a form, or the reason why it changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum FlashMessage {
    KeyRevoked,
    KeyRotated,
    /// The key is rotated, and its old secret no longer works.
    KeyRotatedAtOnce,
    /// Nothing was done, because the key is revoked.
    KeyAlreadyRevoked,
    /// Nothing was done, because the form was sent before.
    KeyAlreadyCreated,
    /// Nothing was done, because the key or webhook has another secret than when its form was shown.
    SecretAlreadyReplaced,
    WebhookSaved,
    TestEventSent,
    WebhookEnabled,
    WebhookDisabled,
    WebhookRemoved,
    EventsReplayed(usize),
    /// Nothing was done, because the webhook is off.
    NotSentWhileDisabled,
    /// Nothing was done, because there is no webhook.
    WebhookNotFound,
    SettingsSaved,
    ParcelVoided,
    LabelReprinted,
    PasswordChanged,
    /// Nothing was done, because the session had ended; the form is filled in again.
    FormRestored,
    /// Nothing was done, because the session had ended; a button has no fields.
    ActionNotPerformed,
}

impl FlashMessage {
    /// Writes the message for a page's path, in characters that are allowed in a cookie.
    pub(super) fn to_cookie(self, path: &str) -> String {
        URL_SAFE_NO_PAD.encode(to_body(&(path, self)))
    }

    /// Reads the message for a page. A message for another page, or from another version of the server, is ignored.
    pub(super) fn from_cookie(cookie: &str, path: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(cookie).ok()?;
        let (page, flash): (String, Self) = serde_json::from_slice(&bytes).ok()?;
        (page == path).then_some(flash)
    }

    #[expect(clippy::too_many_lines, reason = "one table of texts")]
    /// Returns the text in a language.
    pub(super) fn text(self, language: Language) -> String {
        let (en, es) = match self {
            Self::KeyRevoked => (
                "The key is revoked. Calls with it are refused from now on.",
                "La clave está revocada. Desde ahora se rechazan las llamadas con ella.",
            ),
            Self::KeyRotated => (
                "The key has a new secret. Put it into your shop before the old one expires.",
                "La clave tiene un secreto nuevo. Póngalo en su tienda antes de que venza el anterior.",
            ),
            Self::KeyRotatedAtOnce => (
                "The key has a new secret, and the old one no longer works. Put the new one into your shop now.",
                "La clave tiene un secreto nuevo y el anterior ya no sirve. Ponga el nuevo en su tienda ahora.",
            ),
            Self::KeyAlreadyRevoked => (
                "Nothing was changed: the key is revoked. Create a new one.",
                "No se cambió nada: la clave está revocada. Cree otra.",
            ),
            Self::KeyAlreadyCreated => (
                "Nothing was changed: this form has already created its key, whose secret was shown once. If you did not copy it, give the key a new secret.",
                "No se cambió nada: ese formulario ya creó su clave, cuyo secreto se mostró una sola vez. Si no lo copió, dé a la clave un secreto nuevo.",
            ),
            Self::SecretAlreadyReplaced => (
                "Nothing was changed: a new secret was already created after you opened that form, and it was shown once. If you did not copy it, create another one.",
                "No se cambió nada: ya se creó un secreto nuevo después de que abrió ese formulario, y se mostró una sola vez. Si no lo copió, cree otro.",
            ),
            Self::WebhookSaved => {
                ("The webhook is saved and turned on.", "El webhook se guardó y está activado.")
            }
            Self::TestEventSent => (
                "A test event is on its way. Reload the page to see the result.",
                "Un evento de prueba va en camino. Vuelva a cargar la página para ver el resultado.",
            ),
            Self::WebhookEnabled => ("The webhook is turned on.", "El webhook está activado."),
            Self::WebhookDisabled => (
                "The webhook is turned off. Its events are held for 30 days.",
                "El webhook está desactivado. Sus eventos se guardan durante 30 días.",
            ),
            Self::WebhookRemoved => (
                "The webhook is removed. Undelivered events are held for 30 days.",
                "El webhook se eliminó. Los eventos no entregados se guardan durante 30 días.",
            ),
            Self::NotSentWhileDisabled => (
                "Nothing was sent: the webhook is turned off. Turn it on first.",
                "No se envió nada: el webhook está desactivado. Actívelo primero.",
            ),
            Self::WebhookNotFound => (
                "Nothing was changed: the webhook no longer exists. Set one up first.",
                "No se cambió nada: el webhook ya no existe. Configure uno primero.",
            ),
            Self::SettingsSaved => ("Saved.", "Guardado."),
            Self::ParcelVoided => (
                "The order is voided, and its label can no longer be used.",
                "El pedido se anuló y su etiqueta ya no se puede usar.",
            ),
            Self::LabelReprinted => (
                "The label has a new version. Print it, and throw the old one away.",
                "La etiqueta tiene una versión nueva. Imprímala y deseche la anterior.",
            ),
            Self::PasswordChanged => (
                "The password is changed. All other sessions of this account have ended.",
                "La contraseña se cambió. Las demás sesiones de esta cuenta se cerraron.",
            ),
            Self::FormRestored => (
                "Your session had ended, so nothing was sent. The form is as you filled it in: check it and send it.",
                "Su sesión había terminado, así que no se envió nada. El formulario está como lo llenó: revíselo y envíelo.",
            ),
            Self::ActionNotPerformed => (
                "Your session had ended, so nothing was done. Press the button again.",
                "Su sesión había terminado, así que no se hizo nada. Presione el botón de nuevo.",
            ),
            Self::EventsReplayed(0) => {
                ("There was nothing to send again.", "No había nada que reenviar.")
            }
            Self::EventsReplayed(1) => ("One event is sent again.", "Se reenvía un evento."),
            Self::EventsReplayed(events) => {
                return language.pick(
                    format!("{events} events are sent again."),
                    format!("Se reenvían {events} eventos."),
                );
            }
        };
        language.pick(en, es).to_owned()
    }
}
