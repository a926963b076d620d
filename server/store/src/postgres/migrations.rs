//! The schema, and upgrades of databases with an older schema.

use std::{cmp::Ordering, time::Duration};

use tokio_postgres::error::SqlState;

use super::{
    connection::Connection,
    error::{DbResult, Failure},
};
use crate::{meta, sql::Sql, values::Value};

/// The schema's history. Old and new versions run side by side while servers are replaced one by one. So a migration
/// only adds, and a later version drops what is no longer used. A migration that cannot do so raises [`OLDEST_SCHEMA`].
/// A migration for both engines has both spellings like any statement ([`Sql`]).
pub(super) const MIGRATIONS: [&str; 16] = [
    include_str!("migrations/0001_init.sql"),
    include_str!("migrations/0002_outbox.sql"),
    include_str!("migrations/0003_shared.sql"),
    include_str!("migrations/0004_shops.sql"),
    include_str!("migrations/0005_mails.sql"),
    include_str!("migrations/0006_key_uses.sql"),
    include_str!("migrations/0007_audit.sql"),
    include_str!("migrations/0008_search.sql"),
    include_str!("migrations/0009_writers.sql"),
    include_str!("migrations/0010_counts.sql"),
    include_str!("migrations/0011_orders.sql"),
    include_str!("migrations/0012_hidden.sql"),
    include_str!("migrations/0013_generations.sql"),
    include_str!("migrations/0014_numbers.sql"),
    include_str!("migrations/0015_traces.sql"),
    include_str!("migrations/0016_sandbox_keys.sql"),
];

/// The schema of the oldest program whose statements still work on this schema. A migration that only adds leaves it
/// unchanged; a migration that drops what programs up to schema n use sets it to n + 1. It is stored in `meta`, so that
/// an older program knows whether it may start. Programs that do not read it have schema 3 or an older one.
pub(super) const OLDEST_SCHEMA: i64 = 14;
const OLDEST_SCHEMA_NAME: &str = "oldest_schema";
/// The message for a program that is older than [`OLDEST_SCHEMA`].
pub(super) const OUTDATED: &str =
    "a newer program has changed the schema, and this one does not work on it any more";

/// Limits the wait for table locks. While a migration waits for one, all other statements queue behind it, even reads.
/// So a migration gives up soon, for instance while `pg_dump` runs, and tries again.
const SET_LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '1s'";
/// Pause between two attempts.
const UPGRADE_PAUSE: Duration = Duration::from_secs(1);

/// The lock under which schemas are changed: "parcelo" in ASCII.
const MIGRATION_LOCK: i64 = 0x0070_6172_6365_6C6F;

/// Advice for the likeliest failure of a first start, and of the first command after an upgrade.
const OWNER_ADVICE: &str = "make its role the owner of the database, or GRANT CREATE ON SCHEMA public to it; after an upgrade, \
     let the owner run a command of this program once";
/// Advice for a role that is not the owner and lacks rights on the tables.
const GRANT_ADVICE: &str = "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public and USAGE ON ALL SEQUENCES \
     IN SCHEMA public to its role, or run as the owner";

/// Name under which the database records that a copy into it is not finished.
const UNFINISHED_COPY: &str = "unfinished copy";
/// Checks that a first start has created the schema.
const IS_OURS: &str =
    "SELECT to_regclass('schema_migrations') IS NOT NULL AND to_regclass('writers') IS NOT NULL";

/// Checks for a table in a schema of the search path, ignoring tables of extensions.
const IS_FOREIGN: &str = "\
    SELECT EXISTS (SELECT FROM pg_class AS c \
        WHERE c.relkind IN ('r', 'p', 'f') \
        AND c.relnamespace = ANY (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname = ANY (current_schemas(false))) \
        AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass \
            AND d.objid = c.oid AND d.deptype = 'e'))";

