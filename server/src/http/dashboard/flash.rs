//! Flashes: what the next page says of what was just done, a sentence or a secret that is shown once. They are
//! kept in memory only, for one session and one page, and for a few minutes.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use parcelo::{Environment, Language};

use crate::clock::Millis;

/// How long a flash waits until its page is loaded.
const FLASH_LIFETIME: i64 = 5 * Millis::MINUTE;
/// Flashes kept in all; the oldest makes room for the next.
const MAX_FLASHES: usize = 1_000;

/// A page that flashes are made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlashPage {
    Keys,
    Webhook(Environment),
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
pub(super) struct OneTimeSecret {
    /// Whose it is: a key's name, or nothing.
    pub(super) name: String,
    pub(super) secret: String,
}

/// What a flash says.
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

/// A message for one session and one page.
pub(super) struct Flash {
    pub(super) session: String,
    pub(super) page: FlashPage,
    pub(super) at: Millis,
    pub(super) what: FlashContent,
}

impl Flash {
    fn is_stale(&self, now: Millis) -> bool {
        now.0 - self.at.0 >= FLASH_LIFETIME
    }
}

/// All that a page shows: what was done last, and the secrets, oldest first.
#[derive(Default)]
pub(super) struct ShownFlashes {
    pub(super) text: Option<FlashText>,
    pub(super) secrets: Vec<OneTimeSecret>,
}

impl ShownFlashes {
    fn add(&mut self, what: FlashContent) {
        match what {
            FlashContent::FlashText(text) => self.text = Some(text),
            FlashContent::OneTimeSecret(one_time) => self.secrets.push(one_time),
        }
    }
}

/// The flashes of all sessions, the oldest first.
#[derive(Default)]
pub(in crate::http) struct FlashStore(Mutex<VecDeque<Flash>>);

impl std::fmt::Debug for FlashStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FlashStore(***)")
    }
}

impl FlashStore {
    fn flashes(&self) -> MutexGuard<'_, VecDeque<Flash>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a flash until its page is seen.
    pub(super) fn leave(&self, flash: Flash) {
        let mut flashes = self.flashes();
        flashes.retain(|kept| !kept.is_stale(flash.at));
        if flashes.len() >= MAX_FLASHES {
            flashes.pop_front();
        }
        flashes.push_back(flash);
    }

    /// Takes the messages of a page; each is shown once.
    pub(super) fn take(&self, session: &str, page: FlashPage, now: Millis) -> ShownFlashes {
        let mut shown = ShownFlashes::default();
        let mut flashes = self.flashes();
        for flash in std::mem::take(&mut *flashes) {
            if flash.is_stale(now) {
                continue;
            }
            if flash.session == session && flash.page == page {
                shown.add(flash.what);
            } else {
                flashes.push_back(flash);
            }
        }
        shown
    }

    /// Forgets a session's flashes.
    pub(super) fn forget(&self, session: &str) {
        self.flashes().retain(|flash| flash.session != session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SANDBOX: FlashPage = FlashPage::Webhook(Environment::Sandbox);

    fn leave(flashes: &FlashStore, session: &str, page: FlashPage, what: impl Into<FlashContent>) {
        let (session, at) = (session.to_owned(), Millis(0));
        flashes.leave(Flash { session, page, at, what: what.into() });
    }

    fn one_time(secret: &str) -> OneTimeSecret {
        OneTimeSecret { name: "Shop".to_owned(), secret: secret.to_owned() }
    }

    fn secrets(flashes: &FlashStore, session: &str, page: FlashPage, now: i64) -> Vec<String> {
        let shown = flashes.take(session, page, Millis(now));
        shown.secrets.into_iter().map(|one_time| one_time.secret).collect()
    }

    #[test]
    fn notes_are_for_their_session_on_their_own_page_once() {
        let flashes = FlashStore::default();
        for secret in ["one", "two"] {
            leave(&flashes, "mine", FlashPage::Keys, one_time(secret));
        }
        leave(&flashes, "mine", FlashPage::Keys, FlashText::KeyRevoked);
        assert_eq!(format!("{flashes:?}"), "FlashStore(***)");
        let production = FlashPage::Webhook(Environment::Production);
        for (session, page) in [("other", FlashPage::Keys), ("mine", SANDBOX), ("mine", production)]
        {
            assert!(secrets(&flashes, session, page, 0).is_empty(), "{session} {page:?}");
        }
        let shown = flashes.take("mine", FlashPage::Keys, Millis(FLASH_LIFETIME - 1));
        assert_eq!((shown.text, shown.secrets.len()), (Some(FlashText::KeyRevoked), 2));
        let shown = flashes.take("mine", FlashPage::Keys, Millis(FLASH_LIFETIME - 1));
        assert!(shown.text.is_none() && shown.secrets.is_empty());
    }

    #[test]
    fn a_note_that_waited_too_long_or_whose_session_is_over_is_forgotten() {
        let flashes = FlashStore::default();
        leave(&flashes, "mine", SANDBOX, one_time("late"));
        assert!(secrets(&flashes, "mine", SANDBOX, FLASH_LIFETIME).is_empty());
        leave(&flashes, "mine", SANDBOX, one_time("gone"));
        leave(&flashes, "other", SANDBOX, one_time("kept"));
        flashes.forget("mine");
        assert!(secrets(&flashes, "mine", SANDBOX, 0).is_empty());
        assert_eq!(secrets(&flashes, "other", SANDBOX, 0), ["kept"]);
    }

    #[test]
    fn of_too_many_notes_the_oldest_alone_is_lost() {
        let flashes = FlashStore::default();
        for secret in 0..=MAX_FLASHES {
            leave(&flashes, "mine", FlashPage::Keys, one_time(&secret.to_string()));
        }
        let kept = secrets(&flashes, "mine", FlashPage::Keys, 0);
        assert_eq!(kept, (1..=MAX_FLASHES).map(|secret| secret.to_string()).collect::<Vec<_>>());
    }
}
