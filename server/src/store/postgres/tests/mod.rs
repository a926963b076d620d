//! Tests of this engine, and the PostgreSQL that every test of it runs on.

pub(in crate::store) mod cluster;
mod servers;

impl super::Store {
    /// What an operator would look up.
    pub(in crate::store) async fn pairs(&self, sql: &'static str) -> Vec<(String, String)> {
        let pair = |row: &_| Ok((super::connection::get(row, 0)?, super::connection::get(row, 1)?));
        self.read(async move |db| db.each(sql, &[], pair).await).await.unwrap()
    }
}
