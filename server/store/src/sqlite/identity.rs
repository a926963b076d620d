//! Checks that a database file is ours before writing to it, and so is its log: another program's `SQLite` file would
//! accept our tables without an error, and a backup the log of the file that it replaces.

use std::{fs, io, path::Path};

use rusqlite::{Connection, ErrorCode};

use super::{
    StoreError, file_lock,
    migrations::{known, schema},
};
use crate::meta::SECRET;

/// `PRAGMA application_id` of our files: "PCLO". Files from before 0.2 have none.
const APPLICATION_ID: i32 = 0x5043_4C4F;

/// Size of a database's header in bytes. `SQLite` considers a file of one byte empty, and would overwrite it.
const HEADER_BYTES: u64 = 100;

/// Position in the header of the two bytes that say whether the file has a write-ahead log.
pub(super) const LOG_MARK_OFFSET: u64 = 18;
/// The bytes of a file without a log. `SQLite` commits others before it creates one, so a log beside these belongs to
/// another file.
pub(super) const NO_LOG: [u8; 2] = [1, 1];

/// The treatment of a database without any content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IfEmpty {
    /// It is new, and gets our tables.
    Create,
    /// It is refused, because the caller expects data in it.
    Refuse,
}

enum Identity {
    Ours,
    Empty,
    Foreign,
}

/// Refuses a backup beside the write-ahead log of another file, which `SQLite` would write into the backup. It only
/// reads both files; a missing database file is created.
pub(super) fn verify_log(file: &Path) -> Result<(), StoreError> {
    let open = file_lock::create(file)?;
    let failed = |error| StoreError::open(file, error);
    let log = file_lock::with_suffix(&file.canonicalize().map_err(failed)?, "-wal");
    // The log is looked at first: once it is written to, the header of its own file says that there is one.
    if !fs::metadata(&log).is_ok_and(|found| found.len() > 0) {
        return Ok(());
    }
    let mut mark = [0; 2];
    match open.read_at(&mut mark, LOG_MARK_OFFSET) {
        Ok(()) if mark == NO_LOG => Err(StoreError::ForeignLog { file: file.to_owned(), log }),
        Ok(()) => Ok(()),
        // SQLite deletes a log beside an empty file, and `verify_file` refuses any other file this short.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

/// Refuses a file that is not ours, is newer than this program, or is empty but should not be. It only reads the file.
pub(super) fn verify_file(
    db: &Connection,
    file: &Path,
    if_empty: IfEmpty,
) -> Result<(), StoreError> {
    match identify(db) {
        _ if is_too_short(file) => Err(StoreError::Foreign { file: file.to_owned() }),
        Ok(Identity::Ours) => check_version(db, file),
        Ok(Identity::Empty) if if_empty == IfEmpty::Create => Ok(()),
        Ok(Identity::Empty) => Err(StoreError::Empty { file: file.to_owned() }),
        Ok(Identity::Foreign) => Err(StoreError::Foreign { file: file.to_owned() }),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
            Err(StoreError::Foreign { file: file.to_owned() })
        }
        Err(error) => Err(StoreError::from_sqlite(file, error)),
    }
}

/// Returns `true` if the file is not empty, but too short for a database.
fn is_too_short(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|found| (1..HEADER_BYTES).contains(&found.len()))
}

fn check_version(db: &Connection, file: &Path) -> Result<(), StoreError> {
    let (found, known) =
        (schema(db).map_err(|error| StoreError::from_sqlite(file, error))?, known());
    if found > known {
        return Err(StoreError::Newer { file: file.to_owned(), found, known });
    }
    Ok(())
}

fn identify(db: &Connection) -> rusqlite::Result<Identity> {
    let (id, version) = (application_id(db)?, schema(db)?);
    let contents: i64 = db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(match id {
        // A first start that was killed, before 0.2, leaves a file with a header and nothing else.
        0 if contents == 0 && version == 0 => Identity::Empty,
        0 if version > 0 && has_secret(db)? => Identity::Ours,
        // Without the secret no key and no label link works, and a new secret would hide that for a while.
        APPLICATION_ID if has_secret(db)? => Identity::Ours,
        _ => Identity::Foreign,
    })
}

