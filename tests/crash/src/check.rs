//! Starts the service on the files that a crash has left and checks each guarantee.

use std::{fmt, path::Path};

use crate::{
    facts::Reader,
    recording::{DATABASE, Expected, RequestKind, Run, SentRequest, order},
    server::{Answer, EmbeddedServer, Keys, Post},
};

/// A broken guarantee.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub guarantee: Guarantee,
    pub what: String,
}

/// A guarantee, named by the state of an order that breaks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Guarantee {
    /// Acknowledged orders exist, and repeating a request returns the same answer.
    Lost,
    /// A key has one order, and a tracking number one parcel.
    Doubled,
    /// The file is sound; the service starts on it and answers.
    Unreadable,
    /// A write exists as a whole, with its history and its events, or not at all.
    Half,
}

impl Guarantee {
    pub const ALL: [Self; 4] = [Self::Lost, Self::Doubled, Self::Unreadable, Self::Half];

    fn broken<T>(self, what: impl Into<String>) -> Result<T, Violation> {
        Err(Violation { guarantee: self, what: what.into() })
    }
}

impl fmt::Display for Guarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lost => "lost",
            Self::Doubled => "doubled",
            Self::Unreadable => "unreadable",
            Self::Half => "half written",
        })
    }
}

/// A connection to a service in this process or in another.
pub trait Client {
    fn send(&mut self, post: &Post, keys: &Keys) -> Result<Answer, String>;
}

impl Client for &EmbeddedServer {
    fn send(&mut self, post: &Post, keys: &Keys) -> Result<Answer, String> {
        Ok(EmbeddedServer::send(self, post, keys))
    }
}

/// Starts the service on a folder's files and repeats every request.
pub fn check(run: &Run, expected: &Expected, folder: &Path) -> Result<(), Violation> {
    let file = folder.join(DATABASE);
    let server =
        EmbeddedServer::open(&file, 99).or_else(|error| Guarantee::Unreadable.broken(error))?;
    let checked = check_open(run, expected, (&file, &server));
    server.close();
    checked
}

fn check_open(
    run: &Run,
    expected: &Expected,
    (file, server): (&Path, &EmbeddedServer),
) -> Result<(), Violation> {
    let reader = Reader::open(file).or_else(|error| Guarantee::Unreadable.broken(error))?;
    reader.integrity().or_else(|error| Guarantee::Unreadable.broken(error))?;
    let expected = &after_reset(expected, &reader)?;
    let found = reader.facts().or_else(|error| Guarantee::Unreadable.broken(error))?;
    if let Some(lost) = expected.facts.difference(&found).next() {
        return Guarantee::Lost.broken(lost.as_str());
    }
    check_consistency(&reader)?;
    if !expected.has_keys {
        return Ok(());
    }
    repeat(run, expected, server)?;
    accept_next(run, expected, (&reader, server))
}

fn check_consistency(reader: &Reader) -> Result<(), Violation> {
    match reader.contradiction() {
        Ok(None) => Ok(()),
        Ok(Some(found)) if found.starts_with("two") || found.contains("twice") => {
            Guarantee::Doubled.broken(found)
        }
        Ok(Some(found)) => Guarantee::Half.broken(found),
        Err(error) => Guarantee::Unreadable.broken(error),
    }
}

/// Returns the expectations after a reset that was not acknowledged: if no parcel is left the reset must be complete,
/// otherwise it must have changed nothing.
fn after_reset(expected: &Expected, reader: &Reader) -> Result<Expected, Violation> {
    let parcels = reader.parcels().or_else(|error| Guarantee::Unreadable.broken(error))?;
    if !expected.is_resetting || parcels > 0 {
        return Ok(expected.clone());
    }
    let left = reader.facts_of_all().or_else(|error| Guarantee::Unreadable.broken(error))?;
    let of_all = |fact: &&String| fact.starts_with("key ") || fact.starts_with("endpoint ");
    match expected.facts.iter().filter(of_all).find(|fact| !left.contains(*fact)) {
        Some(lost) => Guarantee::Lost.broken(lost.as_str()),
        None => Ok(expected.reset()),
    }
}

/// Repeats each request under its key. An acknowledged one gets the same answer; one that was in flight is executed now
/// unless it was before.
pub fn repeat(run: &Run, expected: &Expected, mut client: impl Client) -> Result<(), Violation> {
    for at in &expected.sent {
        let SentRequest { what: RequestKind::Post(post), answer: first } = &run.requests[*at]
        else {
            continue;
        };
        let answer =
            client.send(post, &run.keys).or_else(|error| Guarantee::Unreadable.broken(error))?;
        let text = || format!("{} to {}", String::from_utf8_lossy(&answer.body), post.body);
        let was_acknowledged = expected.acknowledged.contains(at);
        let is_created_now = answer.status == 201;
        match first {
            _ if answer.status >= 300 => return Guarantee::Unreadable.broken(text()),
            _ if was_acknowledged && is_created_now => return Guarantee::Lost.broken(text()),
            // For a request that was in flight, only the status of a create says whether it had been executed.
            Some(first)
                if (was_acknowledged || post.creates() && !is_created_now)
                    && first.body != answer.body =>
            {
                return Guarantee::Lost.broken(format!("another answer: {}", text()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Checks that the next order is accepted and that there is one parcel for each key.
fn accept_next(
    run: &Run,
    expected: &Expected,
    (reader, server): (&Reader, &EmbeddedServer),
) -> Result<(), Violation> {
    let answer = server.send(&order(900_000), &run.keys);
    if answer.status != 201 {
        return Guarantee::Unreadable.broken(String::from_utf8_lossy(&answer.body));
    }
    let creates = expected.sent.iter().filter(|at| run.requests[**at].what.creates()).count();
    let (expected, found) = (expected.parcels + creates + 1, reader.parcels());
    match found {
        Ok(found) if found < expected => {
            return Guarantee::Lost.broken(format!("{found} parcels of {expected} keys"));
        }
        Ok(found) if found > expected => {
            return Guarantee::Doubled.broken(format!("{found} parcels of {expected} keys"));
        }
        _ => {}
    }
    check_consistency(reader)
}
