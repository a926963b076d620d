//! Copies of a database from one engine to the other, for operators who outgrow a file, or return to one.
//!
//! The source is read in one transaction while no server may write to it. The target is new, and becomes visible as a
//! whole or not at all. Before that, each of its tables is read back, and its checksum is compared with the checksum of
//! the source's rows. `tables.rs` has the differences between the two schemas; `transfer.rs` in each engine's folder
//! opens and completes that engine's database. A few rows are in memory at a time.

pub(super) mod tables;

use std::{mem, path::Path, slice};

use futures_util::{TryStreamExt as _, pin_mut};
use sha2::{Digest as _, Sha256};
use tokio::task::LocalSet;

use self::tables::{Table, tables};
use super::{
    StoreError,
    postgres::{Address, error::Failure, transfer::Database},
    sql::{Row, Sql, SqlError, SqlResult, contains_nul},
    sqlite::transfer::{Draft, Source},
    values::Value,
};

/// Number of rows that are copied between two reports of progress.
const ROWS_PER_REPORT: u64 = 100_000;
/// Number of rows that are read before they are written.
const ROWS_PER_WRITE: usize = 640;

/// A table that was copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopiedTable {
    /// The name of the table.
    pub name: String,
    /// The sum of the source's rows.
    pub source: Sum,
    /// The sum of the target's rows.
    pub target: Sum,
}

/// A callback that receives the name of a table and the number of its rows copied so far, from time to time.
pub type Progress<'a> = &'a mut dyn FnMut(&str, u64);

/// Copies a file to an empty PostgreSQL database.
pub async fn from_file(
    file: &Path,
    target: Address,
    progress: Progress<'_>,
) -> Result<Vec<CopiedTable>, StoreError> {
    let copy = async {
        let source = Source::open(file)?;
        let target = Database::target(target).await?;
        let copied = copy(End::file(&source.db, file), End::database(&target), progress).await?;
        target.commit().await?;
        Ok(copied)
    };
    LocalSet::new().run_until(copy).await
}

/// Collects planner statistics for a copied PostgreSQL database.
pub async fn analyse(target: Address) -> Result<(), StoreError> {
    LocalSet::new().run_until(Database::analyse(target)).await
}

/// Copies a PostgreSQL database to a file that does not exist yet.
pub async fn to_file(
    source: Address,
    file: &Path,
    progress: Progress<'_>,
) -> Result<Vec<CopiedTable>, StoreError> {
    let copy = async {
        let target = Draft::begin(file)?;
        let source = Database::source(source).await?;
        let copied = copy(End::database(&source), End::file(&target.db, file), progress).await?;
        target.finish()?;
        Ok(copied)
    };
    LocalSet::new().run_until(copy).await
}

/// Copies all tables, and refuses a copy that differs from its source.
async fn copy(
    from: End<'_>,
    to: End<'_>,
    progress: Progress<'_>,
) -> Result<Vec<CopiedTable>, StoreError> {
    let tables = tables(from.db, to.db).await.map_err(|error| from.failed(error))?;
    let mut copied = Vec::with_capacity(tables.len());
    for table in &tables {
        let (mut source, mut rows) = (Sum::default(), Vec::new());
        let each = async |row: Vec<Value>| {
            source.add(&row);
            if source.rows.is_multiple_of(ROWS_PER_REPORT) {
                progress(&table.name, source.rows);
            }
            rows.push(row);
            if rows.len() < ROWS_PER_WRITE {
                return Ok(());
            }
            to.write(table, mem::take(&mut rows)).await
        };
        from.read(table, each).await?;
        to.write(table, rows).await?;
        copied.push(CopiedTable { name: table.name.clone(), source, target: Sum::default() });
    }
    for (table, CopiedTable { source, target, .. }) in tables.iter().zip(&mut copied) {
        let each = async |row: Vec<Value>| {
            target.add(&row);
            Ok(())
        };
        to.read(table, each).await?;
        if source != target {
            let reason = format!(
                "{} rows with the checksum {:016x} in the copy, and {} rows with the checksum {:016x} in the source; \
                 nothing of the copy was kept",
                target.rows, target.checksum, source.rows, source.checksum
            );
            return Err(to.refused(table, &format_args!(" has {reason}")));
        }
    }
    Ok(copied)
}

