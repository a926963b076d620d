//! Asking the service: one call at a time, until it answers or the user has had enough.

use std::future::IntoFuture;

use parcelo::{Error, TrackingNumber};

use crate::{failure::Failure, results::List, resume::ResumeHint};

/// The answer to a call that reads.
pub(super) async fn read<T>(
    call: impl IntoFuture<Output = Result<T, Error>>,
) -> Result<T, Failure> {
    answer(call, ResumeHint::Reads).await
}

/// The answer to a call; `resume` tells how to go on when there is none.
pub(super) async fn answer<T>(
    call: impl IntoFuture<Output = Result<T, Error>>,
    resume: ResumeHint<'_>,
) -> Result<T, Failure> {
    let answer = async { call.await.map_err(|error| Failure::of_call(error, resume)) };
    unless_interrupted(answer, resume).await
}

/// What some work comes to, unless Ctrl-C ends it.
pub(super) async fn unless_interrupted<T>(
    work: impl Future<Output = Result<T, Failure>>,
    resume: ResumeHint<'_>,
) -> Result<T, Failure> {
    tokio::select! {
        result = work => result,
        pressed = tokio::signal::ctrl_c() => match pressed {
            Ok(()) => Err(Failure::interrupted(resume)),
            // Without a handler Ctrl-C ends the process by itself.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Asks about one parcel after the other; one that fails by itself does not stop the others.
pub(super) async fn each<T>(
    numbers: &[TrackingNumber],
    mut ask: impl AsyncFnMut(&TrackingNumber) -> Result<T, Failure>,
) -> (List<T>, Option<Failure>) {
    let (mut found, mut failed) = (Vec::new(), Vec::new());
    for number in numbers {
        match ask(number).await {
            Ok(one) => found.push(one),
            Err(failure) => {
                let goes_on = failure.is_of_one_parcel();
                failed.push((number.to_string(), failure));
                if !goes_on {
                    break;
                }
            }
        }
    }
    let failure = match (numbers.len(), failed.pop()) {
        (_, None) => None,
        (1, Some((_, failure))) => Some(failure),
        (all, Some(last)) => {
            failed.push(last);
            Some(Failure::of_items(found.len(), all, failed))
        }
    };
    (List { asked: numbers.len(), found }, failure)
}
