//! A TCP stream that can be reset, for the mock server's listener.

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

use super::fault_plan::{Disconnect, InjectedFaults};
use crate::http::ServerStream;

/// A TCP stream that sends RST instead of FIN when it is dropped, if a fault asks for it.
#[derive(Debug)]
pub(super) struct BreakableStream {
    stream: TcpStream,
    reset: Arc<AtomicBool>,
}

impl ServerStream for BreakableStream {
    type ResponseHook = Arc<AtomicBool>;

    fn open(stream: TcpStream) -> (Self, Self::ResponseHook) {
        let reset = Arc::new(AtomicBool::new(false));
        (Self { stream, reset: Arc::clone(&reset) }, reset)
    }

    fn release(reset: &Self::ResponseHook, response: Response) -> io::Result<Response> {
        let Some(disconnect) = response.extensions().get().and_then(InjectedFaults::disconnect)
        else {
            return Ok(response);
        };
        reset.store(disconnect == Disconnect::Reset, Ordering::SeqCst);
        Err(io::ErrorKind::ConnectionAborted.into())
    }
}

impl Drop for BreakableStream {
    fn drop(&mut self) {
        if self.reset.load(Ordering::SeqCst) {
            // Without linger, closing the socket sends RST. It fails only if the client has closed already.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for BreakableStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for BreakableStream {
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
