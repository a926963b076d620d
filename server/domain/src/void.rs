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

#[cfg(test)]
mod tests {
    use parcelo_types::Language;
    use serde_json::Value;

    use super::*;
    use crate::{ParcelRowId, Step, Version, parcel::tests::parcel, state::TRANSITIONS};

    const CREATED: Millis = Millis(1_000);
    const NOW: Millis = Millis(9_000);

    fn request(numbers: &[&str]) -> VoidRequest {
        let body = json!({
            "idempotencyKey": "void-2026-01-10", "trackingNumbers": numbers, "reason": "Recalled",
        });
        serde_json::from_value(body).unwrap()
    }

    #[test]
    fn an_order_is_voided_once_and_only_before_it_leaves() {
        for (state, _) in TRANSITIONS {
            let expected = if state == State::Voided {
                Ok(Vec::new())
            } else if [State::Ordered, State::LabelGenerated].contains(&state) {
                Ok(vec![(State::Voided, 3)])
            } else {
                Err(ErrorCode::ParcelNotVoidable)
            };
            let moves = |ops: Vec<StoreOp>| {
                let moves = ops.iter().filter_map(|op| match op {
                    StoreOp::Move { event, .. } => Some((event.state, event.sequence)),
                    _ => None,
                });
                moves.collect::<Vec<_>>()
            };
            let found = void_parcel_ops(&parcel(state, CREATED), NOW);
            assert_eq!(found.map(moves).map_err(|refusal| refusal.code), expected, "{state:?}");
        }
    }

    #[test]
    fn each_requested_order_has_a_result_and_only_what_changes_is_written() {
        let step = Some(Step { index: 0, due: NOW });
        let found = [
            Ok(ParcelRow { step, ..parcel(State::LabelGenerated, CREATED) }),
            Ok(parcel(State::Voided, CREATED)),
            Ok(parcel(State::InTransit, CREATED)),
            Err(Refusal::from(ErrorCode::ParcelNotFound)),
        ];
        let decision = void(&request(&["A", "B", "C", "D"]), &found, "req_1", NOW).unwrap();
        assert_eq!(decision.expect, [(ParcelRowId(1), Version(1))]);
        let [StoreOp::Move { event, .. }, StoreOp::CancelSteps { .. }] = decision.ops.as_slice()
        else {
            panic!("{:?}", decision.ops)
        };
        let reason = event.description.as_deref();
        assert_eq!((event.sequence, event.state, reason), (3, State::Voided, Some("Recalled")));
        let body: Value = serde_json::from_slice(&decision.body).unwrap();
        assert_eq!(body["meta"]["requestId"], "req_1");
        let results: Vec<_> = body["data"]["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|result| {
                let code = &result["error"]["code"];
                json!([result["voided"], result["alreadyVoided"], result["voidedAt"], code])
            })
            .collect();
        assert_eq!(
            results,
            [
                json!([true, false, "1970-01-01T00:00:09.000Z", null]),
                json!([true, true, "1970-01-01T00:00:01.000Z", null]),
                json!([false, null, null, "PARCEL_NOT_VOIDABLE"]),
                json!([false, null, null, "PARCEL_NOT_FOUND"]),
            ]
        );
    }

    #[test]
    fn if_no_order_is_void_the_refusal_has_the_common_reason_and_each_result() {
        let in_transit = Some(State::InTransit);
        let table = [
            ([None, None], "PARCEL_NOT_FOUND", "No parcel with this tracking number."),
            (
                [in_transit, in_transit],
                "PARCEL_NOT_VOIDABLE",
                "A parcel in status IN_TRANSIT can no longer be voided.",
            ),
            (
                [in_transit, Some(State::Delivered)],
                "PARCEL_NOT_VOIDABLE",
                "A parcel in status IN_TRANSIT, DELIVERED can no longer be voided.",
            ),
            ([None, in_transit], "VOID_FAILED", "None of the parcels could be voided."),
        ];
        for (states, code, text) in table {
            let found = states.map(|state| {
                let parcel = state.map(|state| parcel(state, CREATED));
                parcel.ok_or_else(|| Refusal::from(ErrorCode::ParcelNotFound))
            });
            let refusal = void(&request(&["A", "B"]), &found, "req_1", NOW).unwrap_err();
            assert_eq!((refusal.code.code(), &*refusal.text(Language::En)), (code, text));
            let details = refusal.to_envelope("req_1").error.details.unwrap();
            assert_eq!(details["results"].as_array().map(Vec::len), Some(2), "{details}");
        }
    }
}
