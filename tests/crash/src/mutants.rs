//! Deliberate defects, each of which must be found: they show that the checks would see a real one.
//!
//! The product is not changed for them. `synchronous = NORMAL` is forced on each of its connections, an early answer is
//! a mark before the writes, a sync that does nothing is missing from the log, and rows are changed while the service
//! is stopped.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    ptr,
};

use rusqlite::ffi;

use crate::{
    check::Guarantee,
    disk::{Event, FileId, Mark},
    recording::{RequestKind, Run, SentRequest},
};

/// Changes to a sound database, and the guarantee that each breaks.
pub const TAMPERINGS: [(&str, Guarantee); 6] = [
    ("DELETE FROM parcels WHERE id = 2; DELETE FROM idempotency WHERE id = 2", Guarantee::Lost),
    (
        "UPDATE idempotency SET body = \
         CAST(replace(CAST(body AS TEXT), 'LABEL_GENERATED', 'ORDERED') AS BLOB) WHERE id = 2",
        Guarantee::Lost,
    ),
    (
        // The index would refuse it.
        "DROP INDEX parcels_number; CREATE TEMP TABLE t AS SELECT * FROM parcels WHERE id = 2; \
         UPDATE t SET id = 77; INSERT INTO parcels SELECT * FROM t",
        Guarantee::Doubled,
    ),
    ("DELETE FROM idempotency WHERE id = 2", Guarantee::Half),
    ("DELETE FROM outbox WHERE parcel = 2", Guarantee::Half),
    ("DELETE FROM meta WHERE name = 'secret'", Guarantee::Unreadable),
];

/// The defects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// The answer is sent before the commit.
    AnswerFirst,
    /// Each connection has `synchronous = NORMAL`, although the store sets another value.
    Normal,
    /// A sync of the log does nothing.
    NoLogSync,
    /// A sync of the database file, or of its rollback journal, does nothing.
    NoFileSync,
    /// A sync of the folder does nothing.
    NoFolderSync,
}

impl Mutant {
    pub const ALL: [Self; 5] =
        [Self::AnswerFirst, Self::Normal, Self::NoLogSync, Self::NoFileSync, Self::NoFolderSync];

    pub const fn name(self) -> &'static str {
        match self {
            Self::AnswerFirst => "answer before the commit",
            Self::Normal => "synchronous=NORMAL",
            Self::NoLogSync => "syncs of the log do nothing",
            Self::NoFileSync => "syncs of the database file and its journal do nothing",
            Self::NoFolderSync => "syncs of the folder do nothing",
        }
    }

    /// Makes a recording that has the defect.
    pub fn record(self, record: impl FnOnce() -> Run) -> Run {
        if self == Self::Normal {
            set_normal(true);
        }
        let mut run = record();
        set_normal(false);
        self.rewrite(&mut run);
        run
    }

    /// Applies the mutants that are changes to the log.
    fn rewrite(self, run: &mut Run) {
        let events = std::mem::take(&mut run.events);
        let is_log = |file: FileId| {
            events.iter().any(|event| match event {
                Event::Create { name, file: made } => *made == file && name.ends_with("-wal"),
                _ => false,
            })
        };
        let stays = |event: &&Event| match event {
            Event::Sync { file } if is_log(*file) => self != Self::NoLogSync,
            Event::Sync { .. } => self != Self::NoFileSync,
            Event::SyncFolder => self != Self::NoFolderSync,
            _ => true,
        };
        let events: Vec<_> = events.iter().filter(stays).cloned().collect();
        run.events = match self {
            Self::AnswerFirst => answered_first(&events, &run.requests),
            _ => events,
        };
    }
}

/// Returns the same events, with the answer of each keyed request directly after the request.
fn answered_first(events: &[Event], requests: &[SentRequest]) -> Vec<Event> {
    let is_keyed = |at: usize| matches!(requests[at].what, RequestKind::Post(_));
    let answer_to = |request: usize| {
        events.iter().find(|event| match event {
            Event::Mark(Mark::Acknowledged(at)) => *at == request,
            _ => false,
        })
    };
    let early = events.iter().flat_map(|event| match event {
        Event::Mark(Mark::Acknowledged(at)) if is_keyed(*at) => [None, None],
        Event::Mark(Mark::Sent(at)) if is_keyed(*at) => [Some(event), answer_to(*at)],
        _ => [Some(event), None],
    });
    early.flatten().cloned().collect()
}

/// Turns on or off that connections are opened with `synchronous = NORMAL` and cannot change it.
fn set_normal(is_normal: bool) {
    // SAFETY: the function has the signature that SQLite calls it with.
    unsafe {
        if is_normal {
            ffi::sqlite3_auto_extension(Some(be_normal));
        } else {
            ffi::sqlite3_cancel_auto_extension(Some(be_normal));
        }
    }
}

unsafe extern "C" fn be_normal(
    db: *mut ffi::sqlite3,
    _error: *mut *mut c_char,
    _api: *const ffi::sqlite3_api_routines,
) -> c_int {
    // SAFETY: the connection is open, and the text ends with a zero.
    unsafe {
        let sql = c"PRAGMA synchronous = NORMAL".as_ptr();
        ffi::sqlite3_exec(db, sql, None, ptr::null_mut(), ptr::null_mut());
        ffi::sqlite3_set_authorizer(db, Some(ignore_synchronous), ptr::null_mut())
    }
}

/// Ignores the pragma: `SQLITE_IGNORE` skips it without an error.
unsafe extern "C" fn ignore_synchronous(
    _: *mut c_void,
    action: c_int,
    name: *const c_char,
    _value: *const c_char,
    _: *const c_char,
    _: *const c_char,
) -> c_int {
    if action != ffi::SQLITE_PRAGMA || name.is_null() {
        return ffi::SQLITE_OK;
    }
    // SAFETY: the text is SQLite's and ends with a zero.
    let is_it = unsafe { CStr::from_ptr(name) }.to_bytes().eq_ignore_ascii_case(b"synchronous");
    if is_it { ffi::SQLITE_IGNORE } else { ffi::SQLITE_OK }
}
