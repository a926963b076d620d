//! Passwords and sessions of the dashboard.

use parcelo_domain::{
    AccountRowId, Millis,
    audit::{Actor, AuditAction, AuditedChange, Author},
    session::{NewSession, PasswordLogin, Session},
};

use super::{
    Engine, Store, StoreError, audit,
    old_rows::old_rows,
    sql::{Sql, SqlResult, params},
    values::Value,
};

impl Store {
    /// Returns the account with a name and its password's hash, or `None` if it has no password.
    pub async fn login(&self, account: &str) -> Result<Option<PasswordLogin>, StoreError> {
        let account = account.to_owned();
        self.query(async move |db| {
            let sql = "SELECT a.id, p.hash FROM accounts AS a \
                 JOIN dashboard_passwords AS p ON p.account = a.id WHERE a.name = $1";
            db.first(sql, params![&account], |row| {
                Ok(PasswordLogin { account: row.get(0)?, password: row.get(1)? })
            })
            .await
        })
        .await
    }

    /// Sets an account's password and ends its sessions.
    pub async fn set_password(
        &self,
        account: AccountRowId,
        hash: String,
        now: Millis,
        by: &Author,
    ) -> Result<(), StoreError> {
        let by = by.clone();
        self.write(async move |db| {
            let change = AuditedChange::for_account(account, AuditAction::PasswordSet);
            audit::record(db, &by, &change).await?;
            let set = "INSERT INTO dashboard_passwords (account, hash, changed_at) \
                 VALUES ($1, $2, $3) ON CONFLICT (account) DO UPDATE \
                 SET hash = excluded.hash, changed_at = excluded.changed_at";
            db.execute(set, params![account, &hash, now]).await?;
            end(db, "account", account.into()).await
        })
        .await
    }

    /// Begins a session that replaces the earlier one, and records it in the audit log, unless the password was changed
    /// after it was checked. Returns `true` if the session has begun.
    pub async fn begin_session(
        &self,
        login: PasswordLogin,
        session: NewSession,
        previous: Option<[u8; 32]>,
    ) -> Result<bool, StoreError> {
        let NewSession { hash, begins_at, ends_at, client } = session;
        self.write(async move |db| {
            if let Some(previous) = previous {
                end(db, "hash", previous.into()).await?;
            }
            // Locks the password's row, so that a new password on another server ends this session or prevents it.
            let sql = "INSERT INTO dashboard_sessions (hash, account, ends_at) \
                 SELECT $1, account, $2 FROM dashboard_passwords WHERE account = $3 AND hash = $4 \
                { FOR SHARE|}";
            let params = params![hash, ends_at, login.account, &login.password];
            let has_begun = db.execute(sql, params).await? == 1;
            if has_begun {
                let entry = AuditedChange::for_sign_in(login.account, client);
                audit::record(db, &Actor::Session.at(begins_at), &entry).await?;
            }
            Ok(has_begun)
        })
        .await
    }

    /// Returns the session with a hash, expired or not.
    pub async fn session(&self, hash: &[u8; 32]) -> Result<Option<Session>, StoreError> {
        let hash = *hash;
        self.query(async move |db| {
            let sql = "SELECT s.account, a.name, s.ends_at FROM dashboard_sessions AS s \
                 JOIN accounts AS a ON a.id = s.account WHERE s.hash = $1";
            db.first(sql, params![hash], |row| {
                Ok(Session { account: row.get(0)?, name: row.get(1)?, ends_at: row.get(2)? })
            })
            .await
        })
        .await
    }

    /// Ends a session.
    pub async fn end_session(&self, hash: [u8; 32]) -> Result<(), StoreError> {
        self.write(async move |db| end(db, "hash", hash.into()).await).await
    }

    /// Deletes expired sessions and old failures to sign in.
    pub async fn purge_sessions(&self, now: Millis) -> Result<(), StoreError> {
        self.delete_old(old_rows!("dashboard_sessions", "hash", "ends_at"), now.0).await?;
        match &self.0 {
            Engine::Sqlite(_) => Ok(()),
            #[cfg(feature = "postgres")]
            Engine::Postgres(engine) => engine.purge_logins(now).await,
        }
    }
}

/// Ends the sessions with a value in a column.
async fn end(db: Sql<'_>, column: &str, value: Value) -> SqlResult<()> {
    let sql = format!("DELETE FROM dashboard_sessions WHERE {column} = $1");
    db.execute(&sql, &[value]).await.map(drop)
}
