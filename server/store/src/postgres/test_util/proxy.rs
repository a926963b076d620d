//! A proxy between a store and PostgreSQL that forwards message by message, and fails at a chosen one.

use std::{
    io,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream, UnixStream},
    sync::mpsc,
    task::JoinSet,
};

use super::cluster::{empty_database, socket_and_name};
use crate::{Store, postgres::Address};

/// The direction of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    ToServer,
    ToStore,
}

/// A store whose connection can be cut in its commits.
#[expect(missing_debug_implementations, reason = "a proxy has nothing to show")]
pub struct CutStore {
    /// The store.
    pub store: Store,
    proxy: Proxy,
}

impl CutStore {
    /// Opens the store, or `None` if PostgreSQL is not installed.
    pub async fn open() -> Option<Self> {
        let proxy = Proxy::start(&empty_database()?).await;
        let store = Store::connect(proxy.address(), [9; 32]).await.unwrap();
        Some(Self { store, proxy })
    }

    /// Cuts the connection after PostgreSQL has executed the next COMMIT, and before its confirmation is forwarded.
    pub fn cut_next_commit(&self) {
        self.proxy.arm(FaultPoint::Committed, Fault::CutBefore);
    }
}

/// A message of a group of writes, at which a fault can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultPoint {
    /// The n-th message in its direction, from the group's BEGIN on.
    Nth(Direction, usize),
    /// The COMMIT.
    Commit,
    /// PostgreSQL's confirmation of the COMMIT.
    Committed,
}

/// The fault at a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Both connections end, and the message is not forwarded.
    CutBefore,
    /// Half of the message is forwarded, then both connections end.
    CutInside,
    /// The message is forwarded, then both connections end.
    CutAfter,
    /// The store's connection ends. PostgreSQL's stays open and receives nothing more.
    Orphan,
    /// The message is not forwarded, nor anything after it; both connections stay open.
    Stall,
}

pub(crate) const FAULTS: [Fault; 5] =
    [Fault::CutBefore, Fault::CutInside, Fault::CutAfter, Fault::Orphan, Fault::Stall];

/// A proxy in front of a database; its connections end with it.
pub(crate) struct Proxy {
    address: Address,
    plan: Arc<Plan>,
    _serving: JoinSet<()>,
}

#[derive(Default)]
struct Plan {
    armed: Mutex<Option<(FaultPoint, Fault)>>,
    /// Connections that must stay open.
    held: Mutex<Vec<ProxiedConnection>>,
}

/// Two connections, and the messages that are read from them.
struct ProxiedConnection {
    store: Option<ConnectionEnd>,
    server: ConnectionEnd,
}

struct ConnectionEnd {
    writer: Box<dyn tokio::io::AsyncWrite + Send + Unpin>,
    messages: mpsc::Receiver<Vec<u8>>,
    /// Owns the half of the connection that is read.
    _reading: JoinSet<()>,
}

impl Proxy {
    /// Starts the proxy in front of the database at a socket.
    pub(crate) async fn start(database: &Address) -> Self {
        let (folder, name) = socket_and_name(database);
        let socket = folder.join(".s.PGSQL.5432");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = format!("postgres://parcelo@127.0.0.1:{port}/{name}?unsafe_settings=allow");
        let plan = Arc::new(Plan::default());
        let (mut serving, shared) = (JoinSet::new(), Arc::clone(&plan));
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (store, _) = listener.accept().await.unwrap();
                let (socket, plan) = (socket.clone(), Arc::clone(&shared));
                connections.spawn(async move {
                    // Either end may disconnect at any moment.
                    let Ok(server) = UnixStream::connect(socket).await else { return };
                    let _ended = forward(ProxiedConnection::new(store, server), &plan).await;
                });
            }
        });
        let address = Address::parse(&format!("{url}&sslmode=disable")).unwrap();
        Self { address, plan, _serving: serving }
    }

    /// Returns the database's address through the proxy.
    pub(crate) fn address(&self) -> Address {
        self.address.clone()
    }

    /// Makes the next group that reaches `point` fail.
    pub(crate) fn arm(&self, point: FaultPoint, fault: Fault) {
        *self.plan.armed.lock().unwrap() = Some((point, fault));
    }

    /// Returns `true` if the fault has happened. If it has not, it is cancelled.
    pub(crate) fn disarm(&self) -> bool {
        self.plan.armed.lock().unwrap().take().is_none()
    }
}

