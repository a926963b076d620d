//! What a page says of what was just done: a sentence, and secrets that are shown once. They are kept
//! in memory only, for one session and for the page where it was done, and for a few minutes.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use parcelo::{Environment, Language};

use crate::clock::Millis;

/// How long a note waits for its page.
const NOTE_LIFETIME: i64 = 5 * Millis::MINUTE;
/// Notes kept before the oldest is thrown away.
const MAX_NOTES: usize = 1_000;

/// A page that notes are made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Keys,
    Webhook(Environment),
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
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

impl Said {
    pub(super) fn text(self, language: Language) -> String {
        let text = match self {
            Self::KeyRevoked => language.pick(
                "The key is revoked. Calls with it are refused from now on.",
                "La clave está revocada. Desde ahora se rechazan las llamadas con ella.",
            ),
            Self::KeyRotated => language.pick(
                "The key has a new secret. Put it into your shop before the old one ends.",
                "La clave tiene un secreto nuevo. Póngalo en su tienda antes de que termine el anterior.",
            ),
            Self::KeyRotatedAtOnce => language.pick(
                "The key has a new secret, and the old one no longer works. Put the new one into your shop now.",
                "La clave tiene un secreto nuevo y el anterior ya no sirve. Ponga el nuevo en su tienda ahora.",
            ),
            Self::KeyWasRevoked => language.pick(
                "Nothing was done: the key is revoked. Make a new one.",
                "No se hizo nada: la clave está revocada. Cree otra.",
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
            Self::IsOff => language.pick(
                "Nothing was sent: the webhook is turned off. Turn it on first.",
                "No se envió nada: el webhook está desactivado. Actívelo primero.",
            ),
            Self::IsGone => language.pick(
                "Nothing was done: there is no webhook any more. Set one up first.",
                "No se hizo nada: ya no hay un webhook. Configure uno primero.",
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
pub(super) struct Once {
    /// Whose it is: a key's name, or nothing.
    pub(super) of: String,
    pub(super) secret: String,
}

/// What a page is to say.
pub(super) enum What {
    Said(Said),
    Once(Once),
}

impl From<Said> for What {
    fn from(said: Said) -> Self {
        Self::Said(said)
    }
}

impl From<Once> for What {
    fn from(once: Once) -> Self {
        Self::Once(once)
    }
}

/// Something to say, and to whom, and where.
pub(super) struct Note {
    pub(super) session: String,
    pub(super) place: Place,
    pub(super) at: Millis,
    pub(super) what: What,
}

impl Note {
    fn is_stale(&self, now: Millis) -> bool {
        now.0 - self.at.0 >= NOTE_LIFETIME
    }
}

/// All that a page has to say: what was done last, and the secrets, the oldest first.
#[derive(Default)]
pub(super) struct Taken {
    pub(super) said: Option<Said>,
    pub(super) secrets: Vec<Once>,
}

impl Taken {
    fn add(&mut self, what: What) {
        match what {
            What::Said(said) => self.said = Some(said),
            What::Once(once) => self.secrets.push(once),
        }
    }
}

/// The notes of all sessions, the oldest first.
#[derive(Default)]
pub(in crate::http) struct Desk(Mutex<VecDeque<Note>>);

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Desk(***)")
    }
}

impl Desk {
    fn notes(&self) -> MutexGuard<'_, VecDeque<Note>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a note until its page is seen.
    pub(super) fn leave(&self, note: Note) {
        let mut notes = self.notes();
        notes.retain(|kept| !kept.is_stale(note.at));
        if notes.len() >= MAX_NOTES {
            notes.pop_front();
        }
        notes.push_back(note);
    }

    /// What the page at hand says; it is not said again.
    pub(super) fn take(&self, session: &str, place: Place, now: Millis) -> Taken {
        let mut taken = Taken::default();
        let mut notes = self.notes();
        for note in std::mem::take(&mut *notes) {
            if note.is_stale(now) {
                continue;
            }
            if note.session == session && note.place == place {
                taken.add(note.what);
            } else {
                notes.push_back(note);
            }
        }
        taken
    }

    /// Forgets a session's notes.
    pub(super) fn forget(&self, session: &str) {
        self.notes().retain(|note| note.session != session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SANDBOX: Place = Place::Webhook(Environment::Sandbox);

    fn leave(desk: &Desk, session: &str, place: Place, what: impl Into<What>) {
        let (session, at) = (session.to_owned(), Millis(0));
        desk.leave(Note { session, place, at, what: what.into() });
    }

    fn once(secret: &str) -> Once {
        Once { of: "Shop".to_owned(), secret: secret.to_owned() }
    }

    fn secrets(desk: &Desk, session: &str, place: Place, now: i64) -> Vec<String> {
        let taken = desk.take(session, place, Millis(now));
        taken.secrets.into_iter().map(|once| once.secret).collect()
    }

    #[test]
    fn notes_are_for_their_session_on_their_own_page_once() {
        let desk = Desk::default();
        for secret in ["one", "two"] {
            leave(&desk, "mine", Place::Keys, once(secret));
        }
        leave(&desk, "mine", Place::Keys, Said::KeyRevoked);
        assert_eq!(format!("{desk:?}"), "Desk(***)");
        let production = Place::Webhook(Environment::Production);
        for (session, place) in [("other", Place::Keys), ("mine", SANDBOX), ("mine", production)] {
            assert!(secrets(&desk, session, place, 0).is_empty(), "{session} {place:?}");
        }
        let taken = desk.take("mine", Place::Keys, Millis(NOTE_LIFETIME - 1));
        assert_eq!((taken.said, taken.secrets.len()), (Some(Said::KeyRevoked), 2));
        let taken = desk.take("mine", Place::Keys, Millis(NOTE_LIFETIME - 1));
        assert!(taken.said.is_none() && taken.secrets.is_empty());
    }

    #[test]
    fn a_note_that_waited_too_long_or_whose_session_is_over_is_forgotten() {
        let desk = Desk::default();
        leave(&desk, "mine", SANDBOX, once("late"));
        assert!(secrets(&desk, "mine", SANDBOX, NOTE_LIFETIME).is_empty());
        leave(&desk, "mine", SANDBOX, once("gone"));
        leave(&desk, "other", SANDBOX, once("kept"));
        desk.forget("mine");
        assert!(secrets(&desk, "mine", SANDBOX, 0).is_empty());
        assert_eq!(secrets(&desk, "other", SANDBOX, 0), ["kept"]);
    }

    #[test]
    fn of_too_many_notes_the_oldest_alone_is_lost() {
        let desk = Desk::default();
        for secret in 0..=MAX_NOTES {
            leave(&desk, "mine", Place::Keys, once(&secret.to_string()));
        }
        let kept = secrets(&desk, "mine", Place::Keys, 0);
        assert_eq!(kept, (1..=MAX_NOTES).map(|secret| secret.to_string()).collect::<Vec<_>>());
    }
}