/// Moves sequences past the existing rows, because logical replication, which providers use for upgrades, and
/// `parcelo-server copy` copy rows but no sequences. A sequence that is not behind its table stays unchanged. Leases
/// are scanned only if another sequence was behind.
const ADVANCE_SEQUENCES: &str = "\
    DO $mend$ DECLARE sequence regclass; from_table text; highest bigint; is_behind boolean := false; BEGIN \
        FOR sequence, from_table IN SELECT pg_get_serial_sequence(a.attrelid::regclass::text, a.attname), \
                a.attrelid::regclass::text FROM pg_attribute AS a \
                WHERE a.attname = 'id' AND a.attidentity <> '' AND pg_table_is_visible(a.attrelid) \
            UNION ALL VALUES ('parcel_rows', 'parcels'), ('outbox_ids', 'outbox') LOOP \
            EXECUTE format('SELECT max(id) FROM %s', from_table) INTO highest; \
            IF highest >= (SELECT coalesce(pg_sequence_last_value(sequence) + seqincrement, seqstart) \
                    FROM pg_sequence WHERE seqrelid = sequence) THEN \
                PERFORM setval(sequence, highest + 1, false); \
                is_behind := true; \
            END IF; \
        END LOOP; \
        IF is_behind THEN \
            PERFORM setval('lease_numbers', greatest((SELECT last_value FROM lease_numbers), \
                (SELECT max(greatest(lease, after_lease)) + 1 FROM outbox))); \
        END IF; \
    END $mend$";

/// Updates the schema and returns the database's secret, which is `fresh_secret` if the database is new. Servers that
/// start on an empty database at the same time create one schema and one secret, because each waits without a limit for
/// the migration lock, which is held until the commit.
pub(super) async fn prepare(db: &Connection, fresh_secret: [u8; 32]) -> DbResult<[u8; 32]> {
    loop {
        db.run("BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0").await?;
        let prepared = prepare_locked(db, fresh_secret).await.map_err(with_advice(GRANT_ADVICE));
        let end_result = db.run(if prepared.is_ok() { "COMMIT" } else { "ROLLBACK" }).await;
        match prepared {
            Err(failure) if failure.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                tracing::warn!(
                    "the upgrade is waiting for a transaction that uses one of its tables"
                );
                tokio::time::sleep(UPGRADE_PAUSE).await;
            }
            prepared => return prepared.and_then(|secret| end_result.map(|()| secret)),
        }
    }
}

/// Adds advice to a failure for lack of rights.
fn with_advice(advice: &str) -> impl Fn(Failure) -> Failure {
    move |failure| match failure.code() {
        Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
            Failure::Unsuitable(format!("{failure}: {advice}"))
        }
        _ => failure,
    }
}

async fn prepare_locked(db: &Connection, fresh_secret: [u8; 32]) -> DbResult<[u8; 32]> {
    upgrade(db).await?;
    db.run(ADVANCE_SEQUENCES).await?;
    if has_unfinished_copy(db).await? {
        let reason =
            "a copy into it was not finished: run `parcelo-server copy` again with the same --to";
        return Err(Failure::Unsuitable(reason.to_owned()));
    }
    meta::secret(Sql::Postgres(db), fresh_secret).await.map_err(|error| {
        if error.is_row_error() {
            return Failure::row("the secret does not have 32 bytes");
        }
        error.into()
    })
}

