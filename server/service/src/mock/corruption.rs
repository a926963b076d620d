//! Damages the bodies of responses.

use std::{io, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, header, response::Parts},
    response::Response,
};
use futures_util::{StreamExt, stream};

use super::fault_plan::Corruption;

/// The size of a slow body's chunks.
pub(super) const SLOW_CHUNK_BYTES: usize = 1024;
/// The body of a malformed response: JSON that ends too early.
const MALFORMED_JSON: &str = r#"{"success":true,"data":{"#;

/// Returns the response with a damaged body.
pub(super) fn corrupt_body(mut head: Parts, whole: &Bytes, corruption: Corruption) -> Response {
    head.headers.insert(header::CONTENT_LENGTH, whole.len().into());
    let body = match corruption {
        Corruption::Truncated => truncated_body(whole),
        Corruption::Slow(pause) => slow_body(whole, pause),
        Corruption::Malformed => {
            head.headers.insert(header::CONTENT_LENGTH, MALFORMED_JSON.len().into());
            head.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            Body::from(MALFORMED_JSON)
        }
    };
    Response::from_parts(head, body)
}

/// Fits the body of a reply to the `content-length` that the test gave. A longer body is cut off at that length; after
/// a shorter one the connection ends.
pub(super) fn fit_content_length(head: &Parts, body: Bytes) -> Body {
    let declared = head.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    match declared.and_then(|length| length.parse::<usize>().ok()) {
        Some(length) if length > body.len() => disconnect_after(body),
        Some(length) => Body::from(body.slice(..length)),
        None => Body::from(body),
    }
}

fn truncated_body(whole: &Bytes) -> Body {
    disconnect_after(whole.slice(..whole.len() / 2))
}

fn disconnect_after(beginning: Bytes) -> Body {
    let beginning = Ok(beginning);
    let end = async {
        // The first half is written to the socket before the connection ends.
        tokio::task::yield_now().await;
        Err(io::Error::from(io::ErrorKind::UnexpectedEof))
    };
    Body::from_stream(stream::once(async { beginning }).chain(stream::once(end)))
}

fn slow_body(whole: &Bytes, pause: Duration) -> Body {
    let pieces: Vec<_> =
        whole.chunks(SLOW_CHUNK_BYTES).map(|piece| whole.slice_ref(piece)).collect();
    let delayed = stream::iter(pieces).then(move |piece| async move {
        tokio::time::sleep(pause).await;
        Ok::<_, io::Error>(piece)
    });
    Body::from_stream(delayed)
}
