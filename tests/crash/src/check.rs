//! Starts the service on the files that a crash has left and checks each guarantee.

use std::path::Path;

use crate::{
    disk::{Expectations, Run},
    facts::{
        Reader, Violation,
        ViolationKind::{Duplicated, Lost, Unreadable},
    },
    recording::{DATABASE, order},
    server::{ApiRequest, Server},
};

/// Starts the service on a folder's files, and checks the rows, the responses to repeated requests and the next order.
pub fn check(run: &Run, expected: &Expectations, folder: &Path) -> Result<(), Violation> {
    let file = folder.join(DATABASE);
    let server = Server::open(&file, 99).map_err(|error| Violation(Unreadable, error))?;
    let checked = check_rows(expected, &file).and_then(|(expected, reader)| {
        if !expected.is_set_up {
            return Ok(());
        }
        check_repeated_requests(run, &expected, &server)?;
        check_next_order(run, &expected, (&reader, &server))
    });
    server.close();
    checked
}

/// Checks the rows before any request. Returns the expectations from then on.
fn check_rows(expected: &Expectations, file: &Path) -> Result<(Expectations, Reader), Violation> {
    let reader = Reader::open(file)?;
    let integrity = reader.integrity()?;
    if integrity != "ok" {
        return Err(Violation(Unreadable, integrity));
    }
    let (found, mut expected) = (reader.facts()?, expected.clone());
    let is_left = |fact: &&String| fact.starts_with("key ") || fact.starts_with("endpoint ");
    // A reset that was not acknowledged is complete or has changed nothing.
    let is_reset = expected.is_resetting && reader.parcels()? == 0;
    let mut facts = expected.facts.iter().filter(|fact| !is_reset || is_left(fact));
    if let Some(lost) = facts.find(|fact| !found.contains(*fact)) {
        return Err(Violation(Lost, lost.clone()));
    }
    if is_reset {
        expected = expected.reset();
    }
    reader.check_consistency()?;
    Ok((expected, reader))
}

/// Repeats each request under its key. An acknowledged request must get the same response. A request that was in flight
/// is executed now, unless it was executed before the crash.
fn check_repeated_requests(
    run: &Run,
    expected: &Expectations,
    server: &Server,
) -> Result<(), Violation> {
    let posts: Vec<_> = expected.requests.keys().map(|at| run.requests[*at].0.clone()).collect();
    let responses = server.send(&posts, &run.key);
    for ((at, was_acknowledged), (post, response)) in
        expected.requests.iter().zip(posts.iter().zip(responses))
    {
        let text = format!("{} to {}", response.text(), post.body);
        if response.status >= 300 {
            return Err(Violation(Unreadable, text));
        }
        let is_created_now = response.status == 201;
        // For a request that was in flight, only the status of a create says whether it had been executed.
        let was_executed = *was_acknowledged || post.creates() && !is_created_now;
        let is_different =
            run.requests[*at].1.as_ref().is_some_and(|first| first.body != response.body);
        if *was_acknowledged && is_created_now || was_executed && is_different {
            return Err(Violation(Lost, text));
        }
    }
    Ok(())
}

/// Checks that the next order is accepted and that there is one parcel for each key.
fn check_next_order(
    run: &Run,
    expected: &Expectations,
    (reader, server): (&Reader, &Server),
) -> Result<(), Violation> {
    let response = &server.send(&[order(900_000)], &run.key)[0];
    if response.status != 201 {
        return Err(Violation(Unreadable, response.text()));
    }
    let creates = |at: &&usize| ApiRequest::creates(&run.requests[**at].0);
    let keys = expected.parcels + expected.requests.keys().filter(creates).count() as i64 + 1;
    let found = reader.parcels()?;
    if found != keys {
        let kind = if found < keys { Lost } else { Duplicated };
        return Err(Violation(kind, format!("{found} parcels of {keys} keys")));
    }
    reader.check_consistency()
}
