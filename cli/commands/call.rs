//! Calls to the service, one at a time, which end with the response or with Ctrl-C.

use std::future::IntoFuture;

use parcelo::{Error, TrackingNumber};
use tokio::sync::mpsc;

use crate::{failure::Failure, resume::ResumeHint};

/// Makes a call that only reads.
pub(super) async fn execute_read<T>(
    call: impl IntoFuture<Output = Result<T, Error>>,
) -> Result<T, Failure> {
    execute(call, ResumeHint::ReadOnly).await
}

/// Makes a call; `resume` says how to resume if its outcome is unknown.
pub(super) async fn execute<T>(
    call: impl IntoFuture<Output = Result<T, Error>>,
    resume: ResumeHint<'_>,
) -> Result<T, Failure> {
    let response = async { call.await.map_err(|error| Failure::for_call(error, resume)) };
    unless_interrupted(response, resume).await
}

/// Runs a future to its end, unless Ctrl-C is pressed first.
pub(super) async fn unless_interrupted<T>(
    work: impl Future<Output = Result<T, Failure>>,
    resume: ResumeHint<'_>,
) -> Result<T, Failure> {
    tokio::select! {
        result = work => result,
        pressed = tokio::signal::ctrl_c() => match pressed {
            Ok(()) => Err(Failure::for_interrupt(resume)),
            // Without a signal handler, Ctrl-C ends the process directly.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Returns a channel that gets a message for each Ctrl-C.
pub(super) fn interrupts() -> mpsc::UnboundedReceiver<()> {
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() && sender.send(()).is_ok() {}
    });
    receiver
}

/// Makes a call for each parcel, one after the other. A failure that concerns only one parcel does not stop the others.
/// Returns the results, and a failure that names the failed parcels.
pub(super) async fn for_each<'a, T>(
    numbers: &'a [TrackingNumber],
    mut call: impl AsyncFnMut(&'a TrackingNumber) -> Result<T, Failure>,
) -> Result<(Vec<T>, Option<Failure>), Failure> {
    let (mut found, mut failed) = (Vec::new(), Vec::new());
    for number in numbers {
        match call(number).await {
            Ok(one) => found.push(one),
            Err(failure) => {
                let can_continue = failure.is_of_one_parcel();
                failed.push((number.to_string(), failure));
                if !can_continue {
                    break;
                }
            }
        }
    }
    let all = numbers.len();
    if let Some((_, failure)) = failed.pop_if(|_| all == 1) {
        return Err(failure);
    }
    let failure = (!failed.is_empty()).then(|| Failure::for_items(found.len(), all, failed));
    Ok((found, failure))
}
