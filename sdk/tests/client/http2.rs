//! HTTP/2: the same error phases and the same check of a label's length as over HTTP/1.1.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use h2::{Reason, server::SendResponse};
use parcelo::{
    Client, ClientBuilder, LabelFormat, Retry, Timeouts,
    calls::FailureClass,
    transport::{Phase, Reqwest},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

use crate::{
    errors::causes,
    scripted_transport::{CREATED, RECORD, key, number, order},
    socket::{peer, phase, unused_address},
};

/// Longer than any test takes.
const HOUR: Duration = Duration::from_secs(3_600);

/// The server's reaction to each request.
#[derive(Debug, Clone, Copy)]
enum ConnectionEnd {
    /// The connection is closed before anything is read.
    Closed,
    /// The request is read, then the connection is closed.
    Unanswered,
    /// The server sends a GOAWAY which says that it has not processed the request.
    GoAway,
    /// The request is accepted, then the server sends a GOAWAY.
    GoAwayAfterRequest,
    /// The stream is reset.
    Reset(Reason),
    /// The request is accepted, and no response follows.
    Silence,
    /// The server sends these bytes, which are not HTTP/2 frames.
    InvalidFrames(&'static [u8]),
    /// A head that announces this length, a body, and an end or a reset.
    Body(Option<usize>, &'static str, Option<Reason>),
}

fn builder(address: &str) -> ClientBuilder {
    // Without TLS the protocol is not negotiated.
    let http = reqwest::Client::builder().http2_prior_knowledge().build().unwrap();
    Client::builder(key()).base_url(address).unwrap().transport(Reqwest::new(http))
}

async fn serve(end: ConnectionEnd) -> (String, JoinSet<()>) {
    peer(move |socket| serve_broken(socket, end)).await
}

/// Returns a frame on stream 0, without flags: length, type, payload.
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    [&[0, 0, u8::try_from(payload.len()).unwrap(), kind, 0, 0, 0, 0, 0], payload].concat()
}

/// Returns `true` if the bytes contain a frame that ends its stream, after the 24 bytes of the client preface.
fn has_ended(bytes: &[u8]) -> bool {
    let mut rest = bytes.get(24..).unwrap_or_default();
    while let [a, b, c, kind, flags, ..] = *rest {
        let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        let Some(next) = rest.get(9 + length..) else { return false };
        if kind < 2 && flags & 1 == 1 {
            return true;
        }
        rest = next;
    }
    false
}

async fn serve_broken(mut socket: TcpStream, end: ConnectionEnd) {
    match end {
        ConnectionEnd::Closed => {}
        ConnectionEnd::InvalidFrames(bytes) => {
            let mut head = [0; 4096];
            let _ = socket.read(&mut head).await;
            let _ = socket.write_all(bytes).await;
            let _ = socket.shutdown().await;
            while socket.read(&mut head).await.is_ok_and(|length| length > 0) {}
        }
        ConnectionEnd::GoAway => {
            let _ = socket.write_all(&frame(4, &[])).await;
            let mut request = Vec::new();
            while !has_ended(&request) {
                if socket.read_buf(&mut request).await.unwrap_or_default() == 0 {
                    return;
                }
            }
            let _ = socket.write_all(&frame(7, &[0; 8])).await;
            let mut rest = [0; 4096];
            while socket.read(&mut rest).await.is_ok_and(|length| length > 0) {}
        }
        _ => serve_requests(socket, end).await,
    }
}

async fn serve_requests(socket: TcpStream, end: ConnectionEnd) {
    let Ok(mut connection) = h2::server::handshake(socket).await else { return };
    while let Some(Ok((request, respond))) = connection.accept().await {
        let body = request.into_body();
        match end {
            ConnectionEnd::Unanswered => return,
            ConnectionEnd::GoAwayAfterRequest => connection.abrupt_shutdown(Reason::NO_ERROR),
            _ => drop(tokio::spawn(respond_with(respond, body, end))),
        }
    }
}

async fn respond_with(
    mut respond: SendResponse<Bytes>,
    mut body: h2::RecvStream,
    end: ConnectionEnd,
) {
    while let Some(Ok(piece)) = body.data().await {
        let _ = body.flow_control().release_capacity(piece.len());
    }
    match end {
        ConnectionEnd::Reset(reason) => respond.send_reset(reason),
        ConnectionEnd::Body(promised, text, reset) => {
            let mut head = http::Response::builder().status(200);
            if let Some(promised) = promised {
                head = head.header("content-length", promised);
            }
            let mut stream = respond.send_response(head.body(()).unwrap(), false).unwrap();
            stream.send_data(Bytes::from_static(text.as_bytes()), reset.is_none()).unwrap();
            if let Some(reason) = reset {
                // The frames before it must arrive.
                while stream.capacity() > 0 && text.len() > stream.capacity() {
                    tokio::task::yield_now().await;
                }
                stream.send_reset(reason);
            }
        }
        _ => {
            // Nothing else happens, so time goes on to the end of the attempt.
            tokio::time::pause();
            std::future::pending::<()>().await;
        }
    }
}

#[tokio::test]
async fn a_response_is_read_and_the_connection_reused() {
    let length = Some(RECORD.len());
    let (address, _server) = serve(ConnectionEnd::Body(length, RECORD, None)).await;
    let client = builder(&address).retry(Retry::none()).build().unwrap();
    let number = number();
    let calls = (0..8).map(|_| async { client.tracking().get(&number).await });
    for record in futures_util::future::join_all(calls).await {
        assert_eq!(record.unwrap().meta().attempts, 1);
    }
    let (address, _server) = serve(ConnectionEnd::Body(None, CREATED, None)).await;
    let client = builder(&address).build().unwrap();
    client.orders().create(&order()).await.unwrap();
}

#[tokio::test]
async fn each_broken_peer_has_the_same_phase_as_over_http_1() {
    let cut = r#"{"trackingNumber":"#;
    let table = [
        (ConnectionEnd::Closed, Phase::Stale),
        (ConnectionEnd::Unanswered, Phase::Stale),
        (ConnectionEnd::GoAway, Phase::Stale),
        (ConnectionEnd::GoAwayAfterRequest, Phase::Stale),
        (ConnectionEnd::Reset(Reason::REFUSED_STREAM), Phase::Stale),
        (ConnectionEnd::Reset(Reason::INTERNAL_ERROR), Phase::MaybeSent),
        (ConnectionEnd::Reset(Reason::CANCEL), Phase::MaybeSent),
        (ConnectionEnd::Reset(Reason::HTTP_1_1_REQUIRED), Phase::MaybeSent),
        (ConnectionEnd::Silence, Phase::Timeout),
        (ConnectionEnd::InvalidFrames(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Phase::NotHttp),
        (ConnectionEnd::InvalidFrames(b"220 smtp.example ESMTP\r\n"), Phase::NotHttp),
        (ConnectionEnd::Body(Some(999), cut, None), Phase::MaybeSent),
        (ConnectionEnd::Body(None, cut, Some(Reason::INTERNAL_ERROR)), Phase::MaybeSent),
    ];
    for (end, expected) in table {
        let (address, _server) = serve(end).await;
        let timeouts = Timeouts::default().total(HOUR).attempt(HOUR).connect(HOUR);
        let client = builder(&address).retry(Retry::none()).timeouts(timeouts).build().unwrap();
        let is_slow = matches!(end, ConnectionEnd::Silence);
        let error = client.tracking().get(&number()).await.unwrap_err();
        if is_slow {
            tokio::time::resume();
        }
        assert_eq!(phase(&error), Some(expected), "{end:?}: {error:?}");
        let order = order();
        let error = client.orders().create(&order).await.unwrap_err();
        if is_slow {
            tokio::time::resume();
        }
        assert_eq!(phase(&error), Some(expected), "{end:?}: {error:?}");
        assert!(error.may_have_executed() && order.idempotency_key.may_have_executed(), "{end:?}");
        let shown: Vec<_> = causes(&error).map(|cause| format!("{cause} {cause:?}")).collect();
        assert!(!shown.concat().contains("SB-SUCCESS"), "{shown:?}");
    }
    let client = builder(&unused_address().await).retry(Retry::none()).build().unwrap();
    let error = client.orders().create(&order()).await.unwrap_err();
    assert_eq!((phase(&error), error.may_have_executed()), (Some(Phase::NotSent), false));
}

#[tokio::test]
async fn a_refused_stream_is_sent_again_at_once() {
    for end in [ConnectionEnd::Reset(Reason::REFUSED_STREAM), ConnectionEnd::GoAway] {
        let (address, _server) = serve(end).await;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        let client = builder(&address)
            .retry(Retry::standard().attempts(2))
            .on_attempt(move |attempt| log.lock().unwrap().push((attempt.failure, attempt.wait)))
            .build()
            .unwrap();
        client.orders().create(&order()).await.unwrap_err();
        let stale = Some(FailureClass::Stale);
        assert_eq!(
            *seen.lock().unwrap(),
            [(stale, Some(Duration::ZERO)), (stale, None)],
            "{end:?}"
        );
    }
}

#[tokio::test]
async fn a_truncated_label_leaves_no_file() {
    let ends = [
        ConnectionEnd::Body(Some(99), "%PDF-", None),
        ConnectionEnd::Body(Some(2), "%PDF-", None),
        ConnectionEnd::Body(Some(99), "%PDF-", Some(Reason::CANCEL)),
        ConnectionEnd::Body(Some(99), "%PDF-", Some(Reason::NO_ERROR)),
        ConnectionEnd::Body(None, "%PDF-", Some(Reason::NO_ERROR)),
    ];
    for end in ends {
        let (address, _server) = serve(end).await;
        let client = builder(&address).retry(Retry::none()).build().unwrap();
        let (folder, number) = (tempfile::tempdir().unwrap(), number());
        let label = client.labels().download(&number, LabelFormat::Pdf);
        assert!(label.clone().bytes().await.is_err(), "{end:?}");
        assert!(label.save_to(folder.path().join("label.pdf")).await.is_err(), "{end:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{end:?}");
    }
    let (address, _server) = serve(ConnectionEnd::Body(Some(5), "%PDF-", None)).await;
    let client = builder(&address).build().unwrap();
    let label = client.labels().download(&number(), LabelFormat::Pdf).bytes().await;
    assert_eq!(&label.unwrap()[..], b"%PDF-");
}
