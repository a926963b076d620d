//! Tests that a parcel with an unreadable row fails alone when others are requested with it.

use parcelo_store::test_util::{Damage, damage};
use parcelo_types::{
    LabelFormat, ParcelStatus,
    internal::{BatchTracking, Envelope},
    model::{BatchResult, PageMeta, ParcelSummary, VoidedOrders},
};

use super::*;
use crate::service::WriteResponse;

const UNREADABLE_NUMBER: &str = "SB-SUCCESS-0000";

/// Creates three parcels; the first cannot be read.
async fn with_damaged_parcel() -> (TestService, Vec<String>) {
    let test = TestService::in_memory().await;
    let numbers: Vec<_> = (0..3).map(|number| format!("SB-SUCCESS-000{number}")).collect();
    for number in &numbers {
        test.create(number).await;
    }
    damage(test.service.store(), test.caller.tenant(), Damage::Parcel).await;
    (test, numbers)
}

#[tokio::test]
async fn a_list_omits_but_counts_an_unreadable_parcel() {
    let (test, numbers) = with_damaged_parcel().await;
    let (page, PageMeta { total, .. }) = test.list().await.unwrap();
    let mut listed: Vec<_> = page.iter().map(|parcel| parcel.tracking_number.to_string()).collect();
    listed.sort();
    assert_eq!((&listed[..], total), (&numbers[1..], 3));
    assert!(test.unreadable_reads().await >= 1);
}

#[tokio::test]
async fn steps_of_readable_parcels_are_taken() {
    let (test, _) = with_damaged_parcel().await;
    test.clock.set(START.plus(30 * Millis::DAY));
    let fired = test.service.take_due_steps().await.unwrap();
    assert!(fired.iter().any(|step| step.status == ParcelStatus::Delivered), "{fired:?}");
    let counted = test.unreadable_reads().await;
    test.service.take_due_steps().await.unwrap();
    assert_eq!(test.unreadable_reads().await, counted, "a row that is skipped is reported once");
}

#[tokio::test]
async fn an_unreadable_parcel_fails_alone_in_a_batch() {
    let (test, numbers) = with_damaged_parcel().await;
    let body = json!({ "trackingNumbers": numbers, "includeHistory": true });
    let tracked = test.service.track_batch(&test.caller, &body, Language::En).await;
    let BatchTracking { summary, results, .. } = tracked.unwrap();
    assert_eq!((summary.requested, summary.found, summary.not_found), (3, 2, 1));
    let BatchResult::NotFound { error, .. } = &results[0] else { panic!("{results:?}") };
    assert_eq!(error.code, "INTERNAL_ERROR");
    assert!(!error.message.is_empty() && !error.message_es.is_empty());
    assert_eq!(test.unreadable_reads().await, 1);
}

#[tokio::test]
async fn a_void_fails_only_for_an_unreadable_parcel() {
    let (test, numbers) = with_damaged_parcel().await;
    let body = json!({ "idempotencyKey": "void-them-all", "trackingNumbers": numbers });
    let request = KeyedRequest { body: &body, header_key: None, request_id: "req_1" };
    let answer = test.service.void_orders(&test.caller, request).await.unwrap();
    let (WriteResponse::Created(body) | WriteResponse::Done(body) | WriteResponse::Replayed(body)) =
        answer;
    let body: Envelope<VoidedOrders> = serde_json::from_slice(&body).unwrap();
    assert_eq!((body.data.summary.voided, body.data.summary.failed), (2, 1));
    assert_eq!(
        body.data.results[0].as_ref().unwrap().error.as_ref().unwrap().code,
        "INTERNAL_ERROR"
    );
}

#[tokio::test]
async fn a_manifest_with_an_unreadable_parcel_is_rejected() {
    let (test, numbers) = with_damaged_parcel().await;
    let body = json!({ "awbNumber": "176-12345675", "trackingNumbers": numbers });
    let request = KeyedRequest { body: &body, header_key: None, request_id: "req_1" };
    let refusal = test.service.submit_manifest(&test.caller, request).await.unwrap_err();
    assert_eq!(refusal.code, ErrorCode::ManifestParcelsRejected);
    let errors = json!(refusal.to_envelope("req_1"))["error"]["details"]["errors"].clone();
    assert_eq!(errors.as_array().unwrap().len(), 1, "{errors}");
    assert_eq!(
        (&errors[0]["trackingNumber"], &errors[0]["code"]),
        (&json!(UNREADABLE_NUMBER), &json!("INTERNAL_ERROR"))
    );
}

#[tokio::test]
async fn an_unreadable_parcel_alone_is_an_error_without_retry() {
    let (test, _) = with_damaged_parcel().await;
    let caller = &test.caller;
    let tracked =
        test.service.track(caller, UNREADABLE_NUMBER, Ok(true), Language::En).await.unwrap_err();
    let label = test
        .service
        .draw_caller_label(caller, UNREADABLE_NUMBER, LabelFormat::Pdf)
        .await
        .unwrap_err();
    for refusal in [tracked, label] {
        assert_eq!((refusal.code, refusal.retry_after), (ErrorCode::InternalError, None));
    }
}

impl TestService {
    async fn list(&self) -> Result<(Vec<ParcelSummary>, PageMeta), Refusal> {
        let query = check_list([]).unwrap();
        self.service.list_parcels(&self.caller, &query, Language::En).await
    }

    /// Returns the number of reads that met an unreadable parcel.
    async fn unreadable_reads(&self) -> u64 {
        let text = self.service.metrics_text().await.unwrap();
        let sample = "parcelo_unreadable_rows_total{table=\"parcels\"} ";
        let line = text.lines().find_map(|line| line.strip_prefix(sample));
        line.map_or(0, |count| count.parse().unwrap())
    }
}
