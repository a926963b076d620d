//! The schema, and how a database of an older version gets there.

use std::time::Duration;

use tokio_postgres::error::SqlState;

use super::{
    Store,
    connection::{Connection, get},
    error::{DbResult, Failure},
};
use crate::{
    domain::{NumberKey, secrets::fresh_number_key},
    store::StoreError,
};

/// What the database keeps from its first start on.
pub(super) struct Secrets {
    /// From what its keyed hashes and signatures derive.
    pub(super) secret: [u8; 32],
    /// The key of its generated tracking numbers.
    pub(super) number_key: NumberKey,
}

/// The schema's history. Versions serve side by side while servers are replaced one by one: a migration adds,
/// and what it makes useless is dropped by a later version.
const MIGRATIONS: [&str; 3] = [
    include_str!("migrations/0001_init.sql"),
    include_str!("migrations/0002_outbox.sql"),
    include_str!("migrations/0003_shared.sql"),
];

/// While a migration waits for a table, everyone else waits behind it, also who only reads: it gives up soon, for
/// instance while `pg_dump` runs, and tries again.
const TABLE_LOCKS: &str = "SET LOCAL lock_timeout = '1s'";
/// Between two tries.
const UPGRADE_PAUSE: Duration = Duration::from_secs(1);

/// The lock under which schemas are changed: "parcelo" in ASCII.
const LOCK: i64 = 0x0070_6172_6365_6C6F;

/// The name under which the database keeps that a copy into it is not finished.
const UNFINISHED: &str = "unfinished copy";
/// Whether the schema is there.
const IS_OURS: &str =
    "SELECT to_regclass('schema_migrations') IS NOT NULL AND to_regclass('writers') IS NOT NULL";

/// Brings the schema up to date and answers the database's secret, which is `fresh` if it is new. Servers
/// that start at once on an empty database make one schema and one secret: the lock is held until the commit, and
/// waited for without a limit.
pub(super) async fn prepare(db: &Connection, fresh: [u8; 32]) -> DbResult<Secrets> {
    loop {
        db.run("BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0").await?;
        let prepared = prepare_locked(db, fresh).await.map_err(advised);
        let ended = db.run(if prepared.is_ok() { "COMMIT" } else { "ROLLBACK" }).await;
        match prepared {
            Err(failure) if failure.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                tracing::warn!(
                    "the upgrade waits for a transaction that reads or writes a table of it"
                );
                tokio::time::sleep(UPGRADE_PAUSE).await;
            }
            prepared => {
                let secrets = prepared?;
                return ended.map(|()| secrets);
            }
        }
    }
}

/// A role without the right to make tables is the likeliest failure of a first start.
fn advised(failure: Failure) -> Failure {
    if failure.code() != Some(&SqlState::INSUFFICIENT_PRIVILEGE) {
        return failure;
    }
    let advice = "make its role the owner of the database, or GRANT CREATE ON SCHEMA public to it";
    Failure::Unsuitable(format!("{failure}: {advice}"))
}

async fn prepare_locked(db: &Connection, fresh: [u8; 32]) -> DbResult<Secrets> {
    upgrade(db).await?;
    if is_unfinished(db).await? {
        let reason =
            "a copy into it was not finished: run `parcelo-server copy` again with the same --to";
        return Err(Failure::Unsuitable(reason.to_owned()));
    }
    Ok(Secrets {
        secret: kept(db, "secret", fresh).await?,
        number_key: NumberKey::new(&kept(db, "number_key", fresh_number_key(&fresh)).await?),
    })
}

