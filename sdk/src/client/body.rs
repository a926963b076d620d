//! Reading a response's body: bounded in size and time, and whole or not at all.

use std::{ops::RangeInclusive, time::Duration};

use bytes::Bytes;
use futures_util::StreamExt;
use http::{header::CONTENT_LENGTH, response};

use super::{
    BodyStream, Phase, TransportError,
    attempt_error::AttemptError,
    clock::{self, Deadline},
    response::ResponseSummary,
};

/// The limit on the time for reading a body.
#[derive(Debug, Clone, Copy)]
pub(super) enum ReadTimeout {
    /// All of the body must arrive by this deadline.
    WholeBody(Deadline),
    /// Each chunk must arrive within this time of the one before.
    BetweenChunks(Duration),
}

/// A body that is being read.
pub(super) struct BodyReader {
    head: ResponseSummary,
    body: BodyStream,
    timeout: ReadTimeout,
    size: RangeInclusive<u64>,
    content_length: Option<u64>,
    bytes_read: u64,
}

impl BodyReader {
    /// Returns a reader of a body whose size must be in `size`.
    pub(super) fn new(
        head: &response::Parts,
        body: BodyStream,
        size: RangeInclusive<u64>,
        timeout: ReadTimeout,
    ) -> Self {
        let length = head.headers.get(CONTENT_LENGTH);
        let content_length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        let head = ResponseSummary::new(head.status, &head.headers);
        Self { head, body, timeout, size, content_length, bytes_read: 0 }
    }

    /// Makes the reader expect no body: the response to a HEAD request has the `Content-Length` of a body that is not
    /// sent.
    pub(super) fn without_body(self) -> Self {
        Self { size: 0..=0, content_length: None, ..self }
    }

    pub(super) fn content_length(&self) -> Option<u64> {
        self.content_length
    }

    /// Returns the next chunk; `None` at the end of a body that has the announced length.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, AttemptError> {
        if self.content_length.is_some_and(|length| length > *self.size.end()) {
            return Err(self.too_large());
        }
        let next = self.body.next();
        let next = match &mut self.timeout {
            ReadTimeout::WholeBody(deadline) => deadline.wait(next).await,
            ReadTimeout::BetweenChunks(idle) => {
                Deadline::at(clock::from_now(*idle)).wait(next).await
            }
        };
        match next {
            Err(elapsed) => Err(TransportError::new(Phase::Timeout, elapsed).into()),
            // The head has arrived, so the request was sent, even if the transport reports another phase.
            Ok(Some(Err(error))) if error.phase() == Phase::Timeout => Err(error.into()),
            Ok(Some(Err(error))) => Err(TransportError::new(Phase::MaybeSent, error).into()),
            Ok(Some(Ok(chunk))) => self.count(chunk).map(Some),
            Ok(None) if self.content_length.is_some_and(|length| length != self.bytes_read) => {
                Err(truncated())
            }
            // After decompression, a body that was cut off before its first byte looks like a complete empty one.
            Ok(None) if self.bytes_read < *self.size.start() => Err(truncated()),
            Ok(None) => Ok(None),
        }
    }

    fn count(&mut self, chunk: Bytes) -> Result<Bytes, AttemptError> {
        self.bytes_read = self.bytes_read.saturating_add(chunk.len() as u64);
        if self.bytes_read > *self.size.end() {
            Err(self.too_large())
        } else if self.content_length.is_some_and(|length| self.bytes_read > length) {
            Err(truncated())
        } else {
            Ok(chunk)
        }
    }

    fn too_large(&self) -> AttemptError {
        AttemptError::TooLarge(self.head.clone())
    }

    /// Reads the whole body. A body in one chunk is not copied.
    pub(super) async fn read_all(mut self) -> Result<Bytes, AttemptError> {
        let Some(first) = self.next().await? else { return Ok(Bytes::new()) };
        let Some(second) = self.next().await? else { return Ok(first) };
        let mut whole = Vec::from(first);
        whole.extend_from_slice(&second);
        while let Some(chunk) = self.next().await? {
            whole.extend_from_slice(&chunk);
        }
        Ok(whole.into())
    }
}

fn truncated() -> AttemptError {
    TransportError::new(Phase::MaybeSent, "the response does not have the length that it announced")
        .into()
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    fn head() -> response::Parts {
        http::Response::new(()).into_parts().0
    }

    async fn read(announced: Option<&str>, chunks: &[&'static str]) -> Result<Bytes, AttemptError> {
        let mut head = head();
        if let Some(length) = announced {
            head.headers.insert(CONTENT_LENGTH, length.parse().unwrap());
        }
        let chunks: Vec<_> = chunks.iter().map(|chunk| Ok(Bytes::from(*chunk))).collect();
        let timeout = ReadTimeout::BetweenChunks(Duration::from_secs(1));
        BodyReader::new(&head, BodyStream::new(stream::iter(chunks)), 0..=10, timeout)
            .read_all()
            .await
    }

    #[tokio::test(start_paused = true)]
    async fn a_truncated_body_is_an_error() {
        let table: [(Option<&str>, &[&'static str], Option<&str>); 9] = [
            (None, &[], Some("")),
            (Some("0"), &[], Some("")),
            (Some("6"), &["abc", "de", "f"], Some("abcdef")),
            (None, &["abc"], Some("abc")),
            (Some("garbage"), &["abc"], Some("abc")),
            (Some("7"), &["abc", "def"], None),
            (Some("2"), &["abc"], None),
            (None, &["0123456789", "x"], None),
            (Some("11"), &[], None),
        ];
        for (announced, chunks, expected) in table {
            let whole = read(announced, chunks).await.ok();
            assert_eq!(whole.as_deref(), expected.map(str::as_bytes), "{announced:?} {chunks:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_body_times_out() {
        let start = clock::now();
        for (timeout, secs) in [
            (ReadTimeout::BetweenChunks(Duration::from_secs(3)), 3),
            (ReadTimeout::WholeBody(Deadline::at(start + Duration::from_secs(5))), 5),
        ] {
            let reader =
                BodyReader::new(&head(), BodyStream::new(stream::pending()), 0..=10, timeout);
            let Err(AttemptError::Transport(error)) = reader.read_all().await else { panic!() };
            assert_eq!(error.phase(), Phase::Timeout);
            assert_eq!(start.elapsed().as_secs(), secs);
        }
    }
}
