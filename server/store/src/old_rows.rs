//! The old rows of a table, which are deleted page by page.

/// The statements that delete a page of a table's old rows. `SQLite` needs others before it to delete what belongs to
/// the rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct OldRows {
    pub(super) sqlite: &'static [&'static str],
    #[cfg(feature = "postgres")]
    pub(super) postgres: &'static str,
}

/// Defines the old rows of a table by its key and its column with the time. Conditions may limit them: PostgreSQL's and
/// `SQLite`'s, each with ` AND ` at its end.
macro_rules! old_rows {
    ($table:literal, $key:literal, $time:literal) => {
        $crate::old_rows::old_rows!($table, $key, $time, "", "")
    };
    ($table:literal, $key:literal, $time:literal, $postgres:expr, $sqlite:expr) => {
        $crate::old_rows::OldRows {
            sqlite: &[concat!(
                "DELETE FROM ",
                $table,
                " WHERE (",
                $key,
                ") IN (SELECT ",
                $key,
                " FROM ",
                $table,
                " WHERE ",
                $sqlite,
                $time,
                " <= ?1 LIMIT ?2)"
            )],
            #[cfg(feature = "postgres")]
            postgres: $crate::postgres::delete_old!(
                $table,
                "ctid",
                concat!($table, " WHERE ", $postgres),
                $time
            ),
        }
    };
}
pub(super) use old_rows;
