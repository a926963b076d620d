//! Settings of the database itself, in its table `meta`.

use super::{
    columns::Column,
    sql::{Sql, SqlResult, params},
};

/// Name of the secret that a database keeps.
pub(super) const SECRET: &str = "secret";

/// Returns the value of a setting.
pub(super) async fn get<T: Column>(db: Sql<'_>, name: &str) -> SqlResult<Option<T>> {
    db.first("SELECT value FROM meta WHERE name = $1", params![name], |row| row.get(0)).await
}

/// Stores a setting, unless the database has it already.
pub(super) async fn add(db: Sql<'_>, name: &str, value: &[u8]) -> SqlResult<()> {
    let sql = "INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    db.execute(sql, params![name, value]).await.map(drop)
}

/// Returns the database's secret. If the database has none, it becomes `fresh_secret`.
pub(super) async fn secret(db: Sql<'_>, fresh_secret: [u8; 32]) -> SqlResult<[u8; 32]> {
    add(db, SECRET, &fresh_secret).await?;
    db.require(get(db, SECRET).await?)
}
