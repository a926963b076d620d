//! The contents of a database file: rows that must not be lost, and contradictions between rows.

use std::{path::Path, sync::Arc};

use rusqlite::{Connection, OpenFlags};

use crate::disk::Facts;

/// The rows that no crash may remove once a request was acknowledged. A reset removes those of a sandbox together.
const OF_THE_SANDBOX: [&str; 7] = [
    "SELECT 'parcel ' || hex(public_id) || ' ' || number FROM present_parcels",
    "SELECT 'history of ' || number || ': ' || sequence || ' ' || e.state || ' ' || at \
     FROM events e JOIN present_parcels p ON p.id = e.parcel",
    "SELECT 'reprint of ' || number FROM present_parcels WHERE label_version > 1",
    "SELECT 'manifest ' || awb || ' ' || hex(public_id) FROM present_manifests",
    "SELECT 'under ' || m.manifest || ': ' || p.number FROM manifest_parcels m \
     JOIN present_parcels p ON p.id = m.parcel",
    "SELECT 'scan ' || event_id || ' of ' || p.number FROM carrier_events e \
     JOIN present_parcels p ON p.id = e.parcel",
    "SELECT 'delivered ' || hex(event_id) FROM present_outbox WHERE state = 2",
];
const OF_ALL: [&str; 2] = [
    "SELECT 'key ' || public_id FROM api_keys UNION ALL SELECT 'key ' || public_id FROM carrier_keys",
    "SELECT 'endpoint of ' || tenant FROM webhook_endpoints",
];

/// The contradictions; each query counts the rows that have one.
const CONTRADICTIONS: [(&str, &str); 13] = [
    (
        "two parcels have one number",
        "SELECT count(*) - count(DISTINCT environment || upper(number)) FROM present_parcels",
    ),
    (
        "a parcel has no record of its key",
        "SELECT count(*) FROM (SELECT number FROM present_parcels EXCEPT \
         SELECT json_extract(CAST(body AS TEXT), '$.parcel.trackingNumber') FROM present_idempotency)",
    ),
    (
        "a record of a key has no parcel",
        "SELECT count(*) FROM (SELECT json_extract(CAST(body AS TEXT), '$.parcel.trackingNumber') AS n \
         FROM present_idempotency WHERE n IS NOT NULL EXCEPT SELECT number FROM present_parcels)",
    ),
    ("two records have one key", "SELECT count(*) - count(DISTINCT key) FROM present_idempotency"),
    (
        "a history has a gap",
        "SELECT count(*) FROM present_parcels p WHERE last_sequence <> \
         2 + (SELECT count(*) FROM events WHERE parcel = p.id AND sequence BETWEEN 3 AND p.last_sequence)",
    ),
    (
        "a state is not the last of its history",
        "SELECT count(*) FROM present_parcels p WHERE state <> coalesce( \
         (SELECT state FROM events WHERE parcel = p.id ORDER BY sequence DESC LIMIT 1), 2)",
    ),
    (
        "an event of a history is of no parcel",
        "SELECT count(*) FROM events WHERE parcel NOT IN (SELECT id FROM parcels)",
    ),
    // A parcel's second event is implied by its row; each later one is a change of its state.
    (
        "the outbox lacks an event of a history",
        "SELECT count(*) FROM (SELECT id, 2 FROM present_parcels UNION ALL \
         SELECT parcel, sequence FROM events JOIN present_parcels p ON p.id = parcel EXCEPT \
         SELECT parcel, sequence FROM present_outbox WHERE kind = 0)",
    ),
    (
        "the outbox has an event that no history has",
        "SELECT count(*) FROM (SELECT parcel, sequence FROM present_outbox WHERE kind = 0 EXCEPT \
         SELECT id, 2 FROM present_parcels EXCEPT SELECT parcel, sequence FROM events)",
    ),
    (
        "the outbox has an event twice",
        "SELECT count(*) - count(DISTINCT kind || ' ' || coalesce(parcel, '') || ' ' || \
         coalesce(manifest, '') || ' ' || coalesce(sequence, '')) FROM present_outbox",
    ),
    (
        "new parcels and manifests are not those of the outbox",
        "SELECT abs((SELECT count(*) FROM present_outbox WHERE kind = 1) - (SELECT count(*) FROM present_parcels)) \
         + abs((SELECT count(*) FROM present_outbox WHERE kind = 3) - (SELECT count(*) FROM present_manifests))",
    ),
    (
        "parcels are counted wrongly",
        "SELECT count(*) FROM (SELECT tenant, state, country, count(*) AS n FROM present_parcels GROUP BY 1, 2, 3 \
         EXCEPT SELECT tenant, state, country, total FROM present_parcel_totals) \
         UNION ALL SELECT count(*) FROM (SELECT tenant, state, country, total FROM present_parcel_totals \
         WHERE total <> 0 EXCEPT SELECT tenant, state, country, count(*) FROM present_parcels GROUP BY 1, 2, 3)",
    ),
    (
        "the outbox is counted wrongly",
        "SELECT (SELECT count(*) FROM present_outbox WHERE state IN (0, 1, 4)) \
         - (SELECT coalesce(sum(events), 0) FROM present_outbox_counts)",
    ),
];

