//! A connection that can break: what the mock server's listener serves on.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use axum::response::Response;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use super::plan::{Cut, Hit};
use crate::http::ServerStream;

/// A connection that ends with a reset when it is told so.
#[derive(Debug)]
pub(super) struct BreakableLine {
    stream: TcpStream,
    reset: Arc<AtomicBool>,
}

impl ServerStream for BreakableLine {
    type ResponseHook = Arc<AtomicBool>;

    fn open(stream: TcpStream) -> (Self, Self::ResponseHook) {
        let reset = Arc::new(AtomicBool::new(false));
        (Self { stream, reset: Arc::clone(&reset) }, reset)
    }

    fn release(reset: &Self::ResponseHook, answer: Response) -> io::Result<Response> {
        let Some(cut) = answer.extensions().get().and_then(Hit::cut) else { return Ok(answer) };
        reset.store(cut == Cut::Reset, Ordering::SeqCst);
        Err(io::ErrorKind::ConnectionAborted.into())
    }
}

impl Drop for BreakableLine {
    fn drop(&mut self) {
        if self.reset.load(Ordering::SeqCst) {
            // A connection that the client has closed already needs no reset.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for BreakableLine {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for BreakableLine {
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
        Pin::new(&mut self.stream).poll_shutdown(context)
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
