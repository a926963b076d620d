//! An extractor for axum: a handler that takes an `Event` is called only for messages that Parcelo has signed. The
//! example `webhook_receiver` shows how to process each event once.
//! `PARCELO_WEBHOOK_SECRETS=whsec_… cargo run --example webhook_extractor -- 127.0.0.1:3000`
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::{env, error::Error, sync::Arc, time::Duration};

use axum::body::{Body, HttpBody};
use axum::extract::{FromRequest, Request};
use axum::{Router, http::StatusCode, http::header::CONTENT_TYPE, routing::post};
use futures_util::StreamExt;
use parcelo::{model::WebhookEvent, webhook::Webhook};
use tokio::{net::TcpListener, time::timeout};

const MAX_BODY_BYTES: usize = 64 * 1024; // messages have less than 1 KB
const MAX_READ_TIME: Duration = Duration::from_secs(10);

/// A message's id, the same on every attempt, and its event.
struct Event(String, WebhookEvent);

impl FromRequest<Arc<Webhook>> for Event {
    type Rejection = StatusCode;

    async fn from_request(request: Request, webhook: &Arc<Webhook>) -> Result<Self, StatusCode> {
        let (head, body) = request.into_parts();
        let kind = head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
        if !kind.trim().eq_ignore_ascii_case("application/json") {
            return Err(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        }
        let body = timeout(MAX_READ_TIME, read_body(body)).await;
        let body = body.unwrap_or(Err(StatusCode::REQUEST_TIMEOUT))?;
        let message = webhook.verify(&head.headers, &body);
        let event = message.and_then(|message| Ok(Self(message.id().to_owned(), message.event()?)));
        event.map_err(|_| StatusCode::BAD_REQUEST)
    }
}

/// Reads the body unchanged, because the signature covers its bytes. Its chunks are copied: each would keep a whole
/// read buffer alive, and a body in tiny packets would fill the memory.
async fn read_body(body: Body) -> Result<Vec<u8>, StatusCode> {
    let (min_size, mut bytes) = (body.size_hint().lower(), Vec::new());
    let mut pieces = body.into_data_stream();
    while min_size <= MAX_BODY_BYTES as u64 && bytes.len() <= MAX_BODY_BYTES {
        let Some(piece) = pieces.next().await else { return Ok(bytes) };
        bytes.extend_from_slice(&piece.map_err(|_| StatusCode::BAD_REQUEST)?);
    }
    Err(StatusCode::PAYLOAD_TOO_LARGE)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let secrets = env::var("PARCELO_WEBHOOK_SECRETS")?;
    let webhook = Arc::new(Webhook::new(secrets.split(','))?.reject_replays(10_000));
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let listener = TcpListener::bind(address).await?;
    println!("listening on http://{}/", listener.local_addr()?);
    let receive = async |Event(id, event)| println!("{id} is {}", event.data.code());
    Ok(axum::serve(listener, Router::new().route("/", post(receive)).with_state(webhook)).await?)
}
