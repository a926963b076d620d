//! The check of a backup, for operators who want to know that it can be restored. It only reads the file, even one on a
//! disk that cannot be written.

use std::{fs, io, os::unix::fs::FileExt, path::Path};

use rusqlite::Connection;

use super::{
    StoreError, connection,
    identity::{self, IfEmpty, LOG_MARK_OFFSET, NO_LOG},
    key_chunks::SET_ASIDE_PREFIX,
    migrations::{known, schema},
};
use crate::generations::is_current;

/// Maximum number of faults that `SQLite` looks for. The first are enough to give the file up.
const MAX_FAULTS: usize = 10;

/// Statement that returns, for each of the newest 1,000 records of idempotency keys, its row, and `true` if it is of an
/// order whose parcel is missing. The parcel's row itself is read, not only its entry in an index.
const NEWEST_RECORDS: &str = concat!(
    "SELECT id, number IS NOT NULL AND NOT EXISTS (SELECT 1 FROM parcels AS p \
     WHERE p.environment = r.tenant & 1 AND p.number = r.number AND p.order_json <> '') FROM \
     (SELECT id, tenant, json_extract(CAST(body AS TEXT), '$.parcel.trackingNumber') AS number \
     FROM idempotency WHERE ",
    is_current!("tenant"),
    " ORDER BY id DESC LIMIT 1000) AS r"
);

/// The contents of a database file, and the first faults in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileReport {
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Number of rows of each table.
    pub tables: Vec<(String, i64)>,
    /// Number of records of idempotency keys whose parcel was looked up. It is 0 if the file is of an older version.
    pub checked_records: usize,
    /// The faults. A sound file has none.
    pub faults: Vec<String>,
}

impl FileReport {
    /// Returns the damaged lists of idempotency keys that a start set aside and wrote again, with their numbers of rows.
    pub fn set_aside(&self) -> impl Iterator<Item = &(String, i64)> {
        self.tables.iter().filter(|(name, _)| name.starts_with(SET_ASIDE_PREFIX))
    }
}

/// Checks a backup: that it is ours, that `SQLite` can read all of its pages, and that its newest idempotency keys have
/// their parcels. Bytes that are damaged inside a value are not found, because values have no checksum. A file with a
/// log beside it is refused, because the file alone is not the database.
pub fn verify(file: &Path) -> Result<FileReport, StoreError> {
    let failed = |error| StoreError::open(file, error);
    let real = file.canonicalize().map_err(failed)?;
    let found = fs::metadata(&real).map_err(failed)?;
    if found.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    let bytes = found.len();
    let log = connection::wal_path(&real);
    if fs::metadata(&log).is_ok_and(|found| found.len() > 0) {
        let mut mark = [0; 2];
        let open = fs::File::open(&real).map_err(failed)?;
        let is_read = open.read_exact_at(&mut mark, LOG_MARK_OFFSET).is_ok();
        if is_read && mark == NO_LOG {
            return Err(StoreError::ForeignLog { file: file.to_owned(), log });
        }
        let reason =
            "a log is beside it, so a server uses it or was killed: make a backup, and verify that";
        let (database, reason) = (file.display().to_string(), reason.to_owned());
        return Err(StoreError::Unsuitable { database, reason });
    }
    let failed = |error| StoreError::from_sqlite(file, error);
    let db = connection::open_immutable(&real).map_err(failed)?;
    identity::verify_file(&db, file, IfEmpty::Refuse)?;
    let faults = page_faults(&db).map_err(failed)?;
    let mut report = FileReport { bytes, tables: Vec::new(), checked_records: 0, faults };
    // Tables with bad pages cannot be counted.
    if report.faults.is_empty() {
        report.tables = count_rows(&db).map_err(failed)?;
        if schema(&db).map_err(failed)? == known() {
            check_records(&db, &mut report).map_err(failed)?;
        }
    }
    Ok(report)
}

fn page_faults(db: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut check = db.prepare(&format!("PRAGMA quick_check({MAX_FAULTS})"))?;
    let rows = check.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
    // A row may have several faults, below the name of the database.
    let faults = rows.iter().flat_map(|row| row.lines());
    let faults = faults.filter(|line| *line != "ok" && !line.starts_with("***"));
    Ok(faults.map(str::to_owned).collect())
}

fn count_rows(db: &Connection) -> rusqlite::Result<Vec<(String, i64)>> {
    let names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' \
                 ORDER BY name";
    let mut names = db.prepare(names)?;
    let names = names.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
    let count = |name: String| {
        let sql = format!("SELECT count(*) FROM \"{name}\"");
        let rows = db.query_row(&sql, [], |row| row.get(0))?;
        Ok((name, rows))
    };
    names.into_iter().map(count).collect()
}

fn check_records(db: &Connection, report: &mut FileReport) -> rusqlite::Result<()> {
    let mut records = db.prepare(NEWEST_RECORDS)?;
    let mut rows = records.query([])?;
    while let Some(row) = rows.next()? {
        report.checked_records += 1;
        let (id, lacks_parcel) = (row.get::<_, i64>(0)?, row.get::<_, bool>(1)?);
        if lacks_parcel && report.faults.len() < MAX_FAULTS {
            report.faults.push(format!("the parcel of idempotency row {id} is missing"));
        }
    }
    Ok(())
}
