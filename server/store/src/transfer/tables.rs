//! The tables that are copied, and the differences between the two schemas. A column that both engines have is copied,
//! unless [`NOT_COPIED`] names it, so most new tables and columns need nothing here. A test walks both schemas, so that
//! what only one engine has is not forgotten.
//!
//! A row of a table is read as a list of values in the order of `columns`, whichever engine it comes from, so that the
//! same row has the same checksum on both sides.
//!
//! - *Resets.* Generations that have ended are deleted already for every caller, so they are left behind.
//! - *Leases.* A server that was killed leaves leases behind. Their events are due when the lease would have ended.
//! - *Ids* stay as they are. Tracking numbers, tenants and histories are made of them.

use super::super::{
    generations::is_current,
    sql::{Sql, SqlResult},
    values::Value,
};

/// Tables and columns of both engines that are not copied. Nothing of an ended generation is copied, no server holds a
/// lease on an event or e-mail, and servers rebuild the index of the search.
const NOT_COPIED: [&str; 6] =
    ["ended_generations", "mails.lease", "outbox.leased", "term_pieces", "term_runs", "term_sweep"];

/// Statement that returns the names of all tables with their columns and the columns' types.
const COLUMNS: &str = "{SELECT relname::text, attname::text, format_type(atttypid, NULL) \
     FROM pg_class AS t JOIN pg_attribute ON attrelid = t.oid WHERE relkind IN ('r', 'p') AND NOT relispartition AND pg_table_is_visible(t.oid) \
     AND relnamespace <> 'pg_catalog'::regnamespace AND attnum > 0 AND NOT attisdropped ORDER BY relname, attnum|\
     SELECT t.name, c.name, c.type FROM sqlite_schema AS t JOIN pragma_table_info(t.name) AS c \
     WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'}";

/// A condition that holds for rows of current generations.
const IS_PRESENT: &str = is_current!("tenant");

/// A table of both engines.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) columns: Vec<String>,
    /// The types of its own columns in PostgreSQL.
    types: Vec<String>,
    /// The source of the rows: the table without the rows of ended generations.
    from: String,
    /// The statement that writes a row, if it is not inserted into a table of this name.
    write: Option<String>,
}

/// Returns the tables in the order in which they are copied.
pub(crate) async fn tables(from: Sql<'_>, to: Sql<'_>) -> SqlResult<Vec<Table>> {
    let (postgres, sqlite) = if from.is_postgres() { (from, to) } else { (to, from) };
    let (postgres, sqlite) = (columns(postgres).await?, columns(sqlite).await?);
    let mut tables: Vec<(String, Vec<String>, Vec<String>)> = Vec::new();
    for [table, column, kind] in postgres {
        let is_own = |[other, own, _]: &[String; 3]| *other == table && *own == column;
        if !sqlite.iter().any(is_own)
            || NOT_COPIED.contains(&&*table)
            || NOT_COPIED.contains(&&*format!("{table}.{column}"))
        {
            continue;
        }
        match tables.last_mut() {
            Some((name, columns, types)) if *name == table => {
                columns.push(column);
                types.push(kind);
            }
            _ => tables.push((table, vec![column], vec![kind])),
        }
    }
    // SQLite's triggers write the next due time of the events to the endpoints.
    tables.sort_by_key(|(name, ..)| name == "outbox");
    let tables =
        tables.into_iter().map(|(name, columns, types)| Table::common(name, columns, types));
    Ok(tables.chain(engine_specific_tables()).collect())
}

/// Returns the tables of a database, each with its columns and their types.
pub(crate) async fn columns(db: Sql<'_>) -> SqlResult<Vec<[String; 3]>> {
    db.query_map(COLUMNS, &[], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?])).await
}

/// Returns the data for which the engines have different tables. The numbers are never reused.
fn engine_specific_tables() -> [Table; 4] {
    [
        // In a file it is a column of the endpoints.
        Table::new(
            "webhook_successes",
            &["tenant", "at"],
            "{webhook_successes WHERE tenant IN (SELECT tenant FROM webhook_endpoints)|\
             (SELECT tenant, last_success AS at FROM webhook_endpoints) AS e WHERE at IS NOT NULL}",
            "{INSERT INTO webhook_successes (tenant, at) VALUES ($1, $2)|\
             UPDATE webhook_endpoints SET last_success = $2 WHERE tenant = $1}",
        ),
        Table::last(
            ("last_parcel_row", "id"),
            "{(SELECT greatest(last_value + is_called::integer - 1, (SELECT max(id) FROM parcels)) AS id \
             FROM parcel_rows)|\
             (SELECT max(highest, coalesce((SELECT max(id) FROM parcels), 0)) AS id FROM deleted_parcels)} AS l",
            ("parcel_rows", "deleted_parcels SET highest"),
        ),
        Table::last(
            ("last_manifest", "id"),
            "{(SELECT greatest(last_value + is_called::integer - 1, (SELECT max(id) FROM manifests)) AS id \
             FROM manifests_id_seq) AS l|last_manifest}",
            ("manifests_id_seq", "last_manifest SET id"),
        ),
        Table::last(
            ("last_lease", "last_value"),
            "{lease_numbers|(SELECT max(last, 1) AS last_value FROM leases) AS l}",
            ("lease_numbers", "leases SET last"),
        ),
    ]
}

