//! The content of an error: its kind, and the parts of the response that it keeps.

use std::time::Duration;

use parcelo::{
    CountryCode, Error, ErrorKind, Parcel, ParcelStatus, RateLimit, Timeouts,
    calls::StopReason,
    model::{Downloads, LabelId, LabelLink, LabelMetadata, ParcelId, ParcelSummary, RequestId},
    transport::Phase,
};
use serde_json::json;

use crate::{
    scripted_transport::{
        Piece, RECORD, ScriptedTransport, Step, client_with, number, order, refusal, response,
    },
    unknown_values::parcel,
};

#[tokio::test(start_paused = true)]
async fn a_call_without_time_left_is_a_timeout_not_a_rate_limit() {
    let (client, script) = ScriptedTransport::client([response(200, RECORD)]);
    let hasty = client.with_timeouts(Timeouts::default().total(Duration::ZERO));
    for place_in_line in 0..3 {
        let error = hasty.tracking().get(&number()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout, "{place_in_line}: {error}");
        assert_eq!(error.stop_reason(), Some(StopReason::Deadline));
        assert!(error.to_string().contains("nothing was sent"), "{error}");
        assert!(!error.may_have_executed() && error.retry_after().is_none());
    }
    assert!(script.sent_requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_queue_longer_than_the_timeout_is_a_rate_limit_error() {
    let (client, _) = client_with([response(200, RECORD)], |builder| {
        builder.rate_limit(RateLimit::adaptive().burst(1))
    });
    let hasty = client.with_timeouts(Timeouts::default().total(Duration::from_millis(1)));
    hasty.tracking().get(&number()).await.unwrap();
    let error = hasty.tracking().get(&number()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RateLimited, "{error}");
    assert!(error.retry_after() > Some(Duration::from_millis(1)));
}

#[tokio::test(start_paused = true)]
async fn not_sent_is_reported_only_if_no_attempt_was_sent() {
    for (earlier, nothing_sent) in [
        (Step::Fail(Phase::NotSent), true),
        (Step::Fail(Phase::Untrusted), true),
        (Step::Fail(Phase::Timeout), false),
        (response(503, ""), false),
        (response(429, ""), false),
    ] {
        let (client, _) = ScriptedTransport::client([earlier.clone(), Step::Fail(Phase::NotSent)]);
        let error = client.tracking().get(&number()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Network, "{earlier:?}");
        let is_reported = error.to_string().contains("nothing was sent");
        assert_eq!(is_reported, nothing_sent, "{earlier:?}: {error}");
    }
    // If all attempts of a write were refused it cannot have been executed, but it was sent.
    let (client, script) =
        ScriptedTransport::client([response(429, ""), Step::Fail(Phase::NotSent)]);
    let error = client.orders().create(&order()).await.unwrap_err();
    assert!(!error.may_have_executed() && script.sent_requests().len() > 1);
    assert!(!error.to_string().contains("nothing was sent"), "{error}");
}

/// Returns the error of a creation that gets this response.
async fn refused(step: Step) -> Error {
    ScriptedTransport::client([step]).0.orders().create(&order()).await.unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn a_refusal_from_another_service_is_unexpected() {
    for status in [400, 404, 409, 413, 415, 422] {
        for body in ["<html>nginx</html>", "", r#"{"error": "no"}"#] {
            let error = refused(response(status, body)).await;
            assert_eq!(error.kind(), ErrorKind::Unexpected, "{status} {body}");
            assert_eq!(error.status(), Some(status));
        }
        let own = refused(response(status, refusal("SOME_CODE"))).await;
        assert_ne!(own.kind(), ErrorKind::Unexpected, "{status}");
    }
    // The caller has the same options, whichever server answered.
    for (status, kind) in [
        (401, ErrorKind::Authentication),
        (403, ErrorKind::Forbidden),
        (429, ErrorKind::RateLimited),
        (503, ErrorKind::Server),
    ] {
        assert_eq!(refused(response(status, "<html>")).await.kind(), kind, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_oversized_response_keeps_its_status_and_request_id() {
    let announced = response(201, "").with_header("content-length", (9_u64 << 20).to_string());
    let piece = Piece::Bytes(vec![b' '; 1 << 20].into());
    let endless = Step::in_pieces(201, vec![piece; 9]);
    for step in [announced, endless] {
        let error = refused(step.with_header("x-request-id", "req_1")).await;
        assert_eq!((error.kind(), error.status()), (ErrorKind::Decode, Some(201)));
        assert_eq!(error.attempts(), 1);
        assert!(error.to_string().contains("larger than allowed"), "{error}");
        assert_eq!(error.request_id().map(RequestId::as_str), Some("req_1"), "{error}");
        assert!(error.may_have_executed());
    }
}

#[tokio::test(start_paused = true)]
async fn an_unrequested_compressed_response_is_an_error() {
    let step = response(201, "\u{1f}\u{8}").with_header("content-encoding", "gzip");
    let error = refused(step).await;
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("content-encoding: gzip"), "{cause}");
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_row_does_not_lose_the_found_parcels() {
    let rows = [parcel("SB-SUCCESS-0001"), json!({"new": 1}), parcel("SB-SUCCESS-0002")];
    let meta = json!({"page": 1, "limit": 100, "total": 3, "totalPages": 1});
    let page = json!({"success": true, "data": rows, "meta": meta}).to_string();
    let page = response(200, page).with_header("x-request-id", "req_1");
    let (client, _) = ScriptedTransport::client([response(503, ""), page]);
    let error = client.orders().find("1001").await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Decode, 2));
    assert_eq!(error.request_id().map(RequestId::as_str), Some("req_1"));
    assert_eq!(error.unreadable().unwrap().json()["new"], 1);
    let found: Vec<_> =
        error.found().iter().map(|parcel| parcel.tracking_number.as_str()).collect();
    assert_eq!(found, ["SB-SUCCESS-0001", "SB-SUCCESS-0002"]);
}

#[tokio::test(start_paused = true)]
async fn debug_output_hides_the_signature_of_a_label_link() {
    const LINK: &str = "http://h/files/SB-SUCCESS-0001.pdf?sig=CANARY";
    let id = || ParcelId::unchecked("par_1");
    let created = Parcel::new(id(), number(), LINK);
    let listed = ParcelSummary::new(id(), number(), ParcelStatus::Ordered, CountryCode::EC)
        .with_label_url(LINK);
    let label = LabelMetadata::new(LabelId::unchecked("lbl_1"), number())
        .with_label_url(LINK)
        .with_downloads(Downloads::new(LINK, LINK, LINK));
    let shown = format!("{created:?} {listed:?} {label:?}");
    assert!(!shown.contains("CANARY"), "{shown}");
    assert_eq!(shown.matches("http://h/files/SB-SUCCESS-0001.pdf?***").count(), 6, "{shown}");
    assert_eq!(created.label_url.as_ref().map(LabelLink::as_str), Some(LINK));
    assert_eq!(serde_json::to_value(&label).unwrap()["downloads"]["ZPL"], LINK);
}

/// Returns an error, its cause, the cause of that, and so on.
pub(crate) fn causes(error: &parcelo::Error) -> impl Iterator<Item = &dyn std::error::Error> {
    std::iter::successors(Some(error as &dyn std::error::Error), |cause| (*cause).source())
}
