//! Asking the service: one call at a time, until it answers or the user has had enough.

use std::future::IntoFuture;

use parcelo::{Error, IdempotencyKey, TrackingNumber};

use crate::{failure::Failure, results::List};

/// The answer to a call. `key` is the one under which it writes, to resume with after Ctrl-C.
pub(super) async fn answer<T>(
    call: impl IntoFuture<Output = Result<T, Error>>,
    key: Option<&IdempotencyKey>,
) -> Result<T, Failure> {
    tokio::select! {
        answer = call.into_future() => Ok(answer?),
        pressed = tokio::signal::ctrl_c() => match pressed {
            Ok(()) => Err(Failure::interrupted(key)),
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
                failed.push((number.clone(), failure));
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