impl Table {
    /// Returns a table that both engines have.
    fn common(name: String, mut columns: Vec<String>, types: Vec<String>) -> Self {
        if name == "parcels" {
            // The last one, because PostgreSQL has it in another table.
            columns.push("order_json".to_owned());
        }
        let from = match &*name {
            // The secret. PostgreSQL's other rows are about servers.
            "meta" => "meta WHERE name = 'secret'".to_owned(),
            "parcels" => format!("parcels {{JOIN orders ON parcel = id|}} WHERE {IS_PRESENT}"),
            "idempotency" | "manifests" | "outbox" => format!("{name} WHERE {IS_PRESENT}"),
            // PostgreSQL's are summed up here; counts that are 0 await a purge.
            "parcel_counts" => format!(
                "{{(SELECT tenant, day, state, country, sum(total)::bigint AS total FROM all_counts \
                 GROUP BY tenant, day, state, country) AS c|parcel_counts}} WHERE total <> 0 AND {IS_PRESENT}"
            ),
            "webhook_attempts" => {
                format!("{name} WHERE outbox IN (SELECT id FROM outbox WHERE {IS_PRESENT})")
            }
            _ if columns.iter().any(|column| column == "parcel") => {
                format!("{name} WHERE parcel IN (SELECT id FROM parcels WHERE {IS_PRESENT})")
            }
            _ => name.clone(),
        };
        Self { name, columns, types, from, write: None }
    }

    fn new(name: &str, columns: &[&str], from: &str, write: &str) -> Self {
        let columns = columns.iter().map(|column| (*column).to_owned()).collect();
        let (name, from, write) = (name.to_owned(), from.to_owned(), Some(write.to_owned()));
        Self { name, columns, types: Vec::new(), from, write }
    }

    /// Returns the last number of a sequence, which a file has in a column.
    fn last((name, column): (&str, &str), from: &str, (sequence, stored): (&str, &str)) -> Self {
        let write = format!(
            "{{SELECT setval('{sequence}', greatest($1::bigint, 1), $1 > 0)|UPDATE {stored} = $1}}"
        );
        Self::new(name, &[column], from, &write)
    }

    /// Returns the statement that reads the rows. On PostgreSQL it is ordered: a file grows from its lowest key on, and
    /// becomes a third smaller that way.
    pub(crate) fn select(&self) -> String {
        let column = |column| match (&*self.name, column) {
            // Leased events are due when the lease ends.
            ("outbox", "due") => {
                "{CASE WHEN lease_until > due THEN lease_until ELSE due END AS due|due}"
            }
            _ => column,
        };
        let columns: Vec<&str> = self.columns.iter().map(|name| column(name)).collect();
        let order = match &*self.name {
            // `SQLite` purges records from its lowest id on, and so needs them in the order in which they die.
            "idempotency" => "first_seen".to_owned(),
            _ => self.columns.iter().take(2).cloned().collect::<Vec<_>>().join(", "),
        };
        format!("SELECT {} FROM {} {{ORDER BY {order}|}}", columns.join(", "), self.from)
    }

    /// Inserts rows.
    pub(crate) async fn insert(&self, db: Sql<'_>, mut rows: Vec<Vec<Value>>) -> SqlResult<()> {
        if let Some(write) = &self.write {
            for row in &rows {
                db.execute(write, row).await?;
            }
            return Ok(());
        }
        let mut columns = self.columns.join(", ");
        if db.is_postgres() && self.name == "parcels" {
            let order = |row: &mut Vec<Value>| Some(vec![row.first()?.clone(), row.pop()?]);
            let orders: Vec<_> = rows.iter_mut().filter_map(order).collect();
            let insert = "INSERT INTO orders (parcel, order_json) \
                 SELECT * FROM unnest($1::bigint[], $2::text[])";
            db.execute_rows(insert, &orders, &[]).await?;
            columns.truncate(columns.len() - ", order_json".len());
        }
        let arrays = (1..).zip(&self.types).map(|(place, kind)| format!("${place}::{kind}[]"));
        let values = (1..=self.columns.len()).map(|place| format!("${place}"));
        let insert = format!(
            "INSERT INTO {} ({columns}) {{OVERRIDING SYSTEM VALUE SELECT * FROM unnest({})|VALUES ({})}}",
            self.name,
            arrays.collect::<Vec<_>>().join(", "),
            values.collect::<Vec<_>>().join(", ")
        );
        db.execute_rows(&insert, &rows, &[]).await.map(drop)
    }
}
