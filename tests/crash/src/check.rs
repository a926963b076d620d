//! Starts the service on the files that a crash has left and checks each guarantee.

use std::path::Path;

use crate::{
    disk::{Expectations, RecordedRun},
    facts::{
        Reader, Violation,
        ViolationKind::{Duplicated, Lost, Unreadable},
    },
    recording::{DATABASE, order_request},
    server::{ApiRequest, Server},
};

/// Starts the service on a folder's files, and checks the rows, the responses to repeated requests and the next order.
pub fn check(run: &RecordedRun, expected: &Expectations, folder: &Path) -> Result<(), Violation> {
    let file = folder.join(DATABASE);
    let server = Server::open(&file, 99).map_err(|error| Violation(Unreadable, error))?;
    let checked = check_rows(expected, &file).and_then(|(expected, reader)| {
        if !expected.is_set_up {
            return Ok(());
        }
        check_repeated_requests(run, &expected, &server)?;
        check_next_order(run, &expected, &reader, &server)
    });
    server.close();
    checked
}

/// Checks the rows before any request is sent. Returns the expectations that hold from then on, and the reader.
fn check_rows(expected: &Expectations, file: &Path) -> Result<(Expectations, Reader), Violation> {
    let reader = Reader::open(file)?;
    let integrity = reader.integrity()?;
    if integrity != "ok" {
        return Err(Violation(Unreadable, integrity));
    }
    let (found, mut expected) = (reader.facts()?, expected.clone());
    let survives_reset = |fact: &&String| fact.starts_with("key ") || fact.starts_with("endpoint ");
    // A reset that was not acknowledged has either been executed completely or changed nothing.
    let is_reset = expected.is_resetting && reader.count_parcels()? == 0;
    let mut facts = expected.facts.iter().filter(|fact| !is_reset || survives_reset(fact));
    if let Some(lost) = facts.find(|fact| !found.contains(*fact)) {
        return Err(Violation(Lost, lost.clone()));
    }
    if is_reset {
        expected = expected.after_reset();
    }
    reader.check_consistency()?;
    Ok((expected, reader))
}

/// Repeats each request under its idempotency key. An acknowledged request must get the same response. A request that
/// was in flight is executed now, unless it was executed before the crash.
fn check_repeated_requests(
    run: &RecordedRun,
    expected: &Expectations,
    server: &Server,
) -> Result<(), Violation> {
    let api_requests: Vec<_> =
        expected.requests.keys().map(|index| run.requests[*index].0.clone()).collect();
    let responses = server.send(&api_requests, &run.api_key);
    for ((index, was_acknowledged), (api_request, response)) in
        expected.requests.iter().zip(api_requests.iter().zip(responses))
    {
        let text = format!("{} to {}", response.text(), api_request.body);
        if response.status >= 300 {
            return Err(Violation(Unreadable, text));
        }
        let is_created_now = response.status == 201;
        // For a request that was in flight, only the status of an order's creation shows whether it had been executed.
        let was_executed = *was_acknowledged || api_request.is_create() && !is_created_now;
        let is_different =
            run.requests[*index].1.as_ref().is_some_and(|first| first.body != response.body);
        if *was_acknowledged && is_created_now || was_executed && is_different {
            return Err(Violation(Lost, text));
        }
    }
    Ok(())
}

/// Checks that the next order is accepted and that there is one parcel for each idempotency key.
fn check_next_order(
    run: &RecordedRun,
    expected: &Expectations,
    reader: &Reader,
    server: &Server,
) -> Result<(), Violation> {
    let response = &server.send(&[order_request(900_000)], &run.api_key)[0];
    if response.status != 201 {
        return Err(Violation(Unreadable, response.text()));
    }
    let is_create = |index: &&usize| ApiRequest::is_create(&run.requests[**index].0);
    let key_count =
        expected.parcels + expected.requests.keys().filter(is_create).count() as i64 + 1;
    let found = reader.count_parcels()?;
    if found != key_count {
        let kind = if found < key_count { Lost } else { Duplicated };
        return Err(Violation(kind, format!("{found} parcels of {key_count} keys")));
    }
    reader.check_consistency()
}
