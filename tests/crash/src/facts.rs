//! The contents of a database file: rows that must not be lost, and contradictions between rows.

use std::{collections::BTreeSet, path::Path};

use rusqlite::{Connection, OpenFlags, Result, types::FromSql};

use ViolationKind::{Duplicated, Partial, Unreadable};

/// A violation: its kind, and what was found.
#[derive(Debug)]
pub struct Violation(pub ViolationKind, pub String);

/// A kind of violation. The documentation of each variant states the guarantee that is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ViolationKind {
    /// Acknowledged orders exist, and repeating a request returns the same answer.
    Lost,
    /// An idempotency key has one order, and a tracking number has one parcel.
    Duplicated,
    /// The file is sound; the service starts on it and answers.
    Unreadable,
    /// A write exists as a whole, with its history and its events, or not at all.
    Partial,
}

impl From<rusqlite::Error> for Violation {
    fn from(error: rusqlite::Error) -> Self {
        Self(Unreadable, error.to_string())
    }
}

/// The rows that no crash may remove once their request has been acknowledged, each as a line of text. A reset removes
/// all of them except API keys and webhook endpoints.
pub type Facts = BTreeSet<String>;

/// The queries that return the facts.
const FACT_QUERIES: [&str; 8] = [
    "SELECT 'parcel ' || hex(public_id) || ' ' || number FROM present_parcels",
    "SELECT 'history of ' || number || ': ' || sequence || ' ' || e.state || ' ' || at \
     FROM events e JOIN present_parcels p ON p.id = e.parcel",
    "SELECT 'reprint of ' || number FROM present_parcels WHERE label_version > 1",
    "SELECT 'manifest ' || awb || ' ' || hex(public_id) FROM present_manifests",
    "SELECT 'under ' || m.manifest || ': ' || p.number FROM manifest_parcels m \
     JOIN present_parcels p ON p.id = m.parcel",
    "SELECT 'delivered ' || hex(event_id) FROM present_outbox WHERE state = 2",
    "SELECT 'key ' || public_id FROM api_keys",
    "SELECT 'endpoint of ' || tenant FROM webhook_endpoints",
];

/// The contradictions: the kind of violation, a description, and a query whose results are all zero if the rows agree.
const CONTRADICTIONS: [(ViolationKind, &str, &str); 13] = [
    (
        Duplicated,
        "two parcels have one number",
        "SELECT count(*) - count(DISTINCT environment || upper(number)) FROM present_parcels",
    ),
    (
        Partial,
        "a parcel has no record of its key",
        "SELECT count(*) FROM (SELECT number FROM present_parcels EXCEPT \
         SELECT json_extract(CAST(body AS TEXT), '$.parcel.trackingNumber') FROM present_idempotency)",
    ),
    (
        Partial,
        "a record of a key has no parcel",
        "SELECT count(*) FROM (SELECT json_extract(CAST(body AS TEXT), '$.parcel.trackingNumber') AS n \
         FROM present_idempotency WHERE n IS NOT NULL EXCEPT SELECT number FROM present_parcels)",
    ),
    (
        Duplicated,
        "two records have one key",
        "SELECT count(*) - count(DISTINCT key) FROM present_idempotency",
    ),
    (
        Partial,
        "a history has a gap",
        "SELECT count(*) FROM present_parcels p WHERE last_sequence <> \
         2 + (SELECT count(*) FROM events WHERE parcel = p.id AND sequence BETWEEN 3 AND p.last_sequence)",
    ),
    (
        Partial,
        "a state is not the last of its history",
        "SELECT count(*) FROM present_parcels p WHERE state <> coalesce( \
         (SELECT state FROM events WHERE parcel = p.id ORDER BY sequence DESC LIMIT 1), 2)",
    ),
    (
        Partial,
        "an event has no parcel",
        "SELECT count(*) FROM events WHERE parcel NOT IN (SELECT id FROM parcels)",
    ),
    // A parcel's second event has no row in `events`, because the parcel's row implies it. Each later one has a row.
    (
        Partial,
        "the outbox lacks an event of a history",
        "SELECT count(*) FROM (SELECT id, 2 FROM present_parcels UNION ALL \
         SELECT parcel, sequence FROM events JOIN present_parcels p ON p.id = parcel EXCEPT \
         SELECT parcel, sequence FROM present_outbox WHERE kind = 0)",
    ),
    (
        Partial,
        "the outbox has an event that no history has",
        "SELECT count(*) FROM (SELECT parcel, sequence FROM present_outbox WHERE kind = 0 EXCEPT \
         SELECT id, 2 FROM present_parcels EXCEPT SELECT parcel, sequence FROM events)",
    ),
    (
        Duplicated,
        "the outbox has an event twice",
        "SELECT count(*) - count(DISTINCT kind || ' ' || coalesce(parcel, '') || ' ' || \
         coalesce(manifest, '') || ' ' || coalesce(sequence, '')) FROM present_outbox",
    ),
    (
        Partial,
        "the outbox does not have one event for each new parcel and manifest",
        "SELECT abs((SELECT count(*) FROM present_outbox WHERE kind = 1) - (SELECT count(*) FROM present_parcels)) \
         + abs((SELECT count(*) FROM present_outbox WHERE kind = 3) - (SELECT count(*) FROM present_manifests))",
    ),
    (
        Partial,
        "parcels are counted wrongly",
        "SELECT count(*) FROM (SELECT tenant, state, country, count(*) AS n FROM present_parcels GROUP BY 1, 2, 3 \
         EXCEPT SELECT tenant, state, country, total FROM present_parcel_totals) \
         UNION ALL SELECT count(*) FROM (SELECT tenant, state, country, total FROM present_parcel_totals \
         WHERE total <> 0 EXCEPT SELECT tenant, state, country, count(*) FROM present_parcels GROUP BY 1, 2, 3)",
    ),
    (
        Partial,
        "the outbox is counted wrongly",
        "SELECT (SELECT count(*) FROM present_outbox WHERE state IN (0, 1, 4)) \
         - (SELECT coalesce(sum(events), 0) FROM present_outbox_counts)",
    ),
];

