//! Exactly once, looked up: every parcel is the one that its idempotency key made.
//!
//! The record of a key holds the answer it was given, and so the one parcel it made. A parcel whose
//! key's record names another one, or that has no record, was made by something that went wrong,
//! unless its key was used anew after its 24 hours.

use std::collections::{BTreeMap, HashMap};

use parcelo::{IdempotencyKey, Operation};
use serde_json::Value;

use super::MockServer;
use crate::{
    core::{IdempotencyRecord, RecordKey, idempotency},
    ids::named,
    store::{Created, Store, StoreError},
};

/// The parcels of each key that something is wrong with, by tenant and key.
type Suspects = BTreeMap<(i64, String), Vec<String>>;

/// What is wrong, in words; it names keys and parcels.
pub(super) fn offences(server: &MockServer) -> Vec<String> {
    #[expect(clippy::expect_used, reason = "a store in memory does not fail")]
    let suspects = suspects(server.service.store()).expect("the store is there");
    suspects.into_iter().map(|((_, key), parcels)| offence(&key, &parcels)).collect()
}

fn offence(key: &str, parcels: &[String]) -> String {
    match parcels {
        [parcel] => format!("no idempotency key made the parcel {parcel}"),
        parcels => {
            let (count, parcels) = (parcels.len(), parcels.join(", "));
            format!("the idempotency key {key} made {count} parcels: {parcels}")
        }
    }
}

fn suspects(store: &Store) -> Result<Suspects, StoreError> {
    let mut keys: HashMap<i64, Vec<i64>> = HashMap::new();
    for key in store.keys()? {
        keys.entry(key.tenant.number()).or_default().push(key.row);
    }
    let mut suspects = Suspects::new();
    for parcel in store.creations()? {
        let tenant = parcel.tenant.number();
        let callers = keys.get(&tenant).map(Vec::as_slice).unwrap_or_default();
        let records = records(store, callers, &parcel.idempotency_key)?;
        if records.iter().any(|record| accounts_for(record, &parcel)) {
            continue;
        }
        let of_key = suspects.entry((tenant, parcel.idempotency_key.clone())).or_default();
        let others =
            records.iter().filter_map(made).filter_map(|made| text(&made, "trackingNumber"));
        for number in others.chain([parcel.number]) {
            if !of_key.contains(&number) {
                of_key.push(number);
            }
        }
    }
    Ok(suspects)
}

/// The records of creations under one idempotency key, of each API key that may have used it.
fn records(
    store: &Store,
    callers: &[i64],
    key: &str,
) -> Result<Vec<IdempotencyRecord>, StoreError> {
    let Ok(key) = IdempotencyKey::parse(key) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for caller in callers {
        found.extend(store.record(&RecordKey::of(*caller, Operation::CreateOrder, &key))?);
    }
    Ok(found)
}

/// Whether the record is of the creation of this parcel, or could have taken its record's place.
fn accounts_for(record: &IdempotencyRecord, parcel: &Created) -> bool {
    let id = made(record).and_then(|made| text(&made, "id"));
    id == Some(named("par", parcel.id))
        || !idempotency::is_alive(parcel.created_at, record.first_seen)
}

/// The parcel in a record's answer.
fn made(record: &IdempotencyRecord) -> Option<Value> {
    serde_json::from_slice::<Value>(&record.body).ok()?.get_mut("parcel").map(Value::take)
}

fn text(parcel: &Value, name: &str) -> Option<String> {
    parcel.get(name)?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parcelo::{OrderRequest, TrackingNumber, model::fingerprint};
    use serde_json::json;

    use super::*;
    use crate::{
        clock::{Clock as _, Millis},
        core::{create, create::Creation, sample},
        mock::MockServer,
        service::Caller,
    };

    /// What a service that has forgotten about keys would write.
    async fn create_without_a_record(
        server: &MockServer,
        caller: &Caller,
        (key, number): (&str, &str),
    ) {
        let settings = server.service.settings();
        let mut order: OrderRequest = serde_json::from_str(sample::ORDER).unwrap();
        order.idempotency_key = IdempotencyKey::parse(key).unwrap();
        order.tracking_number = Some(TrackingNumber::parse(number).unwrap());
        let record = RecordKey::of(caller.key.row, Operation::CreateOrder, &order.idempotency_key);
        let decision = Creation {
            tenant: caller.key.tenant,
            order,
            warnings: Vec::new(),
            replay: (record, fingerprint(&json!({}), "")),
            site: &settings.sandbox,
            secrets: &settings.secrets,
        };
        let now = server.clock.now();
        let (_, mut changes) = create::create(decision, server.ids.ulid(now), "", now);
        changes.replay = None;
        server.service.store().commit(changes).await;
    }

    async fn create(server: &MockServer, caller: &Caller, (key, number): (&str, &str)) {
        let mut order = sample::order();
        order["idempotencyKey"] = json!(key);
        order["trackingNumber"] = json!(number);
        server.service.create_order(caller, &order, None).await.unwrap();
    }

    fn caller(server: &MockServer) -> Caller {
        Caller { key: Arc::new(server.key().make().1) }
    }

    #[tokio::test]
    async fn what_keys_made_is_right_also_for_two_callers_and_after_a_day() {
        let server = MockServer::start().await;
        let (one, other) = (caller(&server), caller(&server));
        create(&server, &one, ("order-0001", "SB-A-000001")).await;
        create(&server, &one, ("order-0001", "SB-A-000001")).await;
        create(&server, &other, ("order-0001", "SB-A-000002")).await;
        server.clock.show(server.clock.now().plus(Millis::DAY));
        create(&server, &one, ("order-0001", "SB-A-000003")).await;
        server.assert_exactly_once();
    }

    #[tokio::test]
    async fn a_key_that_made_two_parcels_and_a_parcel_without_key_are_named() {
        let server = MockServer::start().await;
        let one = caller(&server);
        create(&server, &one, ("order-0001", "SB-A-000001")).await;
        create(&server, &one, ("order-0002", "SB-A-000002")).await;
        create_without_a_record(&server, &one, ("order-0001", "SB-A-000003")).await;
        create_without_a_record(&server, &one, ("order-0004", "SB-A-000004")).await;
        assert_eq!(
            offences(&server),
            [
                "the idempotency key order-0001 made 2 parcels: SB-A-000001, SB-A-000003",
                "no idempotency key made the parcel SB-A-000004",
            ]
        );
    }
}
