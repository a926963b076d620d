//! A few connections for reads, and the tasks that own them. Each connection runs one read at a time. Reads of a few
//! rows and scans have separate queues: only some of the connections run scans, and those prefer reads of a few rows.

use std::{
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::FutureExt;
use parcelo_system::clock::{has_elapsed, monotonic_now};
use tokio::{
    sync::{Mutex, mpsc},
    task::JoinSet,
};

use super::{
    call::Call,
    connection::{Connection, Connector, spawn_thread},
    error::{DbResult, Failure},
};

/// Maximum number of queued reads.
const MAX_QUEUED_READS: usize = 4_096;
/// Minimum pause between a failed attempt to connect and the next one; until then reads are refused at once.
const RECONNECT_PAUSE: Duration = Duration::from_millis(250);

type Queue = Arc<Mutex<mpsc::Receiver<Box<dyn Call>>>>;

/// Numbers of connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Connections {
    /// Number of connections for reads of a few rows only.
    pub(super) point_reads: usize,
    /// Number of connections that also run scans.
    pub(super) scans: usize,
}

/// The handle to the readers, which stop when the last handle is dropped.
#[derive(Clone)]
pub(super) struct Readers {
    point_reads: mpsc::Sender<Box<dyn Call>>,
    scans: mpsc::Sender<Box<dyn Call>>,
}

impl Readers {
    /// Starts the readers' thread. One thread is enough, because it only waits for PostgreSQL.
    pub(super) fn start(connector: Connector, connections: Connections) -> DbResult<Self> {
        let queue = || {
            let (queue, waiting) = mpsc::channel(MAX_QUEUED_READS);
            (queue, Arc::new(Mutex::new(waiting)))
        };
        let ((point_reads, point_read_queue), (scans, scan_queue)) = (queue(), queue());
        spawn_thread("store-readers", async move || {
            let mut tasks = JoinSet::new();
            for _ in 0..connections.point_reads {
                tasks.spawn_local(serve(connector.clone(), Arc::clone(&point_read_queue), None));
            }
            for _ in 0..connections.scans {
                let scans = Some(Arc::clone(&scan_queue));
                tasks.spawn_local(serve(connector.clone(), Arc::clone(&point_read_queue), scans));
            }
            tasks.join_all().await;
        })?;
        Ok(Self { point_reads, scans })
    }

    /// Queues a read of a few rows. Returns `false` if the queue is full.
    pub(super) fn push(&self, read: Box<dyn Call>) -> bool {
        self.point_reads.try_send(read).is_ok()
    }

    /// Queues a read that may take long. Returns `false` if the queue is full.
    pub(super) fn push_scan(&self, read: Box<dyn Call>) -> bool {
        self.scans.try_send(read).is_ok()
    }
}

/// Returns the next read. If both queues have one, it is a read of a few rows.
async fn next(point_reads: &Queue, scans: Option<&Queue>) -> Option<Box<dyn Call>> {
    let from = async |queue: &Queue| queue.lock().await.recv().await;
    let Some(scans) = scans else { return from(point_reads).await };
    tokio::select! {
        biased;
        read = from(point_reads) => read,
        read = from(scans) => read,
    }
}

async fn serve(connector: Connector, point_reads: Queue, scans: Option<Queue>) {
    let mut reader = Reader { connector, connection: None, failed_at: None };
    loop {
        let next = next(&point_reads, scans.as_ref()).await;
        let Some(mut read) = next else { return };
        // If PostgreSQL was slow for a minute, thousands of queued reads may have lost their callers.
        if read.is_abandoned() {
            continue;
        }
        let outcome = reader.run(read.as_mut()).await;
        read.answer(outcome);
    }
}

/// A connection that is opened when it is needed.
struct Reader {
    connector: Connector,
    connection: Option<Connection>,
    /// The time of the last failed attempt to connect.
    failed_at: Option<Instant>,
}

impl Reader {
    /// Runs a read. If the connection turns out to be closed, the read is repeated once on a new connection.
    async fn run(&mut self, read: &mut dyn Call) -> DbResult<()> {
        let had_connection = self.connection.is_some();
        match self.try_once(read).await {
            Err(failure) if failure.is_connection_error() && had_connection => {
                self.try_once(read).await
            }
            result => result,
        }
    }

    async fn try_once(&mut self, read: &mut dyn Call) -> DbResult<()> {
        let connection = self.take().await?;
        let result = AssertUnwindSafe(read.run(&connection)).catch_unwind().await;
        let result = result.unwrap_or(Err(Failure::Broken));
        // A read may have opened a transaction. After an error it is rolled back, or else the connection is closed.
        let is_usable = match &result {
            Ok(()) => !connection.is_closed(),
            Err(failure) if failure.is_connection_error() => false,
            Err(_) => connection.run("ROLLBACK").await.is_ok(),
        };
        if is_usable {
            self.connection = Some(connection);
        }
        result
    }

    async fn take(&mut self) -> DbResult<Connection> {
        if let Some(connection) = self.connection.take()
            && !connection.is_closed()
        {
            return Ok(connection);
        }
        if self.failed_at.is_some_and(|failed_at| !has_elapsed(failed_at, RECONNECT_PAUSE)) {
            return Err(Failure::Unreachable);
        }
        let connected = self.connector.connect().await;
        self.failed_at = connected.is_err().then(monotonic_now);
        connected
    }
}
