//! What the next page says of what was just done: a sentence, and secrets that are shown once. They
//! are kept in memory only, for one session, and for a few minutes.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use parcelo::Language;

use super::frame::Section;
use crate::clock::Millis;

/// How long a secret waits for the page that shows it.
const WAITS: i64 = 5 * Millis::MINUTE;
/// Notes kept before old ones are thrown away.
const MOST: usize = 1_000;

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    KeyRevoked,
    WebhookSet,
    TestSent,
    Enabled,
    Disabled,
    Removed,
    Replayed(usize),
}

impl Said {
    pub(super) fn text(self, language: Language) -> String {
        let text = match self {
            Self::KeyRevoked => language.pick(
                "The key is revoked. Calls with it are refused from now on.",
                "La clave está revocada. Desde ahora se rechazan las llamadas con ella.",
            ),
            Self::WebhookSet => language.pick(
                "The webhook is saved and turned on.",
                "El webhook está guardado y activado.",
            ),
            Self::TestSent => language.pick(
                "A test event is on its way. Load the page again to see what came of it.",
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
                "The webhook is removed. What had not arrived is held for 30 days.",
                "El webhook está eliminado. Lo que no había llegado se guarda durante 30 días.",
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

/// A secret that is shown once, on a page of its section.
#[derive(Clone)]
pub(super) struct Once {
    pub(super) section: Section,
    /// Whose it is: a key's name, or nothing.
    pub(super) of: String,
    pub(super) secret: String,
    pub(super) at: Millis,
}

#[derive(Default)]
struct Note {
    said: Option<Said>,
    once: Option<Once>,
}

/// The notes of all sessions.
#[derive(Default)]
pub(in crate::http) struct Desk(Mutex<HashMap<String, Note>>);

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Desk(***)")
    }
}

impl Desk {
    fn notes(&self) -> MutexGuard<'_, HashMap<String, Note>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, session: &str, write: impl FnOnce(&mut Note)) {
        let mut notes = self.notes();
        if notes.len() >= MOST {
            notes.clear();
        }
        write(notes.entry(session.to_owned()).or_default());
    }

    /// The next page says this.
    pub(super) fn say(&self, session: &str, said: Said) {
        self.note(session, |note| note.said = Some(said));
    }

    /// The next page of its section shows this.
    pub(super) fn show(&self, session: &str, once: Once) {
        self.note(session, |note| note.once = Some(once));
    }

    /// What the page at hand says; it is not said again.
    pub(super) fn said(&self, session: &str) -> Option<Said> {
        self.notes().get_mut(session).and_then(|note| note.said.take())
    }

    /// The secret that the page at hand shows; it is not shown again.
    pub(super) fn once(&self, session: &str, section: Section, now: Millis) -> Option<Once> {
        let mut notes = self.notes();
        let note = notes.get_mut(session)?;
        let once = note.once.take_if(|once| once.section == section)?;
        (now.0 - once.at.0 < WAITS).then_some(once)
    }

    /// Forgets a session's notes.
    pub(super) fn forget(&self, session: &str) {
        self.notes().remove(session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_shown_once_to_its_session_on_its_own_page() {
        let desk = Desk::default();
        let (at, soon) = (Millis(0), Millis(1_000));
        let once = Once { section: Section::Keys, of: "Shop".into(), secret: "pk".into(), at };
        desk.show("mine", once.clone());
        desk.say("mine", Said::KeyRevoked);
        assert!(desk.once("other", Section::Keys, soon).is_none());
        assert!(desk.once("mine", Section::Webhooks, soon).is_none());
        assert_eq!(desk.once("mine", Section::Keys, soon).unwrap().secret, "pk");
        assert!(desk.once("mine", Section::Keys, soon).is_none());
        assert_eq!(desk.said("mine"), Some(Said::KeyRevoked));
        assert_eq!(desk.said("mine"), None);
        desk.show("mine", once.clone());
        assert!(
            desk.once("mine", Section::Keys, Millis(WAITS)).is_none(),
            "it has waited too long"
        );
        desk.show("mine", once);
        desk.forget("mine");
        assert!(desk.once("mine", Section::Keys, soon).is_none());
        assert_eq!(format!("{desk:?}"), "Desk(***)");
    }
}
