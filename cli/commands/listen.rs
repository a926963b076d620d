//! `webhook listen`: a webhook receiver on this machine. It verifies each webhook, prints it, forwards it to another
//! program on request, and passes on the response of that program.

use std::{
    convert::Infallible,
    net::Ipv4Addr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderName, Method, Request, Response, StatusCode, header, request::Parts};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use parcelo::{
    ErrorCode,
    model::WebhookEvent,
    webhook::{Webhook, WebhookError},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Notify,
    time::timeout,
};
use url::Url;

use crate::{
    clock,
    failure::{Exit, Failure},
    output::{self, EventPrinter, ReceivedEvent},
    results::CommandOutcome,
    texts,
};

/// The address, secrets and target of a receiver.
#[derive(Debug)]
pub(crate) struct WebhookListener {
    pub(crate) port: u16,
    pub(crate) webhook: Webhook,
    pub(crate) forward_to: Option<Url>,
    pub(crate) events: EventPrinter,
}

/// Maximum size of a body: larger than any webhook of the service, and too small for a stranger to fill the memory.
const MAX_BODY_BYTES: usize = 1 << 20;
/// Maximum time that the service waits for a response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum time for requests to finish after Ctrl-C.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// Listens until Ctrl-C, which is the regular end: the exit code is 0.
pub(super) async fn listen(config: WebhookListener) -> Result<CommandOutcome, Failure> {
    let port = config.port;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
    let busy = |err: std::io::Error| {
        let values = [("port", &*port.to_string()), ("reason", &err.to_string())];
        Failure::usage(texts::CANNOT_LISTEN.with(&values), texts::OTHER_PORT)
    };
    let listener = listener.map_err(busy)?;
    let address = listener.local_addr().map_err(busy)?;
    let (closed, lost) = (Notify::new(), OnceLock::new());
    let state = Arc::new(ListenState { client: client()?, config, closed, lost });
    let shown = state.config.events.listening(&format!("http://{address}/"));
    let is_heard = shown.is_ok();
    state.record_write(shown);
    if is_heard {
        serve(listener, &state).await;
    }
    let failure = state.lost.get().map(Failure::for_lost_output);
    Ok(CommandOutcome { failure, ..CommandOutcome::default() }.note(texts::NO_LONGER_LISTENING))
}

fn client() -> Result<reqwest::Client, Failure> {
    let builder = || {
        reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(REQUEST_TIMEOUT)
    };
    // Without root certificates the client cannot be built, even if it forwards only over http.
    let client = builder().build().or_else(|_| builder().tls_certs_only([]).build());
    client.map_err(|err| Failure::for_failed_start(&err))
}

/// The state that all requests share.
struct ListenState {
    config: WebhookListener,
    client: reqwest::Client,
    /// Notified when standard output can no longer be written to.
    closed: Notify,
    /// The reason that an event could not be written, unless it was a closed pipe.
    lost: OnceLock<String>,
}

/// Accepts connections until Ctrl-C, or until standard output is closed; open requests still get their responses.
async fn serve(listener: TcpListener, state: &Arc<ListenState>) {
    let graceful = GracefulShutdown::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => serve_connection(stream, state, &graceful),
                // The process may be out of file descriptors; waiting avoids a busy loop.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            () = state.closed.notified() => break,
            _ = tokio::signal::ctrl_c() => break,
        }
    }
    drop(listener);
    // After that, connections that are still open are closed.
    let _ = tokio::time::timeout(SHUTDOWN_GRACE, graceful.shutdown()).await;
}

fn serve_connection(stream: TcpStream, state: &Arc<ListenState>, graceful: &GracefulShutdown) {
    let state = Arc::clone(state);
    let service = service_fn(move |request: Request<Incoming>| {
        let state = Arc::clone(&state);
        async move { Ok::<_, Infallible>(empty_response(state.handle_request(request).await)) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    let connection = graceful.watch(connection);
    tokio::spawn(async move {
        // A sender may close the connection at any time.
        let _ = connection.await;
    });
}

fn empty_response(status: u16) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    response
}

impl ListenState {
    /// Handles a request. The sender decides by the returned status whether to send it again.
    async fn handle_request(&self, request: Request<Incoming>) -> u16 {
        if request.method() != Method::POST {
            return ErrorCode::MethodNotAllowed.status();
        }
        let (head, body) = request.into_parts();
        let body = match timeout(REQUEST_TIMEOUT, read_body(body)).await {
            Ok(Some(body)) => body,
            Ok(None) => return ErrorCode::PayloadTooLarge.status(),
            Err(_) => return ErrorCode::RequestTimeout.status(),
        };
        match self
            .config
            .webhook
            .verify(&head.headers, &body)
            .and_then(|verified| Ok((verified.id().to_owned(), verified.event()?)))
        {
            Ok((id, event)) => self.accept(id, event, (&head, body)).await,
            Err(err) => {
                self.record_write(self.config.events.rejected(err, clock::now()));
                rejection_status(err)
            }
        }
    }

    /// Forwards a webhook, if requested, and prints it.
    async fn accept(&self, id: String, event: WebhookEvent, (head, body): (&Parts, Bytes)) -> u16 {
        let document = serde_json::from_slice(&body).unwrap_or_default();
        let forwarded = match &self.config.forward_to {
            Some(target) => Some(self.forward(target, head, body).await),
            None => None,
        };
        let status = match &forwarded {
            None => StatusCode::OK.as_u16(),
            Some(Ok(status)) => *status,
            Some(Err(_)) => ErrorCode::ServiceUnavailable.status(),
        };
        self.record_write(self.config.events.accepted(&ReceivedEvent {
            id,
            event,
            body: document,
            forwarded,
        }));
        status
    }

    /// Forwards the webhook byte for byte, so that its signature stays valid.
    async fn forward(&self, target: &Url, head: &Parts, body: Bytes) -> Result<u16, Failure> {
        let mut headers = head.headers.clone();
        for name in HOP_BY_HOP_HEADERS {
            headers.remove(name);
        }
        let sent = self.client.post(target.clone()).headers(headers).body(body).send().await;
        sent.map(|response| response.status().as_u16()).map_err(|_| {
            let values = [("address", target.as_str())];
            let message = texts::NOT_FORWARDED.with(&values);
            Failure::new(Exit::NotExecuted, "FORWARD", message).hint(texts::CHECK_RECEIVER)
        })
    }

    fn record_write(&self, result: std::io::Result<()>) {
        let Err(fault) = result else { return };
        if !output::is_closed_pipe(&fault) {
            self.lost.get_or_init(|| fault.to_string());
        }
        self.closed.notify_one();
    }
}

/// Reads the whole body; returns `None` if it is too large or incomplete. Frames are copied, because each keeps a whole
/// read buffer of the connection alive.
async fn read_body(mut body: Incoming) -> Option<Bytes> {
    let mut whole = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.ok()?.into_data() else { continue };
        if data.len() > MAX_BODY_BYTES - whole.len() {
            return None;
        }
        whole.extend_from_slice(&data);
    }
    Some(whole.into())
}

/// Headers of the connection, not of the message (RFC 9110, 7.6.1), and those that the client sets.
const HOP_BY_HOP_HEADERS: [HeaderName; 8] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::HOST,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Returns 401 for a signature mismatch, 400 for everything else.
fn rejection_status(err: WebhookError) -> u16 {
    match err {
        WebhookError::Signature => ErrorCode::AuthInvalidApiKey.status(),
        _ => ErrorCode::ValidationFailed.status(),
    }
}
