//! The source or target database of a copy between engines. Rows are streamed by COPY, in one transaction, while no
//! server can commit anything.

use std::{error::Error as _, pin::Pin, time::Duration};

use bytes::Bytes;
use futures_util::{TryStreamExt as _, pin_mut};
use tokio_postgres::{
    Statement,
    binary_copy::{BinaryCopyInWriter, BinaryCopyOutStream},
    error::SqlState,
    types::Type,
};

use super::{
    Address,
    connection::{Connection, Connector, SERVERS_LOCK},
    error::{DbResult, Failure},
    migrations,
};
use crate::store::{
    StoreError,
    transfer::{Field, TABLES, Table, Value},
};

/// Creates a temporary table for parcels with their orders, because orders have a separate table here.
const STAGE: &str = "CREATE TEMP TABLE copied_parcels ON COMMIT DROP AS \
     SELECT p.*, o.order_json FROM parcels AS p, orders AS o LIMIT 0";

/// Removes timeouts: copying a table may take long, and a transaction is idle while it waits for the other database.
const NO_TIMEOUTS: &str = "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0";

/// A database with an open transaction.
pub(in crate::store) struct Database {
    db: Connection,
    name: String,
}

impl Database {
    /// Begins to read a database as it is at this moment.
    pub(in crate::store) async fn source(address: Address) -> Result<Self, StoreError> {
        let database = Self::connect(address).await?;
        let begin = async {
            migrations::check(&database.db).await?;
            // The lock comes before the first read, which determines the snapshot.
            database.lock_out_servers().await?;
            database.db.run("BEGIN ISOLATION LEVEL REPEATABLE READ").await
        };
        begin.await.map_err(|failure| failure.for_caller(&database.name))?;
        Ok(database)
    }

    /// Begins to fill an empty database.
    pub(in crate::store) async fn target(address: Address) -> Result<Self, StoreError> {
        let database = Self::connect(address).await?;
        let begin = async {
            let tables: Vec<_> = TABLES.iter().filter(|table| is_table(table)).collect();
            let names: Vec<_> = tables.iter().map(|table| table.name).collect();
            migrations::prepare_for_copy(&database.db, &names).await?;
            database.lock_out_servers().await?;
            database.db.run("BEGIN").await
        };
        begin.await.map_err(|failure| failure.for_caller(&database.name))?;
        Ok(database)
    }

    async fn connect(address: Address) -> Result<Self, StoreError> {
        let name = address.name();
        let connect = async {
            let mut db = Connector::copying(&address)?.connect().await?;
            db.set_answer_timeout(Duration::MAX);
            db.run(NO_TIMEOUTS).await?;
            Ok(db)
        };
        let db = connect.await.map_err(|failure: Failure| failure.for_caller(&name))?;
        Ok(Self { db, name })
    }

    /// Keeps servers and commands out until the connection ends, and waits for any that have just ended.
    async fn lock_out_servers(&self) -> DbResult<()> {
        let locked = self.db.execute("SELECT pg_advisory_lock($1)", &[&SERVERS_LOCK]).await;
        locked.map(drop).map_err(|failure| {
            if failure.code() != Some(&SqlState::LOCK_NOT_AVAILABLE) {
                return failure;
            }
            let reason = "servers or commands are connected to it: stop them first, since what they write \
                 would not be copied";
            Failure::Unsuitable(reason.to_owned())
        })
    }

    pub(in crate::store) fn name(&self) -> &str {
        &self.name
    }

    /// Passes each row of a table to `each`.
    pub(in crate::store) async fn read(
        &self,
        table: &Table,
        mut each: impl FnMut(Vec<Value>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let failed = |failure: Failure| failure.for_caller(&self.name);
        let (select, client) = (table.postgres_select(), self.db.client());
        let driver = |error| failed(Failure::Driver(error));
        let types = types(&client.prepare(&select).await.map_err(driver)?);
        let copy = format!("COPY ({select}) TO STDOUT (FORMAT binary)");
        let rows = BinaryCopyOutStream::new(client.copy_out(&copy).await.map_err(driver)?, &types);
        pin_mut!(rows);
        while let Some(row) = rows.try_next().await.map_err(driver)? {
            let values = (0..types.len()).map(|column| row.try_get(column));
            each(values.collect::<Result<_, _>>().map_err(driver)?)?;
        }
        Ok(())
    }

    pub(in crate::store) async fn writer(
        &self,
        table: &'static Table,
    ) -> Result<Writer<'_>, StoreError> {
        let begin = async {
            let client = self.db.client();
            if let Some(insert) = table.postgres_insert() {
                return Ok(Way::Insert(client.prepare(insert).await?));
            }
            let columns = table.columns.join(", ");
            let name = if has_orders(table) { "copied_parcels" } else { table.name };
            if has_orders(table) {
                client.batch_execute(STAGE).await?;
            }
            let columns_of = format!("SELECT {columns} FROM {name} LIMIT 0");
            let types = types(&client.prepare(&columns_of).await?);
            let copy = format!("COPY {name} ({columns}) FROM STDIN (FORMAT binary)");
            let sink = client.copy_in::<_, Bytes>(&copy).await?;
            Ok(Way::Copy(Box::pin(BinaryCopyInWriter::new(sink, &types))))
        };
        let way = begin.await.map_err(|error| self.not_copied(table, &error))?;
        Ok(Writer { database: self, table, way })
    }

