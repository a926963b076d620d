//! `track --watch`: shows the status of parcels until each is delivered, being returned or void, or its delivery has
//! failed.

use std::{collections::HashMap, time::Duration};

use parcelo::{Client, ParcelStatus, TrackingNumber, model::TrackingRecord};

use super::{call, track};
use crate::{
    failure::{Exit, Failure},
    output::{self, Screen, format::OutputOptions},
    results::{CommandOutcome, FoundItems},
    resume::ResumeHint,
};

/// The parcels to watch, and the interval.
#[derive(Debug)]
pub(crate) struct WatchOptions {
    pub(crate) numbers: Vec<TrackingNumber>,
    pub(crate) history: bool,
    pub(crate) every: Duration,
    pub(crate) output: OutputOptions,
}

/// Maximum number of consecutive rounds that may fail before the watch ends.
const MAX_FAILED_ROUNDS: u32 = 5;

pub(super) async fn watch(
    client: &Client,
    options: &WatchOptions,
) -> Result<CommandOutcome, Failure> {
    let mut screen = Screen::new(options.output);
    let mut seen = LastStatuses::default();
    let mut failures = 0;
    loop {
        match track::records(client, &options.numbers, options.history).await {
            Ok((FoundItems { found: records, .. }, missing)) => {
                failures = 0;
                let changed = seen.changes(&records);
                match screen.show(&records, &changed) {
                    Ok(()) => {}
                    // The reader of the pipe has read enough (`… | head`).
                    Err(fault) if output::is_closed_pipe(&fault) => {
                        return Ok(CommandOutcome {
                            failure: missing,
                            ..CommandOutcome::default()
                        });
                    }
                    Err(fault) => return Err(Failure::for_lost_output(&fault)),
                }
                if records.iter().all(|record| is_over(&record.status)) {
                    return Ok(CommandOutcome::default().failing(missing));
                }
            }
            Err(failure) if failures < MAX_FAILED_ROUNDS && is_transient(&failure) => {
                failures += 1;
                screen.show_failure(&failure);
            }
            Err(failure) => return Err(failure),
        }
        pause(options.every).await?;
    }
}

/// Returns `true` if the next round may succeed.
fn is_transient(failure: &Failure) -> bool {
    matches!(failure.exit, Exit::NotExecuted | Exit::RateLimit)
}

/// Waits for the next round; Ctrl-C ends the watch.
async fn pause(wait: Duration) -> Result<(), Failure> {
    let slept = async {
        tokio::time::sleep(wait).await;
        Ok(())
    };
    call::unless_interrupted(slept, ResumeHint::ReadOnly).await
}

/// The last status of each parcel.
#[derive(Debug, Default)]
struct LastStatuses(HashMap<TrackingNumber, ParcelStatus>);

impl LastStatuses {
    /// Returns the positions of the parcels whose status has changed.
    fn changes(&mut self, records: &[TrackingRecord]) -> Vec<usize> {
        let mut changed = Vec::new();
        for (position, record) in records.iter().enumerate() {
            let before = self.0.insert(record.tracking_number.clone(), record.status.clone());
            if before.as_ref() != Some(&record.status) {
                changed.push(position);
            }
        }
        changed
    }
}

/// Returns `true` if the parcel's status is final or needs a person to act. A carrier may try again after a failed
/// delivery, but a watch that waited for it would rarely end.
fn is_over(status: &ParcelStatus) -> bool {
    status.is_final() || matches!(status, ParcelStatus::DeliveryFailed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(number: &str, status: &str) -> TrackingRecord {
        serde_json::from_value(serde_json::json!({"trackingNumber": number, "status": status,
            "statusName": status, "estimatedDelivery": "2026-01-13T23:59:59-05:00"}))
        .unwrap()
    }

    #[test]
    fn only_changed_statuses_are_printed() {
        let mut seen = LastStatuses::default();
        let (one, other) = ("SB-SUCCESS-0001", "SB-SUCCESS-0002");
        let first = [record(one, "ORDERED"), record(other, "IN_TRANSIT")];
        assert_eq!(seen.changes(&first), [0, 1]);
        assert_eq!(seen.changes(&first), [0; 0]);
        assert_eq!(seen.changes(&[record(one, "ORDERED"), record(other, "DELIVERED")]), [1]);
    }
}
