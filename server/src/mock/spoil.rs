//! Answers whose body does not arrive as it should.

use std::{io, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, header, response::Parts},
    response::Response,
};
use futures_util::{StreamExt, stream};

use super::plan::Spoilt;

/// How much of a slow body comes at once.
pub(super) const PIECE: usize = 1024;
const BROKEN: &str = r#"{"success":true,"data":{"#;

/// The answer with its body spoilt.
pub(super) fn spoil(mut head: Parts, whole: &Bytes, spoilt: Spoilt) -> Response {
    head.headers.insert(header::CONTENT_LENGTH, whole.len().into());
    let body = match spoilt {
        Spoilt::Truncated => truncated(whole),
        Spoilt::Slow(pause) => slow(whole, pause),
        Spoilt::Malformed => {
            head.headers.insert(header::CONTENT_LENGTH, BROKEN.len().into());
            head.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            Body::from(BROKEN)
        }
    };
    Response::from_parts(head, body)
}

/// The body of an answer that says itself how long it is: cut off there, or broken off before.
pub(super) fn as_promised(head: &Parts, body: Bytes) -> Body {
    let promised = head.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    match promised.and_then(|length| length.parse::<usize>().ok()) {
        Some(length) if length > body.len() => broken_off(body),
        Some(length) => Body::from(body.slice(..length)),
        None => Body::from(body),
    }
}

fn truncated(whole: &Bytes) -> Body {
    broken_off(whole.slice(..whole.len() / 2))
}

fn broken_off(half: Bytes) -> Body {
    let half = Ok(half);
    let end = async {
        // So that the half leaves before the connection ends.
        tokio::task::yield_now().await;
        Err(io::Error::from(io::ErrorKind::UnexpectedEof))
    };
    Body::from_stream(stream::once(async { half }).chain(stream::once(end)))
}

fn slow(whole: &Bytes, pause: Duration) -> Body {
    let pieces: Vec<_> = whole.chunks(PIECE).map(|piece| whole.slice_ref(piece)).collect();
    let late = stream::iter(pieces).then(move |piece| async move {
        tokio::time::sleep(pause).await;
        Ok::<_, io::Error>(piece)
    });
    Body::from_stream(late)
}
