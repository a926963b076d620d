//! Opening connections: their settings, the migrations, and the database's secret.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, OptionalExtension};

use super::{StoreError, copy::copy_pages};

pub(super) const BUSY: Duration = Duration::from_secs(5);
const STATEMENTS: usize = 128;

/// The schema's history; the file's `user_version` says how many of them it has.
const MIGRATIONS: [&str; 10] = [
    include_str!("migrations/0001_init.sql"),
    include_str!("migrations/0002_lists.sql"),
    include_str!("migrations/0003_carriers.sql"),
    include_str!("migrations/0004_legacy.sql"),
    include_str!("migrations/0005_webhooks.sql"),
    include_str!("migrations/0006_admin.sql"),
    include_str!("migrations/0007_dashboard.sql"),
    include_str!("migrations/0008_leases.sql"),
    include_str!("migrations/0009_flights.sql"),
    include_str!("migrations/0013_resets.sql"),
];

/// A connection that writes to a file, durably.
pub(super) fn writer(file: &Path) -> Result<Connection, StoreError> {
    create(file).map_err(|error| StoreError::open(file, error))?;
    let open = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(file, flags)?;
        settle(&db)?;
        db.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; \
             PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 10000; \
             PRAGMA secure_delete = ON;",
        )?;
        Ok(db)
    };
    open().map_err(|error| StoreError::of(file, error))
}

/// A connection that reads a file which a writer has opened before.
pub(super) fn reader(file: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(file, flags)?;
    settle(&db)?;
    Ok(db)
}

/// A database that lives as long as its one connection.
pub(super) fn memory() -> rusqlite::Result<Connection> {
    let db = Connection::open_in_memory()?;
    settle(&db)?;
    Ok(db)
}

/// The same with its schema, copied from one that the process keeps: a suite starts hundreds.
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

/// Holds the file for one server; the lock goes with the returned file, or with the process.
pub(super) fn lock(file: &Path) -> Result<File, StoreError> {
    create(file).map_err(|error| StoreError::open(file, error))?;
    // One file has one lock, whatever names lead to it.
    let real = file.canonicalize().map_err(|error| StoreError::open(file, error))?;
    let mut name = real.into_os_string();
    name.push(".lock");
    let lock = File::options().create(true).truncate(false).write(true).open(name);
    let lock = lock.map_err(|error| StoreError::open(file, error))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(std::fs::TryLockError::WouldBlock) => Err(StoreError::InUse { file: file.to_owned() }),
        Err(std::fs::TryLockError::Error(error)) => Err(StoreError::open(file, error)),
    }
}

/// The write-ahead log beside a database file.
pub(super) fn log_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// Moves all of the log into the file and truncates it; false, at once, when somebody still reads
/// from the log.
pub(super) fn truncate_log(db: &Connection) -> rusqlite::Result<bool> {
    db.busy_timeout(Duration::ZERO)?;
    let is_busy = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0));
    db.busy_timeout(BUSY)?;
    is_busy.map(|is_busy| !is_busy)
}

/// Brings the schema up to date and answers the database's secret, which is `fresh` if it is new.
pub(super) fn prepare(
    db: &mut Connection,
    file: &Path,
    fresh: [u8; 32],
) -> Result<[u8; 32], StoreError> {
    let found: i64 = schema(db).map_err(|error| StoreError::of(file, error))?;
    let known = known();
    if found > known {
        return Err(StoreError::Newer { file: file.to_owned(), found, known });
    }
    let mut prepared = || {
        let tx = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        // The version is read again, now that no other process can be migrating.
        migrate(&tx)?;
        let secret = secret(&tx, fresh)?;
        tx.commit()?;
        Ok(secret)
    };
    prepared().map_err(|error| StoreError::of(file, error))
}

fn migrate(db: &Connection) -> rusqlite::Result<()> {
    let done = usize::try_from(schema(db)?).unwrap_or(0);
    for sql in MIGRATIONS.iter().skip(done) {
        db.execute_batch(sql)?;
    }
    if done < MIGRATIONS.len() {
        db.pragma_update(None, "user_version", known())?;
    }
    Ok(())
}

fn secret(db: &Connection, fresh: [u8; 32]) -> rusqlite::Result<[u8; 32]> {
    let find = "SELECT value FROM meta WHERE name = 'secret'";
    if let Some(secret) = db.query_row(find, [], |row| row.get(0)).optional()? {
        return Ok(secret);
    }
    db.execute("INSERT INTO meta (name, value) VALUES ('secret', ?1)", [fresh])?;
    Ok(fresh)
}

/// The newest schema this program knows.
fn known() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

fn schema(db: &Connection) -> rusqlite::Result<i64> {
    db.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn settle(db: &Connection) -> rusqlite::Result<()> {
    db.busy_timeout(BUSY)?;
    db.set_prepared_statement_cache_capacity(STATEMENTS);
    // Savepoints keep the old pages aside: in memory, not in a file of their own.
    db.execute_batch("PRAGMA temp_store = MEMORY; PRAGMA foreign_keys = OFF;")
}

/// Makes the file readable by its owner only, for it holds the secret and people's addresses.
fn create(file: &Path) -> io::Result<()> {
    open_private(file, File::options().create(true).truncate(false))
}

/// The same for a file that must not be there yet.
pub(super) fn create_new(file: &Path) -> Result<(), StoreError> {
    open_private(file, File::options().create_new(true)).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => StoreError::Exists { file: file.to_owned() },
        _ => StoreError::open(file, error),
    })
}

fn open_private(file: &Path, options: &mut fs::OpenOptions) -> io::Result<()> {
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options.open(file).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_in_memory_have_the_schema_in_common_and_nothing_else() {
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
            assert_eq!(
                prepare(&mut db, Path::new(":memory:"), [secret; 32]).unwrap(),
                [secret; 32]
            );
        }
    }

    const OLD: &str = "
        INSERT INTO webhook_endpoints VALUES (1, 'https://a.example', 3, x'01', x'02', 99, 1, 'w', 5, 6);
        INSERT INTO webhook_endpoints VALUES (2, 'https://b.example', 1, x'03', NULL, NULL, 0, NULL, NULL, 7);
        INSERT INTO manifests VALUES (1, 1, '176-1', x'01', 50, x'');
        INSERT INTO manifest_parcels VALUES (1, 1), (2, 1), (3, 1);";

    #[test]
    fn what_an_older_file_holds_is_there_in_a_newer_one() {
        let mut db = Connection::open_in_memory().unwrap();
        db.execute_batch(&MIGRATIONS[..7].concat()).unwrap();
        db.pragma_update(None, "user_version", 7).unwrap();
        db.execute_batch(OLD).unwrap();
        // Never reprinted, reprinted before the flight was known, and after.
        for (id, version, reprinted) in [(1, 1, None), (2, 2, Some(49)), (3, 2, Some(51))] {
            let insert = "INSERT INTO parcels VALUES
                (?1, 1, 1, 1, 'SB' || ?1, x'', 1, 0, 0, '', '', 'EC', 0, ?2, 1, NULL, NULL, ?3, '{}')";
            db.execute(insert, (id, version, reprinted)).unwrap();
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
        assert_eq!(one("SELECT count(*) || '' FROM sqlite_schema WHERE name = 'kept'"), "0");
    }
}