impl ProxiedConnection {
    fn new(store: TcpStream, server: UnixStream) -> Self {
        store.set_nodelay(true).unwrap();
        let (store_reader, store_writer) = store.into_split();
        let (server_reader, server_writer) = server.into_split();
        Self {
            store: Some(ConnectionEnd::new(store_reader, store_writer, true)),
            server: ConnectionEnd::new(server_reader, server_writer, false),
        }
    }
}

impl ConnectionEnd {
    fn new(
        mut reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl tokio::io::AsyncWrite + Send + Unpin + 'static,
        mut is_startup: bool,
    ) -> Self {
        let (send, messages) = mpsc::channel(64);
        let mut task = JoinSet::new();
        task.spawn(async move {
            while let Ok(message) = read_message(&mut reader, is_startup).await
                && send.send(message).await.is_ok()
            {
                is_startup = false;
            }
        });
        Self { writer: Box::new(writer), messages, _reading: task }
    }
}

/// Reads one message. Only the first of a connection has no type before its length.
async fn read_message(
    from: &mut (impl AsyncRead + Unpin),
    is_startup: bool,
) -> io::Result<Vec<u8>> {
    let mut message = vec![0; if is_startup { 4 } else { 5 }];
    from.read_exact(&mut message).await?;
    let length = message.last_chunk().map_or(0, |length| u32::from_be_bytes(*length));
    let head = message.len();
    message.resize(head + length as usize - 4, 0);
    from.read_exact(&mut message[head..]).await?;
    Ok(message)
}

/// The group that a connection is running, if any.
#[derive(Default)]
struct Group {
    is_open: bool,
    to_server: usize,
    to_store: usize,
}

impl Group {
    /// Returns the points that a message corresponds to.
    fn points(&mut self, direction: Direction, message: &[u8]) -> Vec<FaultPoint> {
        // Only the writer's transactions count. A reader's transactions name their isolation level.
        if direction == Direction::ToServer
            && is_query(message, b"BEGIN")
            && !contains(message, b"ISOLATION")
        {
            *self = Self { is_open: true, ..Self::default() };
        }
        if !self.is_open {
            return Vec::new();
        }
        let count = match direction {
            Direction::ToServer => &mut self.to_server,
            Direction::ToStore => &mut self.to_store,
        };
        let mut points = vec![FaultPoint::Nth(direction, *count)];
        *count += 1;
        if direction == Direction::ToServer && is_query(message, b"COMMIT") {
            points.push(FaultPoint::Commit);
        }
        if direction == Direction::ToStore
            && message.first() == Some(&b'C')
            && contains(message, b"COMMIT")
        {
            points.push(FaultPoint::Committed);
        }
        // Ready for the next transaction: the group has ended.
        if direction == Direction::ToStore && *message == [b'Z', 0, 0, 0, 5, b'I'] {
            self.is_open = false;
        }
        points
    }
}

fn is_query(message: &[u8], start: &[u8]) -> bool {
    message.first() == Some(&b'Q') && message.get(5..).is_some_and(|sql| sql.starts_with(start))
}

fn contains(message: &[u8], word: &[u8]) -> bool {
    message.windows(word.len()).any(|part| part == word)
}

async fn forward(mut connection: ProxiedConnection, plan: &Plan) -> io::Result<()> {
    let mut group = Group::default();
    loop {
        let Some(store) = &mut connection.store else { return Ok(()) };
        let (direction, message) = tokio::select! {
            message = store.messages.recv() => (Direction::ToServer, message),
            message = connection.server.messages.recv() => (Direction::ToStore, message),
        };
        // If one end has disconnected, the other is closed too.
        let Some(message) = message else { return Ok(()) };
        let points = group.points(direction, &message);
        let to = if direction == Direction::ToServer {
            &mut connection.server.writer
        } else {
            &mut store.writer
        };
        match plan.take(&points) {
            None => to.write_all(&message).await?,
            Some(Fault::CutBefore) => return Ok(()),
            Some(Fault::CutInside) => return to.write_all(&message[..message.len() / 2]).await,
            Some(Fault::CutAfter) => return to.write_all(&message).await,
            Some(Fault::Orphan) => {
                connection.store = None;
                plan.held.lock().unwrap().push(connection);
                return Ok(());
            }
            Some(Fault::Stall) => {
                plan.held.lock().unwrap().push(connection);
                return Ok(());
            }
        }
    }
}

impl Plan {
    /// Returns the fault at a message that is at these points.
    fn take(&self, points: &[FaultPoint]) -> Option<Fault> {
        let mut armed = self.armed.lock().unwrap();
        let (_, fault) = armed.take_if(|(point, _)| points.contains(point))?;
        Some(fault)
    }
}
