//! Copies of a database from one engine to the other, for operators who outgrow a file, or return to one.
//!
//! The source is read in one transaction while no server may write to it. The target is new, and becomes visible as a
//! whole or not at all. Before that, each of its tables is read back, and its checksum is compared with the checksum of
//! the source's rows. `tables.rs` has the differences between the two schemas; `transfer.rs` in each engine's folder
//! runs that engine's statements. One row is in memory at a time.

mod tables;

use std::path::Path;

use tokio::task::LocalSet;

pub(super) use self::tables::{TABLES, Table};
pub(crate) use super::values::Sum;
pub(super) use super::values::{Field, Value};
use super::{
    StoreError,
    postgres::{Address, transfer::Database},
    sqlite::transfer::{Draft, Source},
};

/// Number of rows that are copied between two reports of progress.
const ROWS_PER_REPORT: u64 = 100_000;

/// A table that was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CopiedTable {
    pub(crate) name: &'static str,
    /// The sum of the source's rows.
    pub(crate) source: Sum,
    /// The sum of the target's rows.
    pub(crate) target: Sum,
}

/// A callback that receives the name of a table and the number of its rows copied so far, from time to time.
pub(crate) type Progress<'a> = &'a mut dyn FnMut(&'static str, u64);

/// Copies a file to an empty PostgreSQL database.
pub(crate) async fn from_file(
    file: &Path,
    target: Address,
    progress: Progress<'_>,
) -> Result<Vec<CopiedTable>, StoreError> {
    let copy = async {
        let source = Source::open(file)?;
        let target = Database::target(target).await?;
        let mut copied = Vec::with_capacity(TABLES.len());
        for table in TABLES {
            let mut sum = Counted::new(table, &mut *progress);
            let mut rows = source.select(table)?;
            let mut rows = rows.rows()?;
            let mut writer = target.writer(table).await?;
            while let Some(row) = rows.next()? {
                sum.add(&row);
                writer.write(&row).await?;
            }
            writer.finish().await?;
            copied.push(CopiedTable { name: table.name, source: sum.sum, target: Sum::default() });
        }
        for (table, copied) in TABLES.iter().zip(&mut copied) {
            let sum = |row: Vec<Value>| {
                copied.target.add(&row);
                Ok(())
            };
            target.read(table, sum).await?;
        }
        check(&copied, target.name())?;
        target.commit().await?;
        Ok(copied)
    };
    LocalSet::new().run_until(copy).await
}

/// Collects planner statistics for a copied PostgreSQL database.
pub(crate) async fn analyse(target: Address) -> Result<(), StoreError> {
    LocalSet::new().run_until(Database::analyse(target)).await
}

/// Copies a PostgreSQL database to a file that does not exist yet.
pub(crate) async fn to_file(
    source: Address,
    file: &Path,
    progress: Progress<'_>,
) -> Result<Vec<CopiedTable>, StoreError> {
    let copy = async {
        let target = Draft::begin(file)?;
        let source = Database::source(source).await?;
        let mut copied = Vec::with_capacity(TABLES.len());
        for table in TABLES {
            let mut sum = Counted::new(table, &mut *progress);
            let mut writer = target.writer(table)?;
            let each = |row: Vec<Value>| {
                sum.add(&row);
                writer.write(&row)
            };
            source.read(table, each).await?;
            copied.push(CopiedTable { name: table.name, source: sum.sum, target: Sum::default() });
        }
        for (table, copied) in TABLES.iter().zip(&mut copied) {
            let mut rows = target.select(table)?;
            let mut rows = rows.rows()?;
            while let Some(row) = rows.next()? {
                copied.target.add(&row);
            }
        }
        check(&copied, &file.display().to_string())?;
        target.finish()?;
        Ok(copied)
    };
    LocalSet::new().run_until(copy).await
}

/// Refuses a copy that differs from its source.
fn check(copied: &[CopiedTable], target: &str) -> Result<(), StoreError> {
    let Some(table) = copied.iter().find(|table| table.source != table.target) else {
        return Ok(());
    };
    let CopiedTable { name, source, target: found } = table;
    let reason = format!(
        "the table {name} has {} rows with the checksum {:016x} in the copy, and {} rows with the checksum \
         {:016x} in the source; nothing of the copy was kept",
        found.rows, found.checksum, source.rows, source.checksum
    );
    Err(StoreError::NotCopied { target: target.to_owned(), reason })
}

/// A sum that reports its progress.
struct Counted<'a> {
    table: &'static str,
    sum: Sum,
    progress: Progress<'a>,
}

impl<'a> Counted<'a> {
    fn new(table: &Table, progress: Progress<'a>) -> Self {
        Self { table: table.name, sum: Sum::default(), progress }
    }

    fn add(&mut self, row: &[Value]) {
        self.sum.add(row);
        if self.sum.rows.is_multiple_of(ROWS_PER_REPORT) {
            (self.progress)(self.table, self.sum.rows);
        }
    }
}