/// Returns `true` if our table of settings exists and has a secret in it. Another program's table may have the same
/// name.
fn has_secret(db: &Connection) -> rusqlite::Result<bool> {
    let columns = "SELECT count(*) FROM pragma_table_info('meta') WHERE name IN ('name', 'value')";
    if db.query_row(columns, [], |row| row.get::<_, i64>(0))? != 2 {
        return Ok(false);
    }
    let secret =
        "SELECT 1 FROM meta WHERE name = ?1 AND typeof(value) = 'blob' AND length(value) = 32";
    db.prepare(secret)?.exists([SECRET])
}

/// Marks the file as ours.
pub(super) fn mark_as_ours(db: &Connection) -> rusqlite::Result<()> {
    if application_id(db)? == APPLICATION_ID {
        return Ok(());
    }
    db.pragma_update(None, "application_id", APPLICATION_ID)
}

fn application_id(db: &Connection) -> rusqlite::Result<i32> {
    db.pragma_query_value(None, "application_id", |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::connection::prepare;

    fn check_as_text(db: &Connection, if_empty: IfEmpty) -> Result<(), String> {
        verify_file(db, Path::new("parcelo.db"), if_empty).map_err(|error| error.to_string())
    }

    fn own_database() -> Connection {
        let mut db = Connection::open_in_memory().unwrap();
        prepare(&mut db, Path::new("parcelo.db"), [7; 32]).unwrap();
        db
    }

    #[test]
    fn an_older_file_gets_the_application_id_at_startup() {
        let mut db = own_database();
        db.pragma_update(None, "application_id", 0).unwrap();
        assert_eq!(check_as_text(&db, IfEmpty::Refuse), Ok(()));
        assert_eq!(prepare(&mut db, Path::new("parcelo.db"), [8; 32]).unwrap(), [7; 32]);
        assert_eq!(application_id(&db).unwrap(), APPLICATION_ID);
        assert_eq!(check_as_text(&db, IfEmpty::Refuse), Ok(()));
    }

    #[test]
    fn foreign_files_are_refused_and_empty_ones_are_new_if_allowed() {
        let spoilt = [
            "PRAGMA application_id = 1;",
            "DELETE FROM meta;",
            "UPDATE meta SET value = x'01';",
            "DELETE FROM meta WHERE name = 'secret';",
            "PRAGMA application_id = 0; DELETE FROM meta;",
            "PRAGMA application_id = 0; PRAGMA user_version = 0;",
            "DROP TABLE meta;",
            "DROP TABLE meta; CREATE TABLE meta (key, value);",
        ];
        for sql in spoilt {
            let db = own_database();
            db.execute_batch(sql).unwrap();
            let words = check_as_text(&db, IfEmpty::Create).expect_err(sql);
            assert!(words.contains("is not a Parcelo database"), "{sql}: {words}");
        }
        let empty = Connection::open_in_memory().unwrap();
        assert_eq!(check_as_text(&empty, IfEmpty::Create), Ok(()));
        assert!(check_as_text(&empty, IfEmpty::Refuse).unwrap_err().contains("is empty"));
    }

    #[test]
    fn a_log_belongs_to_the_file_that_a_link_leads_to() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link, log] =
            ["p.db", "link.db", "p.db-wal"].map(|name| folder.path().join(name));
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let db = Connection::open(&file).unwrap();
        db.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (a);").unwrap();
        assert!(fs::metadata(&log).unwrap().len() > 0);
        verify_log(&link).unwrap();
        db.execute_batch("PRAGMA journal_mode = DELETE").unwrap();
        fs::write(&log, "").unwrap();
        verify_log(&link).unwrap();
        fs::write(&log, "another's").unwrap();
        let refused = verify_log(&link).unwrap_err();
        assert!(
            matches!(&refused, StoreError::ForeignLog { log, .. } if log.ends_with("p.db-wal"))
        );
    }
}