/// Updates the schema for a copy into the database, and marks the database. No server starts on it until the copy
/// removes the mark, in the transaction of its rows. Without the mark a server would mistake an interrupted copy for a
/// new database. A database that is not empty is refused.
pub(super) async fn prepare_for_copy(db: &Connection) -> DbResult<()> {
    db.run("BEGIN").await?;
    let prepared = async {
        upgrade(db).await?;
        refuse_other_schema(db).await?;
        // Every server writes its secret first. Only rows that an upgrade writes, and the mark of an interrupted copy,
        // may exist.
        let rows = "SELECT EXISTS (SELECT FROM meta WHERE name NOT IN ('oldest_schema', 'unfinished copy'))";
        if db.value(rows, &[]).await? {
            let reason = "it is not empty (its table meta has rows): create another database";
            return Err(Failure::Unsuitable(reason.to_owned()));
        }
        Ok(meta::add(Sql::Postgres(db), UNFINISHED_COPY, b"").await?)
    };
    let prepared = prepared.await.map_err(with_advice(GRANT_ADVICE));
    db.run(if prepared.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
    prepared
}

/// Removes the mark of a complete copy.
pub(super) async fn finish_copy(db: &Connection) -> DbResult<()> {
    db.execute("DELETE FROM meta WHERE name = $1", &[&UNFINISHED_COPY]).await.map(drop)
}

async fn has_unfinished_copy(db: &Connection) -> DbResult<bool> {
    Ok(meta::get::<Value>(Sql::Postgres(db), UNFINISHED_COPY).await?.is_some())
}

/// Refuses to copy from a database whose schema is not this program's, because the source of a copy is not upgraded.
pub(super) async fn check_copy_source(db: &Connection) -> DbResult<()> {
    if !db.value::<bool>(IS_OURS, &[]).await? {
        let reason = "it is not a database of Parcelo's, or empty: name another with --from";
        return Err(Failure::Unsuitable(reason.to_owned()));
    }
    refuse_other_schema(db).await?;
    if has_unfinished_copy(db).await? {
        let reason = "a copy into it was not finished: name the database that was copied";
        return Err(Failure::Unsuitable(reason.to_owned()));
    }
    Ok(())
}

/// Refuses any schema other than this program's, because a copy has only the tables and columns that this program
/// knows, and would lose the others.
async fn refuse_other_schema(db: &Connection) -> DbResult<()> {
    let (database_schema, program_schema) = (schema_version(db).await?, MIGRATIONS.len());
    let advice = match database_schema.cmp(&program_schema) {
        Ordering::Equal => return Ok(()),
        Ordering::Less => "start this program's server on it once, which upgrades it",
        Ordering::Greater => "copy it with the newer program",
    };
    let reason =
        format!("it has schema {database_schema} and this program's is {program_schema}: {advice}");
    Err(Failure::Unsuitable(reason))
}

/// Updates the schema, in an open transaction. A newer program's schema stays unchanged, and so does the oldest
/// schema that it records.
async fn upgrade(db: &Connection) -> DbResult<()> {
    Sql::Postgres(db).lock_number(MIGRATION_LOCK).await?;
    db.run(SET_LOCK_TIMEOUT).await?;
    if !has_schema(db).await? {
        let table = "CREATE TABLE schema_migrations (version bigint PRIMARY KEY, \
             applied_at timestamptz NOT NULL DEFAULT now())";
        db.run(table).await.map_err(with_advice(OWNER_ADVICE))?;
    }
    let version = schema_version(db).await?;
    if version > MIGRATIONS.len() {
        return check_newer(db, version).await;
    }
    for (number, sql) in (1_i64..).zip(MIGRATIONS).skip(version) {
        db.run(&Sql::Postgres(db).in_dialect(sql)).await.map_err(with_advice(OWNER_ADVICE))?;
        db.execute("INSERT INTO schema_migrations (version) VALUES ($1)", &[&number]).await?;
    }
    let set_oldest_schema = "INSERT INTO meta AS m (name, value) VALUES ($1, $2) \
         ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE m.value <> excluded.value";
    let oldest = OLDEST_SCHEMA.to_string();
    db.execute(set_oldest_schema, &[&OLDEST_SCHEMA_NAME, &oldest.as_bytes()]).await.map(drop)
}

/// Returns `Ok` if this program may run on a schema that a newer program has made: versions run side by side while
/// servers are replaced one by one, and a server that crashes in that time must be able to restart.
async fn check_newer(db: &Connection, database_schema: usize) -> DbResult<()> {
    let oldest: Option<Vec<u8>> = meta::get(Sql::Postgres(db), OLDEST_SCHEMA_NAME).await?;
    let program_schema = MIGRATIONS.len();
    if oldest.is_none_or(|oldest| is_outdated(&oldest)) {
        let reason = format!(
            "{OUTDATED} (the database has schema {database_schema}, this program {program_schema}): \
             install the newer program, or restore a dump from before the upgrade"
        );
        return Err(Failure::Unsuitable(reason));
    }
    tracing::info!(
        found = database_schema,
        known = program_schema,
        "the schema is a newer program's, and this one works on it: finish the upgrade"
    );
    Ok(())
}

/// Returns `true` if this program is older than the database allows; `oldest` is the oldest schema in decimal digits.
pub(super) fn is_outdated(oldest: &[u8]) -> bool {
    let oldest = str::from_utf8(oldest).ok().and_then(|digits| digits.parse::<usize>().ok());
    oldest.is_none_or(|oldest| oldest > MIGRATIONS.len())
}

/// Returns `true` if the schema exists. Fails in a database with another program's tables, because callers would
/// otherwise create the schema there, or advise the operator to do so.
pub(super) async fn has_schema(db: &Connection) -> DbResult<bool> {
    if db.value(IS_OURS, &[]).await? {
        return Ok(true);
    }
    if db.value(IS_FOREIGN, &[]).await? {
        let reason = "it holds another program's tables: create a database for Parcelo alone";
        return Err(Failure::Unsuitable(reason.to_owned()));
    }
    Ok(false)
}

/// Returns the number of migrations that the database has.
async fn schema_version(db: &Connection) -> DbResult<usize> {
    let version: Option<i64> = db.value("SELECT max(version) FROM schema_migrations", &[]).await?;
    Ok(usize::try_from(version.unwrap_or(0)).unwrap_or(usize::MAX))
}
