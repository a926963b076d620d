//! Admin tokens in the database.

use rusqlite::{OptionalExtension, Row, params};

use super::{Store, StoreError};
use crate::{
    clock::Millis,
    domain::tokens::{NewToken, TokenRecord},
};

/// The columns of a [`TokenRecord`] in the order in which [`read`] takes them.
macro_rules! select_tokens {
    ($rest:literal) => {
        concat!("SELECT public_id, name, last4, created_at, revoked_at FROM admin_tokens ", $rest)
    };
}

impl Store {
    /// Keeps a new admin token.
    pub async fn insert_token(&self, token: NewToken) -> Result<TokenRecord, StoreError> {
        self.call(move |db| {
            db.execute(
                "INSERT INTO admin_tokens (public_id, name, hash, last4, created_at) \
                 VALUES (?1, ?2, ?3, ?4, ?5)",
                params![token.id, token.name, token.hash, token.last4, token.created_at.0],
            )?;
            db.query_row(select_tokens!("WHERE public_id = ?1"), [&token.id], read)
        })
        .await
    }

    /// The admin token with a hash, revoked or not.
    pub async fn token_by_hash(&self, hash: &[u8; 32]) -> Result<Option<TokenRecord>, StoreError> {
        self.read(|db| {
            let mut find = db.prepare_cached(select_tokens!("WHERE hash = ?1"))?;
            find.query_row([hash], read).optional()
        })
    }

    /// Every admin token, oldest first, revoked or not.
    pub async fn tokens(&self) -> Result<Vec<TokenRecord>, StoreError> {
        self.read(|db| db.prepare(select_tokens!("ORDER BY id"))?.query_map([], read)?.collect())
    }

    /// Revokes an admin token; a second time changes nothing. None if there is no such token.
    pub async fn revoke_token(
        &self,
        id: &str,
        now: Millis,
    ) -> Result<Option<TokenRecord>, StoreError> {
        let id = id.to_owned();
        self.call(move |db| {
            db.execute(
                "UPDATE admin_tokens SET revoked_at = ?2 WHERE public_id = ?1 AND revoked_at IS NULL",
                params![id, now.0],
            )?;
            db.query_row(select_tokens!("WHERE public_id = ?1"), [&id], read).optional()
        })
        .await
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<TokenRecord> {
    Ok(TokenRecord {
        id: row.get(0)?,
        name: row.get(1)?,
        last4: row.get(2)?,
        created_at: Millis(row.get(3)?),
        revoked_at: row.get::<_, Option<i64>>(4)?.map(Millis),
    })
}
