//! Reading an answer's body: never too much, never too late, and whole or not at all.

use std::{ops::RangeInclusive, time::Duration};

use bytes::Bytes;
use futures_util::StreamExt;
use http::{header::CONTENT_LENGTH, response};

use super::{
    BodyStream, Failure, Phase, TransportError,
    clock::{self, Deadline},
    failure::Head,
};

/// How long the next piece may take.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pace {
    /// Everything is there by then.
    By(Deadline),
    /// Each piece comes within this time of the one before.
    Each(Duration),
}

/// A body that is being read.
pub(super) struct Reader {
    head: Head,
    body: BodyStream,
    pace: Pace,
    size: RangeInclusive<u64>,
    promised: Option<u64>,
    seen: u64,
}

impl Reader {
    /// A reader of the body of an answer, which has such a size.
    pub(super) fn new(
        head: &response::Parts,
        body: BodyStream,
        size: RangeInclusive<u64>,
        pace: Pace,
    ) -> Self {
        let length = head.headers.get(CONTENT_LENGTH);
        let promised = length.and_then(|length| length.to_str().ok()?.parse().ok());
        let head = Head::new(head.status, &head.headers);
        Self { head, body, pace, size, promised, seen: 0 }
    }

    /// Of an answer to HEAD: its length is that of a body which does not come.
    pub(super) fn without_body(self) -> Self {
        Self { size: 0..=0, promised: None, ..self }
    }

    /// The length that the answer's head promised.
    pub(super) fn promised(&self) -> Option<u64> {
        self.promised
    }

    /// The next piece; none at the end of a body of the promised length.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        if self.promised.is_some_and(|length| length > *self.size.end()) {
            return Err(Failure::TooLarge(self.head.clone()));
        }
        let next = self.body.next();
        let next = match &mut self.pace {
            Pace::By(end) => end.wait(next).await,
            Pace::Each(idle) => Deadline::at(clock::after(*idle)).wait(next).await,
        };
        match next {
            Err(elapsed) => Err(TransportError::new(Phase::Timeout, elapsed).into()),
            // The head has arrived, so the request was sent, whatever the transport calls it.
            Ok(Some(Err(fault))) if fault.phase() == Phase::Timeout => Err(fault.into()),
            Ok(Some(Err(fault))) => Err(TransportError::new(Phase::MaybeSent, fault).into()),
            Ok(Some(Ok(piece))) => self.counted(piece).map(Some),
            Ok(None) if self.promised.is_some_and(|length| length != self.seen) => Err(truncated()),
            // Unpacked, nothing at all looks like a file that is whole.
            Ok(None) if self.seen < *self.size.start() => Err(truncated()),
            Ok(None) => Ok(None),
        }
    }

    fn counted(&mut self, piece: Bytes) -> Result<Bytes, Failure> {
        self.seen = self.seen.saturating_add(piece.len() as u64);
        if self.seen > *self.size.end() {
            Err(Failure::TooLarge(self.head.clone()))
        } else if self.promised.is_some_and(|length| self.seen > length) {
            Err(truncated())
        } else {
            Ok(piece)
        }
    }

    /// The whole body.
    pub(super) async fn whole(mut self) -> Result<Bytes, Failure> {
        let Some(first) = self.next().await? else { return Ok(Bytes::new()) };
        let Some(second) = self.next().await? else { return Ok(first) };
        let mut whole = Vec::from(first);
        whole.extend_from_slice(&second);
        while let Some(piece) = self.next().await? {
            whole.extend_from_slice(&piece);
        }
        Ok(whole.into())
    }
}

fn truncated() -> Failure {
    TransportError::new(Phase::MaybeSent, "the answer does not have the length it promised").into()
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    fn head() -> response::Parts {
        http::Response::new(()).into_parts().0
    }

    async fn read(promised: Option<&str>, pieces: &[&'static str]) -> Result<Bytes, Failure> {
        let mut head = head();
        if let Some(length) = promised {
            head.headers.insert(CONTENT_LENGTH, length.parse().unwrap());
        }
        let pieces: Vec<_> = pieces.iter().map(|piece| Ok(Bytes::from(*piece))).collect();
        let pace = Pace::Each(Duration::from_secs(1));
        Reader::new(&head, stream::iter(pieces).boxed(), 0..=10, pace).whole().await
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_is_whole_or_an_error() {
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
        for (promised, pieces, expected) in table {
            let whole = read(promised, pieces).await.ok();
            assert_eq!(whole.as_deref(), expected.map(str::as_bytes), "{promised:?} {pieces:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_body_times_out() {
        let start = clock::now();
        for (pace, secs) in [
            (Pace::Each(Duration::from_secs(3)), 3),
            (Pace::By(Deadline::at(start + Duration::from_secs(5))), 5),
        ] {
            let reader = Reader::new(&head(), stream::pending().boxed(), 0..=10, pace);
            let Err(Failure::Transport(fault)) = reader.whole().await else { panic!() };
            assert_eq!(fault.phase(), Phase::Timeout);
            assert_eq!(start.elapsed().as_secs(), secs);
        }
    }
}
