//! Lingering close: closing a connection so that its client can read the last response. A socket that is closed while
//! data arrives is reset, and a reset discards a response that the client has not read yet.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

/// Maximum time for which the client may go on sending. Together with the limit below, it bounds the cost of a client
/// that never stops.
const LINGER_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of bytes that the client may send in that time.
const MAX_LINGER_BYTES: usize = 1024 * 1024;

/// The state of a connection, shared by its stream, its service and the metrics. They all run in the connection's one
/// task, so the order of the atomics does not matter.
#[derive(Debug, Default)]
pub(super) struct ConnectionState {
    unread: AtomicBool,
    head_begun: AtomicBool,
}

impl ConnectionState {
    /// Records that a response is sent before its request was read to the end.
    pub(super) fn mark_unread(&self) {
        self.unread.store(true, Ordering::Relaxed);
    }

    /// Records that a response is sent, so that the next bytes belong to the next head.
    pub(super) fn mark_responded(&self) {
        self.head_begun.store(false, Ordering::Relaxed);
    }

    /// Returns `true` if a byte of the next head has arrived. A byte that arrived before the last response does not
    /// count, since only hyper knows where a head ends.
    pub(super) fn has_head_begun(&self) -> bool {
        self.head_begun.load(Ordering::Relaxed)
    }
}

/// A connection that reads and discards data after its own side was closed.
#[derive(Debug)]
pub(super) struct LingeringStream<S> {
    stream: S,
    state: Arc<ConnectionState>,
    stage: Stage,
    bytes_left: usize,
}

#[derive(Debug)]
enum Stage {
    Open,
    /// Our side is closed; data is read and discarded until the timer ends.
    Closing(Pin<Box<Sleep>>),
    Closed,
}

impl<S> LingeringStream<S> {
    pub(super) fn new(stream: S, state: Arc<ConnectionState>) -> Self {
        Self { stream, state, stage: Stage::Open, bytes_left: MAX_LINGER_BYTES }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> LingeringStream<S> {
    /// Reads and discards some bytes; returns 0 at the end and after an error.
    fn poll_discard(&mut self, context: &mut Context<'_>) -> Poll<usize> {
        let mut space = [0; 4096];
        let mut buffer = ReadBuf::new(&mut space);
        let read = ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer));
        Poll::Ready(read.map_or(0, |()| buffer.filled().len()))
    }

    /// Returns the stage after our side was closed: waiting for the rest of a request, if there is one.
    fn stage_after_shutdown(&mut self, context: &mut Context<'_>) -> Stage {
        // After a head that could not be parsed, only a further byte shows that more is coming.
        let is_unread = self.state.unread.load(Ordering::Relaxed)
            || matches!(self.poll_discard(context), Poll::Ready(1..));
        if is_unread { Stage::Closing(Box::pin(sleep(LINGER_TIMEOUT))) } else { Stage::Closed }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for LingeringStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.stream).poll_read(context, buffer));
        if buffer.filled().len() > before {
            self.state.head_begun.store(true, Ordering::Relaxed);
        }
        Poll::Ready(read)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for LingeringStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            match &mut this.stage {
                Stage::Closed => return Poll::Ready(Ok(())),
                Stage::Open => {
                    ready!(Pin::new(&mut this.stream).poll_shutdown(context))?;
                    this.stage = this.stage_after_shutdown(context);
                }
                Stage::Closing(end) => {
                    let is_late = end.as_mut().poll(context).is_ready();
                    let read = if is_late { 0 } else { ready!(this.poll_discard(context)) };
                    this.bytes_left = this.bytes_left.saturating_sub(read);
                    if read == 0 || this.bytes_left == 0 {
                        this.stage = Stage::Closed;
                    }
                }
            }
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
