//! Voids orders: decides which of the requested orders can be voided, and the result of each
//! (docs/api.md, Void orders).

use parcelo_types::{
    ErrorCode, VoidRequest,
    model::{VoidResult, VoidedOrders},
};
use serde_json::json;

use super::{Cause, Decision, Event, ParcelRow, Refusal, State, StoreOp, to_enveloped_body};
use crate::Millis;

/// Returns the decision that voids the requested orders. `found` has the parcels for the requested numbers, in their
/// order, or the reason why one is missing.
pub fn void(
    request: &VoidRequest,
    found: &[Result<ParcelRow, Refusal>],
    request_id: &str,
    now: Millis,
) -> Result<Decision, Refusal> {
    let (mut expect, mut ops) = (Vec::new(), Vec::new());
    for parcel in found.iter().flatten().filter(|parcel| can_be_voided(parcel.state)) {
        expect.push((parcel.key, parcel.version));
        ops.extend(void_ops(parcel, request.reason.clone(), now));
    }
    let requested = request.tracking_numbers.iter().zip(found);
    let results: Vec<_> =
        requested.map(|(number, parcel)| void_result(number, parcel, now)).collect();
    if !results.iter().any(|result| result.voided) {
        return Err(common_refusal(&results));
    }
    let voided = VoidedOrders::new(results.into_iter().map(Ok).collect());
    let body = to_enveloped_body(voided, request_id);
    Ok(Decision { body, expect, ops })
}

/// Returns the operations that void one parcel; none if it is void already.
pub fn void_parcel_ops(parcel: &ParcelRow, now: Millis) -> Result<Vec<StoreOp>, Refusal> {
    match parcel.state {
        State::Voided => Ok(Vec::new()),
        state if can_be_voided(state) => Ok(void_ops(parcel, None, now)),
        state => Err(Refusal::for_status(ErrorCode::ParcelNotVoidable, state)),
    }
}

/// Returns `true` if a parcel in this state can be voided.
pub fn can_be_voided(state: State) -> bool {
    state.can_become_by(Cause::Void, State::Voided)
}

fn void_ops(parcel: &ParcelRow, reason: Option<String>, now: Millis) -> Vec<StoreOp> {
    let event = Event {
        sequence: parcel.last_sequence + 1,
        state: State::Voided,
        at: now,
        location: parcel.origin.clone(),
        description: reason,
    };
    let mut ops = vec![StoreOp::Move { parcel: parcel.key, event }];
    ops.extend(parcel.step.map(|_| StoreOp::CancelSteps { parcel: parcel.key }));
    ops
}

fn void_result(number: &str, parcel: &Result<ParcelRow, Refusal>, now: Millis) -> VoidResult {
    let parcel = match parcel {
        Ok(parcel) => parcel,
        Err(refusal) => return failed_result(number, None, refusal),
    };
    let is_void = parcel.state == State::Voided;
    if !is_void && !can_be_voided(parcel.state) {
        let refusal = Refusal::for_status(ErrorCode::ParcelNotVoidable, parcel.state);
        return failed_result(number, Some(parcel.state), &refusal);
    }
    let at = if is_void { parcel.updated_at } else { now };
    VoidResult::voided(number, parcel.state.into(), at.to_utc()).with_already_voided(is_void)
}

fn failed_result(number: &str, state: Option<State>, refusal: &Refusal) -> VoidResult {
    let mut failed = VoidResult::failed(number, refusal.to_item());
    failed.status = state.map(Into::into);
    failed
}

/// Returns the refusal if nothing was voided: the error that all items share, or a general one.
fn common_refusal(results: &[VoidResult]) -> Refusal {
    let all = |code: ErrorCode| {
        results
            .iter()
            .all(|result| result.error.as_ref().is_some_and(|error| error.code == code.code()))
    };
    let states: Vec<_> = results.iter().filter_map(|result| result.status.as_ref()).collect();
    let refusal = if all(ErrorCode::ParcelNotFound) {
        ErrorCode::ParcelNotFound.into()
    } else if all(ErrorCode::ParcelNotVoidable) {
        let mut names: Vec<_> = states.iter().map(|state| state.code()).collect();
        names.dedup();
        Refusal::for_statuses(ErrorCode::ParcelNotVoidable, &names.join(", "))
    } else {
        ErrorCode::VoidFailed.into()
    };
    refusal.with_details(json!({ "results": results }))
}
