//! Statements that take several rows of parameters. The columns of the rows are the first parameters. PostgreSQL, where
//! each statement is a round trip, runs one statement for all rows and gets each column as an array. `SQLite` has no
//! arrays and runs the statement for each row.

#[cfg(feature = "postgres")]
use super::sql::parameters;
use super::{
    sql::{Row, Sql, SqlResult, params},
    values::Value,
};

/// Returns rows of one column.
pub(super) fn column(numbers: &[i64]) -> Vec<Vec<Value>> {
    numbers.iter().map(|number| vec![Value::Integer(*number)]).collect()
}

impl Sql<'_> {
    /// Deletes a tenant's rows of a table, and returns their number.
    pub(super) async fn delete_tenant_rows(self, table: &str, tenant: i64) -> SqlResult<u64> {
        self.execute(&format!("DELETE FROM {table} WHERE tenant = $1"), params![tenant]).await
    }

    /// Runs a statement for these rows, and returns the number of rows written. `params` are the parameters after the
    /// rows' columns.
    pub(super) async fn execute_rows(
        self,
        sql: &str,
        rows: &[Vec<Value>],
        params: &[Value],
    ) -> SqlResult<u64> {
        let mut written = 0;
        match self {
            Self::Sqlite(_) => {
                let sql = self.in_dialect(sql);
                for row in rows {
                    written += self.execute(&sql, &[row.as_slice(), params].concat()).await?;
                }
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(_) if rows.is_empty() => {}
            #[cfg(feature = "postgres")]
            Self::Postgres(db) => {
                let columns = columns(rows);
                written = db.execute(&self.in_dialect(sql), &parameters(&columns, params)).await?;
            }
        }
        Ok(written)
    }

    /// Runs a statement for these rows like [`Sql::execute_rows`], and returns its rows, each read by `read`.
    pub(super) async fn query_rows<T>(
        self,
        sql: &str,
        rows: &[Vec<Value>],
        params: &[Value],
        mut read: impl FnMut(&Row<'_>) -> SqlResult<T>,
    ) -> SqlResult<Vec<T>> {
        let mut found = Vec::new();
        match self {
            Self::Sqlite(_) => {
                let sql = self.in_dialect(sql);
                for row in rows {
                    let params = [row.as_slice(), params].concat();
                    found.extend(self.query_map(&sql, &params, &mut read).await?);
                }
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(_) if rows.is_empty() => {}
            #[cfg(feature = "postgres")]
            Self::Postgres(db) => {
                let columns = columns(rows);
                for row in &db.all(&self.in_dialect(sql), &parameters(&columns, params)).await? {
                    found.push(read(&Row::Postgres(row))?);
                }
            }
        }
        Ok(found)
    }
}

/// Returns the columns of rows.
#[cfg(feature = "postgres")]
fn columns(rows: &[Vec<Value>]) -> Vec<Vec<&Value>> {
    let width = rows.first().map_or(0, Vec::len);
    (0..width).map(|column| rows.iter().filter_map(|row| row.get(column)).collect()).collect()
}
