//! Deliberate defects, each of which must be detected. They show that the checks would detect a real defect.
//!
//! They do not change the server's code. A response before the commit is an earlier mark in the log, a sync without
//! effect is removed from the log, and rows are corrupted while the service is stopped.

use std::{collections::BTreeMap, path::Path};

use rusqlite::Connection;

use crate::{
    check::check,
    disk::{Disk, Event, FOLDER, FileId, RecordedRun},
    facts::{
        Violation,
        ViolationKind::{self, Duplicated, Lost, Partial, Unreadable},
    },
    recording::{DATABASE, write_image},
};

/// A change to the log that simulates a defect.
type Defect = fn(&mut RecordedRun);

/// The defects with their names.
pub const MUTANTS: [(&str, Defect); 4] = [
    ("answers before the commit", answer_early),
    ("syncs of the log do nothing", |run| drop_syncs(run, |name| name.ends_with("-wal"))),
    ("syncs of the database file and its journal do nothing", |run| {
        drop_syncs(run, |name| name.starts_with(DATABASE) && !name.ends_with("-wal"));
    }),
    ("syncs of the folder do nothing", |run| drop_syncs(run, str::is_empty)),
];

/// Removes the syncs of the files whose names `is_dropped` selects. The name of the folder is empty.
fn drop_syncs(run: &mut RecordedRun, is_dropped: impl Fn(&str) -> bool) {
    let base = run.base.iter().map(|(name, _)| name.clone()).zip(0..);
    let created = run.events.iter().filter_map(|event| match event {
        Event::Create { name, file } => Some((name.clone(), *file)),
        _ => None,
    });
    let folder = [(String::new(), FOLDER)];
    let names = base.chain(created).chain(folder).filter(|(name, _)| is_dropped(name));
    let files: Vec<FileId> = names.map(|(_, file)| file).collect();
    run.events.retain(|event| !matches!(event, Event::Sync { file } if files.contains(file)));
}

/// Marks each request as answered when it is sent.
fn answer_early(run: &mut RecordedRun) {
    let mut later = BTreeMap::new();
    for event in run.events.iter_mut().rev() {
        if let Event::Mark(expected) = event {
            if expected.requests.keys().eq(later.keys()) {
                expected.requests = later;
            }
            later = expected.requests.clone();
        }
    }
}

/// Changes to a sound database, and the kind of violation that each causes.
const CORRUPTIONS: [(&str, ViolationKind); 6] = [
    ("DELETE FROM parcels WHERE id = 2; DELETE FROM idempotency WHERE id = 2", Lost),
    (
        "UPDATE idempotency SET body = \
         CAST(replace(CAST(body AS TEXT), 'LABEL_GENERATED', 'ORDERED') AS BLOB) WHERE id = 2",
        Lost,
    ),
    (
        // The index would reject the second parcel.
        "DROP INDEX parcels_number; CREATE TEMP TABLE t AS SELECT * FROM parcels WHERE id = 2; \
         UPDATE t SET id = 77; INSERT INTO parcels SELECT * FROM t",
        Duplicated,
    ),
    ("DELETE FROM idempotency WHERE id = 2", Partial),
    ("DELETE FROM outbox WHERE parcel = 2", Partial),
    ("DELETE FROM meta WHERE name = 'secret'", Unreadable),
];

/// Applies each corruption separately to the final files of a run. Returns the SQL of those that are not detected as
/// their kind of violation.
pub fn undetected_corruptions(run: &RecordedRun, folder: &Path) -> Vec<&'static str> {
    let disk = Disk::after(run, run.events.len());
    let is_missed = |(sql, kind): &(&str, ViolationKind)| {
        write_image(folder, &disk.complete_image());
        Connection::open(folder.join(DATABASE)).unwrap().execute_batch(sql).unwrap();
        let checked = check(run, disk.expected(), folder);
        !matches!(checked, Err(Violation(found, _)) if found == *kind)
    };
    CORRUPTIONS.into_iter().filter(is_missed).map(|(sql, _)| sql).collect()
}