/// A read-only connection to a file that the store has open.
pub struct Reader(Connection);

impl Reader {
    pub fn open(file: &Path) -> Result<Self> {
        let db = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        // The views omit rows of generations that a reset has ended.
        for table in
            ["parcels", "manifests", "idempotency", "outbox", "parcel_totals", "outbox_counts"]
        {
            db.execute_batch(&format!(
                "CREATE TEMP VIEW present_{table} AS SELECT * FROM main.{table} \
                 WHERE tenant NOT IN (SELECT number FROM main.ended_generations)"
            ))?;
        }
        Ok(Self(db))
    }

    /// Returns the rows that must not be lost.
    pub fn facts(&self) -> Result<Facts> {
        Ok(self.rows(&FACT_QUERIES.join(" UNION ALL "))?.into_iter().collect())
    }

    pub fn count_parcels(&self) -> Result<i64> {
        self.query_number("SELECT count(*) FROM present_parcels")
    }

    /// Returns the number of chunks in the list of idempotency keys.
    pub fn count_key_chunks(&self) -> Result<i64> {
        self.query_number("SELECT count(*) FROM key_chunks")
    }

    /// Returns `true` if every reset has erased its rows.
    pub fn are_resets_erased(&self) -> bool {
        self.query_number("SELECT count(*) FROM ended_generations") == Ok(0)
    }

    /// Returns "ok", or the damage that `SQLite` finds in the file.
    pub fn integrity(&self) -> Result<String> {
        self.0.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
    }

    /// Returns the first contradiction as an error.
    pub fn check_consistency(&self) -> std::result::Result<(), Violation> {
        for (kind, name, sql) in CONTRADICTIONS {
            let found: Vec<i64> = self.rows(sql)?;
            if found.iter().any(|number| *number != 0) {
                return Err(Violation(kind, format!("{name}: {found:?}")));
            }
        }
        Ok(())
    }

    fn query_number(&self, sql: &str) -> Result<i64> {
        self.0.query_row(sql, [], |row| row.get(0))
    }

    fn rows<T: FromSql>(&self, sql: &str) -> Result<Vec<T>> {
        self.0.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
    }
}