/// A read-only connection to a file that the store has open.
pub struct Reader(Connection);

impl Reader {
    pub fn open(file: &Path) -> Result<Self, String> {
        let open = || {
            let db = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
            // Rows that belong to a generation which a reset has not ended.
            for table in
                ["parcels", "manifests", "idempotency", "outbox", "parcel_totals", "outbox_counts"]
            {
                db.execute_batch(&format!(
                    "CREATE TEMP VIEW present_{table} AS SELECT * FROM main.{table} \
                     WHERE tenant NOT IN (SELECT number FROM main.ended_generations)"
                ))?;
            }
            Ok(Self(db))
        };
        open().map_err(|error: rusqlite::Error| error.to_string())
    }

    /// Returns the rows that must not be lost.
    pub fn facts(&self) -> Result<Facts, String> {
        self.lines(OF_ALL.iter().chain(&OF_THE_SANDBOX))
    }

    /// Returns those of them that a reset leaves.
    pub fn facts_of_all(&self) -> Result<Facts, String> {
        self.lines(OF_ALL.iter())
    }

    pub fn parcels(&self) -> Result<usize, String> {
        self.number("SELECT count(*) FROM present_parcels").map(|number| number as usize)
    }

    pub fn key_chunks(&self) -> Result<i64, String> {
        self.number("SELECT count(*) FROM key_chunks")
    }

    pub fn is_reset(&self) -> bool {
        self.number("SELECT count(*) FROM ended_generations") == Ok(0)
    }

    /// Returns the damage that `SQLite` finds in the file as an error.
    pub fn integrity(&self) -> Result<(), String> {
        let found =
            self.0.query_row("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0));
        match found {
            Ok(found) if found == "ok" => Ok(()),
            Ok(found) => Err(found),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Returns the first contradiction.
    pub fn contradiction(&self) -> Result<Option<String>, String> {
        for (name, sql) in CONTRADICTIONS {
            let found = self.numbers(sql)?;
            if found.iter().any(|number| *number != 0) {
                return Ok(Some(format!("{name}: {found:?}")));
            }
        }
        Ok(None)
    }

    fn lines<'s>(&self, queries: impl Iterator<Item = &'s &'s str>) -> Result<Facts, String> {
        let mut facts = Facts::new();
        for sql in queries {
            let mut find = self.0.prepare(sql).map_err(|error| error.to_string())?;
            let rows = find.query_map([], |row| row.get::<_, String>(0));
            let rows = rows.and_then(Iterator::collect::<Result<Vec<_>, _>>);
            facts.extend(rows.map_err(|error| error.to_string())?);
        }
        Ok(facts)
    }

    fn number(&self, sql: &str) -> Result<i64, String> {
        self.numbers(sql).map(|numbers| numbers.first().copied().unwrap_or(0))
    }

    fn numbers(&self, sql: &str) -> Result<Vec<i64>, String> {
        let mut find = self.0.prepare(sql).map_err(|error| error.to_string())?;
        let rows = find.query_map([], |row| row.get(0)).and_then(Iterator::collect);
        rows.map_err(|error| error.to_string())
    }
}

/// Reads the facts of a file that the store has open.
pub fn read(file: &Path) -> Arc<Facts> {
    Arc::new(Reader::open(file).and_then(|reader| reader.facts()).unwrap_or_default())
}
