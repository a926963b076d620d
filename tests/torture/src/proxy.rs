//! A proxy between a server and PostgreSQL. It can cut the connections after a chosen message, or stop forwarding
//! messages while connections stay open.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, UnixStream},
    sync::watch,
};

/// A number of messages that no run reaches, so that nothing is cut.
const NO_CUT: i64 = i64::MAX / 2;

/// A handle to a proxy; clones control the same one.
#[derive(Clone)]
pub(crate) struct Proxy {
    pub(crate) port: u16,
    state: Arc<State>,
}

struct State {
    socket: PathBuf,
    /// The number of messages, in both directions, that are still forwarded before every connection is cut.
    messages_left: AtomicI64,
    cuts: AtomicU64,
    /// The number of cuts so far; connections end when it changes.
    epoch: watch::Sender<u64>,
    is_stalled: watch::Sender<bool>,
}

impl Proxy {
    pub(crate) async fn start(socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let (epoch, is_stalled) = (watch::Sender::new(0), watch::Sender::new(false));
        let state = State {
            socket,
            messages_left: AtomicI64::new(NO_CUT),
            cuts: AtomicU64::new(0),
            epoch,
            is_stalled,
        };
        let state = Arc::new(state);
        let accept_state = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(Arc::clone(&accept_state).serve(client));
            }
        });
        Self { port, state }
    }

    /// Cuts every connection after this many further messages; the last message is still forwarded whole.
    pub(crate) fn cut_after(&self, messages: u32) {
        self.state.messages_left.store(i64::from(messages), Ordering::SeqCst);
    }

    /// Stops forwarding for a while; connections stay open.
    pub(crate) async fn stall(&self, time: Duration) {
        self.state.is_stalled.send_replace(true);
        tokio::time::sleep(time).await;
        self.state.is_stalled.send_replace(false);
    }

    /// Returns the number of cuts.
    pub(crate) fn cuts(&self) -> u64 {
        self.state.cuts.load(Ordering::Relaxed)
    }
}

impl State {
    async fn serve(self: Arc<Self>, client: TcpStream) {
        // If PostgreSQL is down, the connection ends at once.
        let Ok(server) = UnixStream::connect(&self.socket).await else { return };
        let _best_effort = client.set_nodelay(true);
        let mut epoch = self.epoch.subscribe();
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        tokio::select! {
            () = self.forward(from_client, to_server, false) => {}
            () = self.forward(from_server, to_client, true) => {}
            _ = epoch.changed() => {}
        }
    }

    /// Forwards messages one by one. A client's first message has only a length and no type.
    async fn forward(
        &self,
        mut from: impl AsyncReadExt + Unpin + Send,
        mut to: impl AsyncWriteExt + Unpin + Send,
        mut has_type: bool,
    ) {
        let mut message = Vec::new();
        loop {
            let head = if has_type { 5 } else { 4 };
            message.resize(head, 0);
            if from.read_exact(&mut message).await.is_err() {
                return;
            }
            let length =
                message.last_chunk::<4>().map_or(0, |bytes| u32::from_be_bytes(*bytes) as usize);
            message.resize(head - 4 + length.max(4), 0);
            if from.read_exact(&mut message[head..]).await.is_err() {
                return;
            }
            has_type = true;
            let mut is_stalled = self.is_stalled.subscribe();
            let _stall_ended = is_stalled.wait_for(|is_stalled| !is_stalled).await.map(drop);
            if to.write_all(&message).await.is_err() {
                return;
            }
            if self.messages_left.fetch_sub(1, Ordering::SeqCst) == 1 {
                self.messages_left.store(NO_CUT, Ordering::SeqCst);
                self.cuts.fetch_add(1, Ordering::Relaxed);
                self.epoch.send_modify(|epoch| *epoch += 1);
                return;
            }
        }
    }
}
