//! The source or target database of a copy between engines: one transaction, while no server can commit anything.

use std::time::Duration;

use tokio_postgres::error::SqlState;

use super::{
    Address,
    connection::{Connection, Connector, SERVERS_LOCK},
    error::{DbResult, Failure},
    migrations,
};
use crate::StoreError;

/// Removes timeouts: copying a table may take long, and a transaction is idle while it waits for the other database.
const NO_TIMEOUTS: &str = "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0";

/// A database with an open transaction.
pub(crate) struct Database {
    pub(crate) db: Connection,
    pub(crate) name: String,
}

impl Database {
    /// Begins to read a snapshot of the database.
    pub(crate) async fn source(address: Address) -> Result<Self, StoreError> {
        let begin = async |db: &Connection| {
            migrations::check_copy_source(db).await?;
            // The lock comes before the first read, which determines the snapshot.
            lock_out_servers(db).await?;
            db.run("BEGIN ISOLATION LEVEL REPEATABLE READ").await
        };
        Self::connect(address, begin).await
    }

    /// Begins to fill an empty database.
    pub(crate) async fn target(address: Address) -> Result<Self, StoreError> {
        let begin = async |db: &Connection| {
            migrations::prepare_for_copy(db).await?;
            lock_out_servers(db).await?;
            db.run("BEGIN").await
        };
        Self::connect(address, begin).await
    }

    /// Makes the copied rows visible, and lets servers start on them.
    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        let commit = async {
            migrations::finish_copy(&self.db).await?;
            self.db.run("COMMIT").await
        };
        commit.await.map_err(|failure: Failure| failure.into_store_error(&self.name))
    }

    /// Collects statistics of the copied rows, because the planner assumes empty tables until autovacuum runs.
    pub(crate) async fn analyse(address: Address) -> Result<(), StoreError> {
        Self::connect(address, async |db| db.run("ANALYZE").await).await.map(drop)
    }

    async fn connect(
        address: Address,
        begin: impl AsyncFnOnce(&Connection) -> DbResult<()>,
    ) -> Result<Self, StoreError> {
        let name = address.name();
        let connect = async {
            let mut db = Connector::for_copy(&address)?.connect().await?;
            db.set_answer_timeout(Duration::MAX);
            db.run(NO_TIMEOUTS).await?;
            begin(&db).await?;
            Ok(db)
        };
        match connect.await {
            Ok(db) => Ok(Self { db, name }),
            Err(failure) => Err(Failure::into_store_error(failure, &name)),
        }
    }
}

/// Keeps servers and commands out until the connection ends, and waits for any that have just ended.
async fn lock_out_servers(db: &Connection) -> DbResult<()> {
    let locked = db.execute("SELECT pg_advisory_lock($1)", &[&SERVERS_LOCK]).await;
    locked.map(drop).map_err(|failure| {
        if failure.code() != Some(&SqlState::LOCK_NOT_AVAILABLE) {
            return failure;
        }
        let reason = "servers or commands are connected to it: stop them first, since what they write \
             would not be copied";
        Failure::Unsuitable(reason.to_owned())
    })
}