    /// Makes the copied rows visible, and lets servers start on them.
    pub(in crate::store) async fn commit(self) -> Result<(), StoreError> {
        let commit = async {
            for table in TABLES.iter().filter(|table| has_sequence(table)) {
                self.db.run(&skip_ids(table.name)).await?;
            }
            migrations::finish_copy(&self.db).await?;
            self.db.run("COMMIT").await
        };
        commit.await.map_err(|failure: Failure| failure.for_caller(&self.name))
    }

    /// Collects statistics of the copied rows, because the planner assumes empty tables until autovacuum runs.
    pub(in crate::store) async fn analyse(address: Address) -> Result<(), StoreError> {
        let database = Self::connect(address).await?;
        let analysed = database.db.run("ANALYZE").await;
        analysed.map_err(|failure| failure.for_caller(&database.name))
    }

    fn not_copied(&self, table: &Table, error: &tokio_postgres::Error) -> StoreError {
        // PostgreSQL's details quote rows; its messages do not.
        let why = match (error.as_db_error(), error.source()) {
            (Some(refused), _) => refused.message().to_owned(),
            (None, Some(source)) => source.to_string(),
            (None, None) => error.to_string(),
        };
        let reason = format!("the table {}: {why}", table.name);
        StoreError::NotCopied { target: self.name.clone(), reason }
    }
}

#[cfg(test)]
impl Database {
    /// Returns the rows of a query with two text columns, for tests.
    pub(in crate::store) async fn pairs(&self, sql: &str) -> Vec<(String, String)> {
        let pair = |row: &_| Ok((super::connection::get(row, 0)?, super::connection::get(row, 1)?));
        self.db.each(sql, &[], pair).await.unwrap()
    }
}

/// A writer of rows into a table. If it is not finished, its rows are rolled back with the transaction.
pub(in crate::store) struct Writer<'a> {
    database: &'a Database,
    table: &'static Table,
    way: Way,
}

enum Way {
    Copy(Pin<Box<BinaryCopyInWriter>>),
    /// For the few rows whose stored form differs here.
    Insert(Statement),
}

impl Writer<'_> {
    pub(in crate::store) async fn write(&mut self, row: &[Value]) -> Result<(), StoreError> {
        let fields =
            row.iter().zip(self.table.columns).map(|(value, column)| Field { column, value });
        let fields: Vec<_> = fields.collect();
        let written = match &mut self.way {
            Way::Copy(writer) => writer.as_mut().write_raw(&fields).await,
            Way::Insert(insert) => {
                self.database.db.client().execute_raw(insert, &fields).await.map(drop)
            }
        };
        written.map_err(|error| self.database.not_copied(self.table, &error))
    }

    pub(in crate::store) async fn finish(self) -> Result<(), StoreError> {
        match self.way {
            Way::Copy(mut writer) => {
                let finish = async {
                    writer.as_mut().finish().await?;
                    if has_orders(self.table) {
                        self.database.db.client().batch_execute(&unstage(self.table)).await?;
                    }
                    Ok(())
                };
                finish.await.map_err(|error| self.database.not_copied(self.table, &error))
            }
            Way::Insert(_) => Ok(()),
        }
    }
}

fn types(statement: &Statement) -> Vec<Type> {
    statement.columns().iter().map(|column| column.type_().clone()).collect()
}

fn has_orders(table: &Table) -> bool {
    table.name == "parcels"
}

/// Returns the statements that move copied parcels and orders to their tables.
fn unstage(table: &Table) -> String {
    let columns = table.columns.iter().filter(|column| **column != "order_json");
    let columns = columns.copied().collect::<Vec<_>>().join(", ");
    format!(
        "INSERT INTO parcels ({columns}) SELECT {columns} FROM copied_parcels; \
         INSERT INTO orders (parcel, order_json) SELECT id, order_json FROM copied_parcels"
    )
}

/// Returns `false` for the numbers that PostgreSQL keeps in sequences.
fn is_table(table: &Table) -> bool {
    !table.name.starts_with("last_")
}

/// Returns `true` if PostgreSQL assigns ids when the table's rows are inserted; ids of parcels are drawn before.
fn has_sequence(table: &Table) -> bool {
    table.columns.first() == Some(&"id") && table.name != "parcels"
}

/// Returns the statement that prevents copied ids from being assigned again. A parcel or an event may name a manifest's
/// id after the manifest was deleted.
fn skip_ids(table: &str) -> String {
    let named = match table {
        "manifests" => {
            ", (SELECT max(manifest) FROM manifest_parcels), (SELECT max(manifest) FROM outbox)"
        }
        _ => "",
    };
    // The sequence of a partitioned table does not belong to its column.
    let sequence =
        format!("coalesce(pg_get_serial_sequence('{table}', 'id'), '{table}_ids')::regclass");
    let last = format!("greatest(0, (SELECT max(id) FROM {table}){named})");
    format!("SELECT setval({sequence}, {last} + 1, false)")
}