/// A database at one end of a copy, with an open transaction.
struct End<'a> {
    db: Sql<'a>,
    name: String,
}

impl<'a> End<'a> {
    fn file(db: &'a rusqlite::Connection, file: &Path) -> Self {
        Self { db: Sql::Sqlite(db), name: file.display().to_string() }
    }

    fn database(database: &'a Database) -> Self {
        Self { db: Sql::Postgres(&database.db), name: database.name.clone() }
    }

    fn failed(&self, error: SqlError) -> StoreError {
        match error {
            SqlError::Sqlite(error) => StoreError::from_sqlite(Path::new(&self.name), error),
            SqlError::Postgres(failure) => failure.into_store_error(&self.name),
        }
    }

    fn refused(&self, table: &Table, why: &dyn std::fmt::Display) -> StoreError {
        let reason = format!("the table {}{why}", table.name);
        StoreError::NotCopied { target: self.name.clone(), reason }
    }

    /// Passes each row of a table to `each`.
    async fn read(
        &self,
        table: &Table,
        mut each: impl AsyncFnMut(Vec<Value>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let select = self.db.in_dialect(&table.select()).into_owned();
        let values = |row: Row<'_>| {
            let values = (0..table.columns.len()).map(|column| row.get(column));
            values.collect::<SqlResult<Vec<Value>>>().map_err(|error| self.failed(error))
        };
        match self.db {
            Sql::Sqlite(db) => {
                let failed = |error: rusqlite::Error| self.failed(error.into());
                let mut statement = db.prepare(&select).map_err(failed)?;
                let mut rows = statement.raw_query();
                while let Some(row) = rows.next().map_err(failed)? {
                    each(values(Row::Sqlite(row))?).await?;
                }
            }
            Sql::Postgres(db) => {
                let failed = |failure: Failure| self.failed(failure.into());
                let rows = db.stream(&select).await.map_err(failed)?;
                pin_mut!(rows);
                while let Some(row) = rows.try_next().await.map_err(|error| failed(error.into()))? {
                    each(values(Row::Postgres(&row))?).await?;
                }
            }
        }
        Ok(())
    }

    async fn write(&self, table: &Table, rows: Vec<Vec<Value>>) -> Result<(), StoreError> {
        for row in &rows {
            let mut fields = table.columns.iter().zip(row);
            // A file could hold such a text, although no rule accepts it.
            if let Some((column, _)) =
                fields.find(|(_, value)| contains_nul(slice::from_ref(value)))
            {
                let why = format!(
                    ": the column {column} of a row holds the character U+0000, which PostgreSQL cannot store"
                );
                return Err(self.refused(table, &why));
            }
        }
        let written = table.insert(self.db, rows).await;
        written.map_err(|error| self.refused(table, &format_args!(": {error}")))
    }
}

/// The number of rows and the sum of their hashes, which is the same for the same rows in any order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    /// The number of its rows.
    pub rows: u64,
    /// The checksum of their contents, which both databases compute alike.
    pub checksum: u64,
}

impl Sum {
    fn add(&mut self, row: &[Value]) {
        let mut hash = Sha256::new();
        for value in row {
            let number;
            let (kind, bytes): (u8, &[u8]) = match value {
                Value::Null => (0, &[]),
                Value::Integer(value) => {
                    number = value.to_be_bytes();
                    (1, &number)
                }
                Value::Text(text) => (2, text.as_bytes()),
                Value::Bytes(bytes) => (3, bytes),
            };
            // With kind and length, no two rows have the same bytes.
            hash.update([kind]);
            hash.update(bytes.len().to_be_bytes());
            hash.update(bytes);
        }
        let hash: [u8; 32] = hash.finalize().into();
        // 64 bits suffice against accidental errors: one in 2^64 would pass.
        let start = hash.first_chunk().copied().unwrap_or_default();
        self.rows += 1;
        self.checksum = self.checksum.wrapping_add(u64::from_be_bytes(start));
    }
}
