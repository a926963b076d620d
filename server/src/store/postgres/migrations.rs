//! The schema, and how a database of an older version gets there.

use super::{
    connection::Connection,
    error::{DbResult, Failure},
};
use crate::domain::{NumberKey, secrets::fresh_number_key};

/// What the database keeps from its first start on.
pub(super) struct Secrets {
    /// From what its keyed hashes and signatures derive.
    pub(super) secret: [u8; 32],
    /// The key of its generated tracking numbers.
    pub(super) number_key: NumberKey,
}

/// The schema's history. Versions serve side by side while servers are replaced one by one: a migration adds,
/// and what it makes useless is dropped by a later version.
const MIGRATIONS: [&str; 1] = [include_str!("migrations/0001_init.sql")];

/// The lock under which schemas are changed: "parcelo" in ASCII.
const LOCK: i64 = 0x0070_6172_6365_6C6F;

/// Brings the schema up to date and answers the database's secret, which is `fresh` if it is new. Servers
/// that start at once on an empty database make one schema and one secret: the lock is held until the commit.
pub(super) async fn prepare(db: &Connection, fresh: [u8; 32]) -> DbResult<Secrets> {
    db.run("BEGIN").await?;
    let prepared = prepare_locked(db, fresh).await;
    db.run(if prepared.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
    prepared
}

async fn prepare_locked(db: &Connection, fresh: [u8; 32]) -> DbResult<Secrets> {
    db.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
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
    Ok(Secrets {
        secret: kept(db, "secret", fresh).await?,
        number_key: NumberKey::new(&kept(db, "number_key", fresh_number_key(&fresh)).await?),
    })
}

/// Whether a first start has made the schema.
pub(super) async fn has_schema(db: &Connection) -> DbResult<bool> {
    let is_ours = "SELECT to_regclass('schema_migrations') IS NOT NULL AND to_regclass('writers') IS NOT NULL";
    db.value(is_ours, &[]).await
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

/// The secret that the database keeps under a name, which is `fresh` if it has none.
async fn kept(db: &Connection, name: &str, fresh: [u8; 32]) -> DbResult<[u8; 32]> {
    let insert = "INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    db.execute(insert, &[&name, &fresh.as_slice()]).await?;
    let found: Vec<u8> = db.value("SELECT value FROM meta WHERE name = $1", &[&name]).await?;
    found.try_into().map_err(|_wrong| Failure::row("a secret does not have 32 bytes"))
}
