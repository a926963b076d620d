//! A parcel whose row cannot be read: it fails alone, wherever it is asked for beside others.

use parcelo::{
    LabelFormat, ParcelStatus,
    model::{BatchResult, BatchTracking, Envelope, PageMeta, ParcelSummary, VoidedOrders},
};

use super::*;
use crate::{
    service::Answer,
    store::{Damage, damage},
};

const BAD: &str = "SB-SUCCESS-0000";

/// Three parcels, the first of which cannot be read.
async fn house() -> (House, Vec<String>) {
    let house = House::in_memory().await;
    let numbers: Vec<_> = (0..3).map(|number| format!("SB-SUCCESS-000{number}")).collect();
    for number in &numbers {
        house.create(number).await;
    }
    damage(house.service.store(), house.caller.tenant(), Damage::Parcel).await;
    (house, numbers)
}

#[tokio::test]
async fn the_list_leaves_it_out_and_still_counts_it() {
    let (house, numbers) = house().await;
    let (page, PageMeta { total, .. }) = house.list().await.unwrap();
    let mut listed: Vec<_> = page.iter().map(|one| one.tracking_number.to_string()).collect();
    listed.sort();
    assert_eq!((&listed[..], total), (&numbers[1..], 3));
    assert!(house.counted().await >= 1);
}

#[tokio::test]
async fn the_steps_of_all_others_are_taken() {
    let (house, _) = house().await;
    house.clock.set(START.plus(30 * Millis::DAY));
    let fired = house.service.take_due_steps().await.unwrap();
    assert!(fired.iter().any(|step| step.status == ParcelStatus::Delivered), "{fired:?}");
    let counted = house.counted().await;
    house.service.take_due_steps().await.unwrap();
    assert_eq!(house.counted().await, counted, "a row that is passed over is reported once");
}

#[tokio::test]
async fn in_a_batch_it_is_one_item_that_failed() {
    let (house, numbers) = house().await;
    let body = json!({ "trackingNumbers": numbers, "includeHistory": true });
    let tracked = house.service.track_batch(&house.caller, &body, Language::En).await;
    let BatchTracking { summary, results, .. } = tracked.unwrap();
    assert_eq!((summary.requested, summary.found, summary.not_found), (3, 2, 1));
    let BatchResult::NotFound { error, .. } = &results[0] else { panic!("{results:?}") };
    assert_eq!(error.code, "INTERNAL_ERROR");
    assert!(!error.message.is_empty() && !error.message_es.is_empty());
    assert_eq!(house.counted().await, 1);
}

#[tokio::test]
async fn a_void_names_it_and_voids_the_others() {
    let (house, numbers) = house().await;
    let body = json!({ "idempotencyKey": "void-them-all", "trackingNumbers": numbers });
    let request = Keyed { body: &body, header_key: None, request_id: "req_1" };
    let answer = house.service.void_orders(&house.caller, request).await.unwrap();
    let (Answer::Created(body) | Answer::Done(body) | Answer::Replayed(body)) = answer;
    let body: Envelope<VoidedOrders> = serde_json::from_slice(&body).unwrap();
    assert_eq!((body.data.summary.voided, body.data.summary.failed), (2, 1));
    assert_eq!(
        body.data.results[0].as_ref().unwrap().error.as_ref().unwrap().code,
        "INTERNAL_ERROR"
    );
}

#[tokio::test]
async fn a_manifest_is_refused_for_it_and_not_for_now() {
    let (house, numbers) = house().await;
    let body = json!({ "awbNumber": "176-12345675", "trackingNumbers": numbers });
    let request = Keyed { body: &body, header_key: None, request_id: "req_1" };
    let refusal = house.service.submit_manifest(&house.caller, request).await.unwrap_err();
    assert_eq!(refusal.code, ErrorCode::ManifestParcelsRejected);
    let errors = json!(refusal.to_envelope("req_1"))["error"]["details"]["errors"].clone();
    assert_eq!(errors.as_array().unwrap().len(), 1, "{errors}");
    assert_eq!(
        (&errors[0]["trackingNumber"], &errors[0]["code"]),
        (&json!(BAD), &json!("INTERNAL_ERROR"))
    );
}

#[tokio::test]
async fn asked_for_alone_it_is_an_error_that_no_waiting_mends() {
    let (house, _) = house().await;
    let caller = &house.caller;
    let tracked = house.service.track(caller, BAD, Ok(true), Language::En).await.unwrap_err();
    let label = house.service.label(caller, BAD, LabelFormat::Pdf).await.unwrap_err();
    for refusal in [tracked, label] {
        assert_eq!((refusal.code, refusal.retry_after), (ErrorCode::InternalError, None));
    }
}

impl House {
    async fn list(&self) -> Result<(Vec<ParcelSummary>, PageMeta), Refusal> {
        let query = check_list([]).unwrap();
        self.service.list_parcels(&self.caller, &query, Language::En).await
    }

    /// How many reads met a parcel that cannot be read.
    async fn counted(&self) -> u64 {
        let text = self.service.metrics_text().await.unwrap();
        let sample = "parcelo_unreadable_rows_total{table=\"parcels\"} ";
        let line = text.lines().find_map(|line| line.strip_prefix(sample));
        line.map_or(0, |count| count.parse().unwrap())
    }
}