/// Brings the schema up to date for a copy into the database, and marks it: until the copy has removed the mark,
/// in the transaction of its rows, no server starts on it. Without the mark a server would take what an
/// interrupted copy leaves for a new database. One that holds anything is refused.
pub(super) async fn prepare_for_copy(db: &Connection, tables: &[&str]) -> DbResult<()> {
    db.run("BEGIN").await?;
    let prepared = async {
        upgrade(db).await?;
        for table in tables {
            let rows = format!("SELECT EXISTS (SELECT FROM {table})");
            // A mark of a copy that was interrupted is all that there may be.
            if db.value::<bool>(&rows, &[]).await?
                && !(*table == "meta" && is_unfinished(db).await?)
            {
                let reason = format!(
                    "it is not empty (its table {table} has rows): create another database"
                );
                return Err(Failure::Unsuitable(reason));
            }
        }
        let mark = "INSERT INTO meta (name, value) VALUES ($1, '') ON CONFLICT DO NOTHING";
        db.execute(mark, &[&UNFINISHED]).await.map(drop)
    };
    let prepared = prepared.await;
    db.run(if prepared.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
    prepared
}

/// Removes the mark of a copy, whose rows are all there.
pub(super) async fn finish_copy(db: &Connection) -> DbResult<()> {
    db.execute("DELETE FROM meta WHERE name = $1", &[&UNFINISHED]).await.map(drop)
}

async fn is_unfinished(db: &Connection) -> DbResult<bool> {
    db.value("SELECT EXISTS (SELECT FROM meta WHERE name = $1)", &[&UNFINISHED]).await
}

/// Refuses a database whose schema is another than this program's, for reading it as it is.
pub(super) async fn check(db: &Connection) -> DbResult<()> {
    if !has_schema(db).await? {
        return Err(Failure::Unsuitable("it is not a database of Parcelo's, or empty".to_owned()));
    }
    let found: Option<i64> = db.value("SELECT max(version) FROM schema_migrations", &[]).await?;
    let (found, known) = (found.unwrap_or(0), MIGRATIONS.len());
    if usize::try_from(found) != Ok(known) {
        let reason = format!(
            "it has schema {found} and this program's is {known}: start this program's server on it once, which upgrades it"
        );
        return Err(Failure::Unsuitable(reason));
    }
    if is_unfinished(db).await? {
        return Err(Failure::Unsuitable("a copy into it was not finished".to_owned()));
    }
    Ok(())
}

/// Brings the schema up to date, in a transaction that is under way.
async fn upgrade(db: &Connection) -> DbResult<()> {
    db.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    db.run(TABLE_LOCKS).await?;
    let done = usize::try_from(version(db).await?.unwrap_or(0)).unwrap_or(usize::MAX);
    if done > MIGRATIONS.len() {
        let reason = format!(
            "it has schema {done} and this program knows {}: install the newer program again",
            MIGRATIONS.len()
        );
        return Err(Failure::Unsuitable(reason));
    }
    for (number, sql) in (1_i64..).zip(MIGRATIONS).skip(done) {
        db.run(sql).await?;
        db.execute("INSERT INTO schema_migrations (version) VALUES ($1)", &[&number]).await?;
    }
    Ok(())
}

/// Whether a first start has made the schema.
pub(super) async fn has_schema(db: &Connection) -> DbResult<bool> {
    db.value(IS_OURS, &[]).await
}

/// How many migrations the database has; the table that says so is made where there is nothing yet.
async fn version(db: &Connection) -> DbResult<Option<i64>> {
    if !has_schema(db).await? {
        let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()";
        if db.value::<i64>(tables, &[]).await? > 0 {
            let reason = "it holds another program's tables: create a database for Parcelo alone";
            return Err(Failure::Unsuitable(reason.to_owned()));
        }
        db.run(
            "CREATE TABLE schema_migrations (version bigint PRIMARY KEY, \
             applied_at timestamptz NOT NULL DEFAULT now())",
        )
        .await?;
    }
    db.value("SELECT max(version) FROM schema_migrations", &[]).await
}

impl Store {
    /// The two addresses may lead to two databases.
    pub(super) async fn check_that_reads_see_what_is_written(&self) -> Result<(), StoreError> {
        if self.read(secret).await?.as_deref() == Some(&self.0.secret) {
            return Ok(());
        }
        let reason = "it is not the database that --database-direct names: both must lead to one";
        Err(StoreError::Unsuitable { database: self.name(), reason: reason.to_owned() })
    }
}

/// The database's secret, if it has one.
async fn secret(db: &Connection) -> DbResult<Option<Vec<u8>>> {
    let row = db.first("SELECT value FROM meta WHERE name = 'secret'", &[]).await?;
    row.map(|row| get(&row, 0)).transpose()
}

/// The secret that the database keeps under a name, which is `fresh` if it has none.
async fn kept(db: &Connection, name: &str, fresh: [u8; 32]) -> DbResult<[u8; 32]> {
    let insert = "INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    db.execute(insert, &[&name, &fresh.as_slice()]).await?;
    let found: Vec<u8> = db.value("SELECT value FROM meta WHERE name = $1", &[&name]).await?;
    found.try_into().map_err(|_wrong| Failure::row("a secret does not have 32 bytes"))
}
