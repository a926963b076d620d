//! Who may sign in to the dashboard, and who has.

use super::{
    Store, audit,
    connection::{get, never_stored},
    pages::{delete_old, in_page},
};
use crate::{
    clock::Millis,
    domain::{
        AccountRowId,
        audit::{AuditAction, AuditedChange, Author},
        session::{FLASH_LIFETIME, Login, SealedFlash, Session},
    },
    store::StoreError,
};

impl Store {
    pub(crate) async fn login(&self, account: &str) -> Result<Option<Login>, StoreError> {
        if never_stored(account) {
            return Ok(None);
        }
        let account = account.to_owned();
        self.read(async move |db| {
            let sql = "SELECT a.id, p.hash FROM accounts AS a \
                 JOIN dashboard_passwords AS p ON p.account = a.id WHERE a.name = $1";
            let Some(row) = db.first(sql, &[&account]).await? else { return Ok(None) };
            Ok(Some(Login { account: AccountRowId(get(&row, 0)?), password: get(&row, 1)? }))
        })
        .await
    }

    pub(crate) async fn set_password(
        &self,
        account: AccountRowId,
        hash: String,
        now: Millis,
        by: &Author,
    ) -> Result<(), StoreError> {
        let by = by.clone();
        self.call(async move |db| {
            let change = AuditedChange::of_account(account, AuditAction::PasswordSet);
            audit::record(db, &by, &change).await?;
            let set = "INSERT INTO dashboard_passwords (account, hash, changed_at) \
                 VALUES ($1, $2, $3) ON CONFLICT (account) DO UPDATE \
                 SET hash = excluded.hash, changed_at = excluded.changed_at";
            db.execute(set, &[&account.0, &hash, &now.0]).await?;
            let end = "DELETE FROM dashboard_sessions WHERE account = $1";
            db.execute(end, &[&account.0]).await.map(drop)
        })
        .await
    }

    pub(crate) async fn begin_session(
        &self,
        login: Login,
        session: ([u8; 32], Millis),
        before: Option<[u8; 32]>,
    ) -> Result<bool, StoreError> {
        self.call(async move |db| {
            if let Some(before) = before {
                let end = "DELETE FROM dashboard_sessions WHERE hash = $1";
                db.execute(end, &[&before.as_slice()]).await?;
            }
            let (hash, ends_at) = session;
            // The password's row is locked: a new password on another server ends this session too, or this
            // one does not begin.
            let sql = "INSERT INTO dashboard_sessions (hash, account, ends_at) \
                 SELECT $1, account, $2 FROM dashboard_passwords WHERE account = $3 AND hash = $4 \
                 FOR SHARE";
            let given: super::connection::Given<'_> =
                &[&hash.as_slice(), &ends_at.0, &login.account.0, &login.password];
            Ok(db.execute(sql, given).await? == 1)
        })
        .await
    }

    pub(crate) async fn session(&self, hash: &[u8; 32]) -> Result<Option<Session>, StoreError> {
        let hash = *hash;
        self.read(async move |db| {
            let sql = "SELECT s.account, a.name, s.ends_at FROM dashboard_sessions AS s \
                 JOIN accounts AS a ON a.id = s.account WHERE s.hash = $1";
            let Some(row) = db.first(sql, &[&hash.as_slice()]).await? else { return Ok(None) };
            Ok(Some(Session {
                account: AccountRowId(get(&row, 0)?),
                name: get(&row, 1)?,
                ends_at: Millis(get(&row, 2)?),
            }))
        })
        .await
    }

    pub(crate) async fn end_session(&self, hash: [u8; 32]) -> Result<(), StoreError> {
        self.call(async move |db| {
            let forget = "DELETE FROM dashboard_flashes WHERE session = $1";
            db.execute(forget, &[&hash.as_slice()]).await?;
            let end = "DELETE FROM dashboard_sessions WHERE hash = $1";
            db.execute(end, &[&hash.as_slice()]).await.map(drop)
        })
        .await
    }

    pub(crate) async fn leave_flash(
        &self,
        session: [u8; 32],
        page: &'static str,
        flash: SealedFlash,
    ) -> Result<(), StoreError> {
        self.call(async move |db| {
            let sql = "INSERT INTO dashboard_flashes (session, page, left_at, sealed) \
                 VALUES ($1, $2, $3, $4)";
            let given: super::connection::Given<'_> =
                &[&session.as_slice(), &page, &flash.left_at.0, &flash.sealed];
            db.execute(sql, given).await.map(drop)
        })
        .await
    }

    pub(crate) async fn take_flashes(
        &self,
        session: [u8; 32],
        page: &'static str,
    ) -> Result<Vec<SealedFlash>, StoreError> {
        // Most pages have none, and a look costs no write.
        let is_there = self.read(async move |db| {
            let sql =
                "SELECT EXISTS (SELECT 1 FROM dashboard_flashes WHERE session = $1 AND page = $2)";
            db.value::<bool>(sql, &[&session.as_slice(), &page]).await
        });
        if !is_there.await? {
            return Ok(Vec::new());
        }
        let taken = self.call(async move |db| {
            // Of two servers that take at once one deletes the row, and one finds it gone.
            let sql = "DELETE FROM dashboard_flashes WHERE session = $1 AND page = $2 \
                 RETURNING id, left_at, sealed";
            db.each(sql, &[&session.as_slice(), &page], |row| {
                let flash = SealedFlash { left_at: Millis(get(row, 1)?), sealed: get(row, 2)? };
                Ok((get::<i64>(row, 0)?, flash))
            })
            .await
        });
        let mut taken = taken.await?;
        taken.sort_unstable_by_key(|(id, _)| *id);
        Ok(taken.into_iter().map(|(_, flash)| flash).collect())
    }

    pub(crate) async fn purge_sessions(&self, now: Millis) -> Result<(), StoreError> {
        let sql = delete_old!("dashboard_sessions", "hash", "dashboard_sessions WHERE ", "ends_at");
        self.delete_old(sql, now.0).await?;
        self.purge_logins(now).await
    }

    pub(crate) async fn purge_flashes(&self, now: Millis) -> Result<(), StoreError> {
        let sql = delete_old!("dashboard_flashes", "id", "dashboard_flashes WHERE ", "left_at");
        self.delete_old(sql, now.0 - FLASH_LIFETIME).await.map(drop)
    }
}
