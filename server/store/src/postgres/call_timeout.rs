//! Makes calls to the tasks that own connections, and waits for their answers until a timeout.

use std::{sync::atomic::Ordering, time::Duration};

use parcelo_domain::Tenant;
use tokio::sync::oneshot;

use super::{
    READ_TIMEOUT, Store,
    call::{self, Call},
    connection::Connection,
    error::{DbResult, Failure},
    readers::Readers,
    write_queue::Write,
};
use crate::{StoreError, WRITE_TIMEOUT};

impl Store {
    pub(crate) async fn read<T, F>(&self, run: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: AsyncFn(&Connection) -> DbResult<T> + Send + 'static,
    {
        self.0.state.reads.fetch_add(1, Ordering::Relaxed);
        self.read_within(Some(READ_TIMEOUT), Readers::push, run).await
    }

    /// Reads like [`Store::read`], with another timeout; `None` means no timeout. `push` queues the read. A scan that
    /// the server makes for itself takes no turn.
    pub(super) async fn read_within<T, F>(
        &self,
        timeout: Option<Duration>,
        push: fn(&Readers, Box<dyn Call>) -> bool,
        run: F,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: AsyncFn(&Connection) -> DbResult<T> + Send + 'static,
    {
        let (call, answer) = call::new(run);
        if !push(&self.0.readers, call) {
            return Err(StoreError::Crowded { database: self.name() });
        }
        self.await_answer(answer, timeout).await
    }

    /// Runs a read that may take long, for a tenant, or for the operators if `tenant` is `None`. Each tenant has one
    /// such read at a time, and so do all operators together.
    pub(crate) async fn scan<T, F>(&self, tenant: Option<Tenant>, run: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: AsyncFn(&Connection) -> DbResult<T> + Send + Sync + 'static,
    {
        let crowded = || StoreError::Crowded { database: self.name() };
        self.0.state.reads.fetch_add(1, Ordering::Relaxed);
        let turn = self.0.turns.turn(tenant).await.ok_or_else(crowded)?;
        // The turn ends with the work, even if the caller has gone.
        let run = async move |db: &Connection| {
            let _turn = &turn;
            run(db).await
        };
        self.read_within(Some(READ_TIMEOUT), Readers::push_scan, run).await
    }

    pub(crate) async fn call<T, F>(&self, run: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: AsyncFn(&Connection) -> DbResult<T> + Send + 'static,
    {
        self.call_within(Some(WRITE_TIMEOUT), run).await
    }

    /// Calls like [`Store::call`], with another timeout; `None` means no timeout.
    pub(crate) async fn call_within<T, F>(
        &self,
        timeout: Option<Duration>,
        run: F,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: AsyncFn(&Connection) -> DbResult<T> + Send + 'static,
    {
        let (call, answer) = call::new(run);
        self.write(Write::Call(call), answer, timeout).await
    }

    /// Queues a write and waits for its answer.
    pub(super) async fn write<T>(
        &self,
        write: Write,
        answer: oneshot::Receiver<DbResult<T>>,
        timeout: Option<Duration>,
    ) -> Result<T, StoreError> {
        self.0.writer.push(write).map_err(|reason| reason.into_store_error(self.name()))?;
        self.await_answer(answer, timeout).await
    }

    pub(super) async fn await_answer<T>(
        &self,
        answer: oneshot::Receiver<DbResult<T>>,
        timeout: Option<Duration>,
    ) -> Result<T, StoreError> {
        let answer = tokio::time::timeout(timeout.unwrap_or(Duration::MAX), answer).await;
        let timed_out = |_elapsed| {
            let database = self.name();
            match self.unavailable_reason() {
                Some(reason) => StoreError::Unreachable { database, reason },
                None => StoreError::Busy { database },
            }
        };
        let answer = answer.map_err(timed_out)?.unwrap_or(Err(Failure::Broken));
        answer.map_err(|failure| self.error(failure))
    }

    /// Returns the error for the caller. Unreadable parcels and events are counted.
    pub(crate) fn error(&self, failure: Failure) -> StoreError {
        match failure.unreadable_table() {
            Some("events") => drop(self.0.unreadable_events.fetch_add(1, Ordering::Relaxed)),
            Some(_) => drop(self.0.unreadable_parcels.fetch_add(1, Ordering::Relaxed)),
            None => {}
        }
        failure.into_store_error(&self.0.name)
    }
}
