//! Connections: opening them with their settings and the database's secret, and copying from one to another.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rusqlite::{
    Connection, OpenFlags,
    backup::{Backup, StepResult},
    config::DbConfig,
    ffi,
};

use super::{
    StoreError, file_lock,
    identity::{self, IfEmpty},
    migrations::{
        NumberIndexProgress, STEPS_PER_REPORT, known, migrate, migrate_with_progress, schema,
    },
};
use crate::{
    meta,
    sql::{Sql, poll_now},
};

/// Maximum time that a statement waits for a lock of another process: a server waits for a command, or a command for a
/// server.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of prepared statements that a connection keeps. The default of 16 is fewer than the store has.
const MAX_CACHED_STATEMENTS: usize = 128;

/// Setting that keeps the old pages of savepoints in memory, not in a separate file.
const TEMPORARY_IN_MEMORY: &str = "PRAGMA temp_store = MEMORY";

/// Number that makes [`Backup::step`] copy all pages at once.
const ALL_PAGES: i32 = -1;

/// Opens a connection that writes durably to a file. Returns it with the database's secret, which is `fresh` if the
/// database had none.
pub(super) fn open_writer(
    file: &Path,
    if_empty: IfEmpty,
    fresh: [u8; 32],
) -> Result<(Connection, [u8; 32]), StoreError> {
    identity::verify_log(file)?;
    let failed = |error| StoreError::from_sqlite(file, error);
    let mut db = open(file, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(failed)?;
    identity::verify_file(&db, file, if_empty)?;
    // An answer promises that the write is on the disk. EXTRA, and not FULL, because the journal of the change to a log
    // must be gone before there is a log: after a power cut it would undo what the header says about the log, and the
    // log would count as another file's. In the log both do the same. Erased data is overwritten (see `vacuum`).
    //
    // The cache is large enough for the pages that orders write again and again, and no larger. While the file is below
    // 1 GiB, SQLite walks through all cached pages at nearly every commit. This is because a b-tree split briefly gives
    // a page the number of the lock-byte page. That number lies past the end of the file, so the commit drops all
    // pages cached past the end. At 64 MB that took 7 % of all CPU time; at 16 MB it is not noticeable.
    //
    // Checkpoints are rare, so that a page that many commits write is moved once. A server's commits run no checkpoints,
    // and a server shortens a log that a long read has made longer (see `checkpoints`).
    db.execute_batch(
        "PRAGMA synchronous = EXTRA; PRAGMA cache_size = -16384; PRAGMA wal_autocheckpoint = 10000; \
         PRAGMA secure_delete = ON;",
    )
    .map_err(failed)?;
    // The schema is written before the log is enabled, in one commit with the application id and the secret, so that
    // a first start that is killed leaves either an empty file or a complete database.
    let secret = prepare(&mut db, file, fresh)?;
    enable_wal(&db, file)?;
    Ok((db, secret))
}

/// Sets the length, in pages of 4 KiB, to which a commit that begins the log again shortens its file.
pub(super) fn limit_log(db: &Connection, pages: usize) -> rusqlite::Result<()> {
    // The file has a header of 32 bytes, and 24 for each page.
    db.execute_batch(&format!("PRAGMA journal_size_limit = {}", 32 + pages * (4_096 + 24)))
}

/// Enables the write-ahead log. On file systems without shared memory, `SQLite` does not fail but returns the journal
/// mode that is still in effect.
fn enable_wal(db: &Connection, file: &Path) -> Result<(), StoreError> {
    let set = || {
        let mode: String =
            db.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
        // The first read opens the log, and creates it if necessary.
        schema(db)?;
        Ok(mode)
    };
    match set().map_err(|error| StoreError::from_sqlite(file, error))? {
        mode if mode == "wal" => Ok(()),
        mode => Err(StoreError::NoLog { file: file.to_owned(), mode }),
    }
}

/// Opens a connection that moves pages of the log into a file that a writer has already opened.
pub(super) fn open_checkpointer(file: &Path) -> rusqlite::Result<Connection> {
    let db = open(file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // Moved pages are synced, the log first.
    db.execute_batch("PRAGMA synchronous = FULL")?;
    Ok(db)
}

/// Returns `true` if a file is a database of an older version. An unreadable file is reported by the code that opens
/// it.
pub(super) fn is_older(file: &Path) -> bool {
    let found = open_reader(file).and_then(|db| schema(&db));
    found.is_ok_and(|found| (1..known()).contains(&found))
}

/// Opens a connection for copying a file as it is, whatever its version.
#[cfg(feature = "backup")]
pub(super) fn open_source(file: &Path) -> Result<Connection, StoreError> {
    identity::verify_log(file)?;
    // A read-only connection would leave its log behind.
    let db = open(file, OpenFlags::SQLITE_OPEN_READ_WRITE)
        .map_err(|error| StoreError::from_sqlite(file, error))?;
    identity::verify_file(&db, file, IfEmpty::Refuse)?;
    Ok(db)
}

/// Opens a connection that reads a file that no one writes, without locks and without a log. The path is absolute.
pub(super) fn open_immutable(file: &Path) -> rusqlite::Result<Connection> {
    let mut url = b"file:".to_vec();
    for byte in file.as_os_str().as_bytes() {
        match byte {
            b'%' | b'?' | b'#' => url.extend(format!("%{byte:02x}").into_bytes()),
            byte => url.push(*byte),
        }
    }
    url.extend(b"?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    open(Path::new(OsStr::from_bytes(&url)), flags)
}

/// Opens a connection that reads a file that a writer has already opened.
pub(super) fn open_reader(file: &Path) -> rusqlite::Result<Connection> {
    open(file, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

/// Opens a database that lives as long as its only connection.
pub(super) fn memory() -> rusqlite::Result<Connection> {
    configured(Connection::open_in_memory()?)
}

fn open(file: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    configured(Connection::open_with_flags(file, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?)
}

/// Opens a database in memory with the schema, copied from a database that the process keeps, because a test suite
/// starts hundreds.
pub(super) fn memory_with_schema() -> rusqlite::Result<Connection> {
    static EMPTY: Mutex<Option<Connection>> = Mutex::new(None);
    let mut kept = EMPTY.lock().unwrap_or_else(PoisonError::into_inner);
    let mut db = memory()?;
    if let Some(empty) = &*kept {
        copy_pages(empty, &mut db)?;
    } else {
        migrate(&db)?;
        let mut empty = memory()?;
        copy_pages(&db, &mut empty)?;
        *kept = Some(empty);
    }
    Ok(db)
}

/// Returns the path of the write-ahead log of a database file.
pub(super) fn wal_path(file: &Path) -> PathBuf {
    file_lock::with_suffix(file, "-wal")
}

/// Moves the whole log into the file and truncates the log. Returns `false` at once if a reader still uses the log.
pub(super) fn truncate_log(db: &Connection) -> rusqlite::Result<bool> {
    db.busy_timeout(Duration::ZERO)?;
    let is_busy = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0));
    db.busy_timeout(BUSY_TIMEOUT)?;
    is_busy.map(|is_busy| !is_busy)
}

/// Brings the schema up to date, and returns the database's secret, which is `fresh` if the database had none.
pub(super) fn prepare(
    db: &mut Connection,
    file: &Path,
    fresh: [u8; 32],
) -> Result<[u8; 32], StoreError> {
    let index = NumberIndexProgress::default();
    let mut prepared = || {
        let is_upgrade = schema(db)? < known();
        if is_upgrade {
            // One statement may change every row of the largest table, and its rollback data is as large as the table.
            db.execute_batch("PRAGMA temp_store = FILE")?;
            let report =
                |percent| tracing::info!("the index of tracking numbers is {percent} % done");
            index.report_progress(db, STEPS_PER_REPORT, report)?;
        }
        let tx = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        // This reads the version again, now that no other process can be migrating.
        migrate_with_progress(&tx, &index)?;
        let secret = poll_now(meta::secret(Sql::Sqlite(&tx), fresh))?;
        identity::mark_as_ours(&tx)?;
        tx.commit()?;
        if is_upgrade {
            db.progress_handler(0, None::<fn() -> bool>)?;
            db.execute_batch(TEMPORARY_IN_MEMORY)?;
        }
        Ok(secret)
    };
    prepared().map_err(|error| StoreError::from_sqlite(file, error))
}

/// Copies all pages, or fails. `SQLite` itself reports no error when another connection locks one of the two databases.
pub(super) fn copy_pages(from: &Connection, to: &mut Connection) -> rusqlite::Result<()> {
    match Backup::new(from, to)?.step(ALL_PAGES)? {
        StepResult::Done => Ok(()),
        _ => Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_BUSY), None)),
    }
}

fn configured(db: Connection) -> rusqlite::Result<Connection> {
    db.busy_timeout(BUSY_TIMEOUT)?;
    db.set_prepared_statement_cache_capacity(MAX_CACHED_STATEMENTS);
    // Makes plans independent of bound values. Without this, SQLite looks at the values of LIMIT and of columns without
    // an index while it plans, and prepares a cached statement again for each new value. That was more than half of a
    // webhook's cost.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    db.execute_batch(TEMPORARY_IN_MEMORY)?;
    db.execute_batch("PRAGMA foreign_keys = OFF")?;
    Ok(db)
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;
    use crate::{ALL_CREDENTIALS, Store, sqlite::migrations::MIGRATIONS};
    use parcelo_domain::{
        Millis,
        credentials::{ApiKeyScope, NewSecret},
        sample::TEST_AUTHOR,
    };

    #[test]
    fn a_statement_is_prepared_once_whatever_is_bound_to_it() {
        let db = memory_with_schema().unwrap();
        let sql = "SELECT id FROM outbox WHERE tenant = ?1 AND state = ?2 LIMIT ?3";
        let mut statement = db.prepare(sql).unwrap();
        for bound in 1..=3 {
            assert!(!statement.exists([bound, bound, bound]).unwrap());
        }
        assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
    }

    #[test]
    fn a_file_system_without_a_write_ahead_log_is_refused() {
        let db = Connection::open_in_memory().unwrap();
        let refused = enable_wal(&db, Path::new("p.db")).unwrap_err();
        assert!(matches!(&refused, StoreError::NoLog { mode, .. } if mode == "memory"));
        let words = refused.to_string();
        assert!(words.contains("p.db") && words.contains("file system"), "{words}");
    }

    #[test]
    fn databases_in_memory_share_the_schema_and_nothing_else() {
        let mut migrated = memory().unwrap();
        prepare(&mut migrated, Path::new(":memory:"), [0; 32]).unwrap();
        let tables = |db: &Connection| {
            let sql = "SELECT group_concat(concat_ws(' ', type, name, sql), ';' ORDER BY name) FROM sqlite_schema";
            db.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap()
        };
        for secret in 1..=3 {
            let mut db = memory_with_schema().unwrap();
            assert_eq!(schema(&db).unwrap(), known());
            assert_eq!(tables(&db), tables(&migrated));
            let kept = prepare(&mut db, Path::new(":memory:"), [secret; 32]).unwrap();
            assert_eq!(kept, [secret; 32]);
        }
    }

    const OLD: &str = "
        INSERT INTO webhook_endpoints VALUES (1, 'https://a.example', 3, x'01', x'02', 99, 1, 'w', 5, 6);
        INSERT INTO webhook_endpoints VALUES (2, 'https://b.example', 1, x'03', NULL, NULL, 0, NULL, NULL, 7);
        INSERT INTO outbox VALUES (1, 1, x'01', 4, NULL, NULL, NULL, NULL, 5, 5, 1, 77, 0, 1, NULL);
        INSERT INTO outbox VALUES (2, 1, x'02', 4, NULL, NULL, NULL, NULL, 5, 5, 1, 78, 0, 0, NULL);
        INSERT INTO outbox VALUES (3, 2, x'03', 4, NULL, NULL, NULL, NULL, 5, 5, 4, NULL, 0, 0, NULL);
        INSERT INTO manifests VALUES (1, 1, '176-1', x'01', 50, x'');
        INSERT INTO manifest_parcels VALUES (1, 1), (2, 1), (3, 1);";

    #[test]
    fn an_upgrade_keeps_the_data_of_an_older_file() {
        let mut db = Connection::open_in_memory().unwrap();
        db.execute_batch(&MIGRATIONS[..7].concat()).unwrap();
        db.pragma_update(None, "user_version", 7).unwrap();
        db.execute_batch(OLD).unwrap();
        // Never reprinted; reprinted before the flight was known; reprinted after that.
        let parcels = [
            (1, 0, 1, None),
            (2, 86_399_999, 2, Some(49)),
            (3, 86_400_000, 2, Some(51)),
            (4, -1, 1, None),
        ];
        for (id, created, version, reprinted) in parcels {
            let insert = "INSERT INTO parcels VALUES
                (?1, 1, 1, 1, 'SB' || ?1, x'', 1, ?4, 0, '', '', 'EC', 0, ?2, 1, NULL, NULL, ?3, '{}')";
            db.execute(insert, (id, version, reprinted, created)).unwrap();
        }
        let secret = prepare(&mut db, Path::new("old.db"), [7; 32]).unwrap();
        assert_eq!((secret, schema(&db).unwrap()), ([7; 32], known()));
        let one = |sql: &str| db.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
        let endpoints =
            "SELECT group_concat(concat_ws(' ', tenant, url, kinds, hex(secret), enabled,
            disabled_why, last_success, created_at), '; ') FROM webhook_endpoints";
        let expected = "1 https://a.example 3 01 1 w 5 6; 2 https://b.example 1 03 0 7";
        assert_eq!(one(endpoints), expected);
        let old = "SELECT group_concat(concat_ws(' ', tenant, hex(secret), until)) FROM webhook_old_secrets";
        assert_eq!(one(old), "1 02 99", "it signs until its time is over");
        let flights = "SELECT group_concat(label_version) FROM manifest_parcels";
        assert_eq!(one(flights), "1,2,1", "the version that was printed under the flight");
        let due = "SELECT group_concat(coalesce(next_due, '-')) FROM webhook_endpoints";
        assert_eq!(one(due), "77,-", "each endpoint has its due time");
        let counts = "SELECT group_concat(concat_ws(' ', tenant, held, events)) FROM outbox_counts";
        assert_eq!(one(counts), "1 0 2,2 1 1");
        assert_eq!(one("SELECT count(*) || '' FROM sqlite_schema WHERE name = 'kept'"), "0");
        let counts = "SELECT group_concat(concat_ws(' ', tenant, day, state, country, total), '; ') \
            FROM (SELECT * FROM parcel_counts ORDER BY tenant, day, state, country)";
        assert_eq!(one(counts), "1 -1 1 EC 1; 1 0 1 EC 2; 1 1 1 EC 1");
        let totals = "SELECT group_concat(concat_ws(' ', tenant, state, country, total), '; ') FROM parcel_totals";
        assert_eq!(one(totals), "1 1 EC 4", "the total of lists");
    }

    #[tokio::test]
    async fn keys_of_an_older_file_still_work_and_rotate() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("old.db");
        let db = Connection::open(&file).unwrap();
        db.execute_batch(&MIGRATIONS[..9].concat()).unwrap();
        db.pragma_update(None, "user_version", 9).unwrap();
        let hash = "01".repeat(32);
        db.execute_batch(&format!(
            "INSERT INTO accounts VALUES (1, 'acc_1', 'default', 5);
             INSERT INTO meta VALUES ('secret', x'{hash}');
             INSERT INTO api_keys VALUES (7, 'key_7', 2, 'Old', '*', '', NULL, x'{hash}', 'wXyZ', 5, NULL);",
        ))
        .unwrap();
        drop(db);
        let store = Store::open(&file, [7; 32]).unwrap();
        let found = store.credentials_since::<ApiKeyScope>(ALL_CREDENTIALS).await.unwrap();
        let key = &found.credentials[0];
        assert!(key.row == 7 && key.accepts_secret(&[1; 32], Millis(9)), "{key:?}");
        let since = || store.credentials_since::<ApiKeyScope>(found.version);
        assert!(since().await.unwrap().credentials.is_empty());
        let (hash, last4, old_until) = ([2; 32], "aBcD".to_owned(), Millis(20));
        let secret = NewSecret { hash, last4, old_until, replaces: None };
        let rotated = store.rotate_key("key_7", secret, &TEST_AUTHOR).await.unwrap().unwrap();
        assert!([1, 2].iter().all(|hash| rotated.accepts_secret(&[*hash; 32], Millis(19))));
        assert_eq!(since().await.unwrap().credentials, [rotated]);
        store.close().await;
    }

    #[test]
    fn copying_to_a_locked_file_fails() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("copy.db");
        let holder = Connection::open(&file).unwrap();
        holder.execute_batch("CREATE TABLE t (a); BEGIN EXCLUSIVE;").unwrap();
        let (from, mut to) = (memory().unwrap(), Connection::open(&file).unwrap());
        to.busy_timeout(std::time::Duration::ZERO).unwrap();
        from.execute_batch("CREATE TABLE u (b);").unwrap();
        assert!(copy_pages(&from, &mut to).is_err());
        holder.execute_batch("COMMIT").unwrap();
        copy_pages(&from, &mut to).unwrap();
        assert!(to.prepare("SELECT b FROM u").is_ok());
    }
}
