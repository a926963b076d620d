//! Who may sign in to the dashboard, and who has.

use rusqlite::{Connection, OptionalExtension, params};

use super::{Store, StoreError, audit};
use crate::{
    clock::Millis,
    domain::{
        AccountRowId,
        audit::{AuditAction, AuditedChange, Author},
        session::{FLASH_LIFETIME, Login, SealedFlash, Session},
    },
};

impl Store {
    /// The account with a name and its password's hash; none when it has no password.
    pub async fn login(&self, account: &str) -> Result<Option<Login>, StoreError> {
        self.read(|db| {
            let mut find = db.prepare_cached(
                "SELECT a.id, p.hash FROM accounts a \
                 JOIN dashboard_passwords p ON p.account = a.id WHERE a.name = ?1",
            )?;
            let read = |row: &rusqlite::Row<'_>| {
                Ok(Login { account: AccountRowId(row.get(0)?), password: row.get(1)? })
            };
            find.query_row([account], read).optional()
        })
    }

    /// Gives an account a password; its sessions end.
    pub async fn set_password(
        &self,
        account: AccountRowId,
        hash: String,
        now: Millis,
        by: &Author,
    ) -> Result<(), StoreError> {
        let by = by.clone();
        self.call(move |db| {
            let change = AuditedChange::of_account(account, AuditAction::PasswordSet);
            audit::record(db, &by, &change)?;
            db.execute(
                "INSERT OR REPLACE INTO dashboard_passwords (account, hash, changed_at) \
                 VALUES (?1, ?2, ?3)",
                params![account.0, hash, now.0],
            )?;
            db.execute("DELETE FROM dashboard_sessions WHERE account = ?1", [account.0]).map(drop)
        })
        .await
    }

    /// Begins a session in the place of the one before, unless the password has changed since it
    /// was checked; answers whether it has begun.
    pub async fn begin_session(
        &self,
        login: Login,
        session: ([u8; 32], Millis),
        before: Option<[u8; 32]>,
    ) -> Result<bool, StoreError> {
        self.call(move |db| {
            if let Some(before) = before {
                db.execute("DELETE FROM dashboard_sessions WHERE hash = ?1", [before])?;
            }
            let (hash, ends_at) = session;
            let begun = db.execute(
                "INSERT INTO dashboard_sessions (hash, account, ends_at) \
                 SELECT ?1, account, ?2 FROM dashboard_passwords WHERE account = ?3 AND hash = ?4",
                params![hash, ends_at.0, login.account.0, login.password],
            )?;
            Ok(begun == 1)
        })
        .await
    }

    /// The session with a hash, over or not.
    pub async fn session(&self, hash: &[u8; 32]) -> Result<Option<Session>, StoreError> {
        self.read(|db| find(db, hash))
    }

    /// Ends a session, with its flashes.
    pub async fn end_session(&self, hash: [u8; 32]) -> Result<(), StoreError> {
        self.call(move |db| {
            db.execute("DELETE FROM dashboard_flashes WHERE session = ?1", [hash])?;
            db.execute("DELETE FROM dashboard_sessions WHERE hash = ?1", [hash]).map(drop)
        })
        .await
    }

    /// Keeps a sealed flash for a session's page.
    pub async fn leave_flash(
        &self,
        session: [u8; 32],
        page: &'static str,
        flash: SealedFlash,
    ) -> Result<(), StoreError> {
        self.call(move |db| {
            db.execute(
                "INSERT INTO dashboard_flashes (session, page, left_at, sealed) \
                 VALUES (?1, ?2, ?3, ?4)",
                params![session, page, flash.left_at.0, flash.sealed],
            )
            .map(drop)
        })
        .await
    }

    /// Takes the flashes of a session's page, oldest first: no one else gets them.
    pub async fn take_flashes(
        &self,
        session: [u8; 32],
        page: &'static str,
    ) -> Result<Vec<SealedFlash>, StoreError> {
        // Most pages have none, and a look costs no write.
        let is_there = self.read(|db| {
            let sql =
                "SELECT EXISTS (SELECT 1 FROM dashboard_flashes WHERE session = ?1 AND page = ?2)";
            db.prepare_cached(sql)?.query_row(params![session, page], |row| row.get(0))
        });
        if !is_there? {
            return Ok(Vec::new());
        }
        self.call(move |db| {
            let sql = "DELETE FROM dashboard_flashes WHERE session = ?1 AND page = ?2 \
                 RETURNING id, left_at, sealed";
            let mut take = db.prepare_cached(sql)?;
            let rows = take.query_map(params![session, page], |row| {
                Ok((row.get(0)?, SealedFlash { left_at: Millis(row.get(1)?), sealed: row.get(2)? }))
            })?;
            let mut taken: Vec<(i64, _)> = rows.collect::<rusqlite::Result<_>>()?;
            taken.sort_unstable_by_key(|(id, _)| *id);
            Ok(taken.into_iter().map(|(_, flash)| flash).collect())
        })
        .await
    }

    /// Forgets the sessions that are over.
    pub async fn purge_sessions(&self, now: Millis) -> Result<(), StoreError> {
        let ended = self.in_pages(move |db, most| {
            db.prepare_cached(
                "DELETE FROM dashboard_sessions WHERE hash IN \
                 (SELECT hash FROM dashboard_sessions WHERE ends_at <= ?1 LIMIT ?2)",
            )?
            .execute([now.0, most])
        });
        ended.await.map(drop)
    }

    /// Forgets the flashes that were not looked at.
    pub async fn purge_flashes(&self, now: Millis) -> Result<(), StoreError> {
        let unseen = self.in_pages(move |db, most| {
            db.prepare_cached(
                "DELETE FROM dashboard_flashes WHERE id IN \
                 (SELECT id FROM dashboard_flashes WHERE left_at <= ?1 LIMIT ?2)",
            )?
            .execute([now.0 - FLASH_LIFETIME, most])
        });
        unseen.await.map(drop)
    }
}

fn find(db: &Connection, hash: &[u8; 32]) -> rusqlite::Result<Option<Session>> {
    let mut find = db.prepare_cached(
        "SELECT s.account, a.name, s.ends_at FROM dashboard_sessions s \
         JOIN accounts a ON a.id = s.account WHERE s.hash = ?1",
    )?;
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Session {
            account: AccountRowId(row.get(0)?),
            name: row.get(1)?,
            ends_at: Millis(row.get(2)?),
        })
    };
    find.query_row([hash], read).optional()
}
