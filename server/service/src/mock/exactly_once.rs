//! Checks that everything was done exactly once: every parcel is the one that its idempotency key created, and no
//! order has two.
//!
//! A key's record holds the response to its first request, and so the one parcel that it created. A parcel whose key's
//! record names another parcel, or that has no record, must not exist, unless the key was reused after its 24 hours.
//! A key is scoped to one API key, so the same key sent with two API keys creates two parcels, each with a record.
//! That is correct for the service, but a bug in the program that sent it. The same is true of two parcels with one
//! external order id. Voided parcels do not count there: they are not shipped.

use std::collections::{BTreeMap, HashMap};

use parcelo_domain::{
    ApiKeyRecord, IdempotencyRecord, RecordKey, State, idempotency, ids::public_id,
};
use parcelo_store::{CreationRecord, Store, StoreError};
use parcelo_types::{IdempotencyKey, Operation};
use serde_json::Value;

use super::{MockServer, expect_stored, sync::block_on};

/// The parcels of each key that created several, or that has no record of its parcel, by tenant and key.
type SuspectKeys = BTreeMap<(i64, String), Vec<String>>;

/// Returns descriptions of everything that was not done exactly once, with keys, orders and parcels.
pub(super) fn offences(server: &MockServer) -> Vec<String> {
    expect_stored(block_on(find_offences(server.service.store())))
}

async fn find_offences(store: &Store) -> Result<Vec<String>, StoreError> {
    let creations = store.creations().await?;
    let suspects = find_suspects(store, &creations).await?;
    let suspect_keys: Vec<_> = suspects.keys().cloned().collect();
    let suspects = suspects.into_iter().map(|((_, key), parcels)| describe_suspect(&key, &parcels));
    let shipped: Vec<_> = creations.iter().filter(|one| one.state != State::Voided).collect();
    let by_keys = find_duplicates(&shipped, |parcel| Some(parcel.idempotency_key.as_str()));
    let by_keys = by_keys
        .filter(|found| !suspect_keys.contains(&found.name) && found.is_within_key_lifetime());
    let by_orders = find_duplicates(&shipped, |parcel| parcel.external_order_id.as_deref());
    Ok(suspects
        .chain(by_keys.map(|found| found.describe_key()))
        .chain(by_orders.map(|found| found.describe_order()))
        .collect())
}

fn describe_suspect(key: &str, parcels: &[String]) -> String {
    match parcels {
        [parcel] => format!("no idempotency key created the parcel {parcel}"),
        parcels => {
            let (count, parcels) = (parcels.len(), parcels.join(", "));
            format!("the idempotency key {key} created {count} parcels: {parcels}")
        }
    }
}

/// Parcels of one tenant that share a name, oldest first.
struct Duplicates<'a> {
    name: (i64, String),
    parcels: Vec<&'a CreationRecord>,
}

/// Returns the parcels that share a name with others.
fn find_duplicates<'a>(
    parcels: &[&'a CreationRecord],
    name: impl Fn(&'a CreationRecord) -> Option<&'a str>,
) -> impl Iterator<Item = Duplicates<'a>> {
    let mut by_name: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for parcel in parcels {
        if let Some(name) = name(parcel) {
            by_name.entry((parcel.tenant.number(), name.to_owned())).or_default().push(*parcel);
        }
    }
    let shared = by_name.into_iter().filter(|(_, parcels)| parcels.len() > 1);
    shared.map(|(name, parcels)| Duplicates { name, parcels })
}

impl Duplicates<'_> {
    /// Returns `true` if two of the parcels were created within a key's lifetime; later, the same text is a new key.
    fn is_within_key_lifetime(&self) -> bool {
        let pairs = self.parcels.iter().zip(self.parcels.iter().skip(1));
        let mut pairs = pairs.map(|(one, next)| (one.created_at, next.created_at));
        pairs.any(|(first, second)| idempotency::is_within_lifetime(first, second))
    }

    fn describe_key(&self) -> String {
        let (Self { name: (_, key), parcels }, numbers) = (self, self.numbers());
        let count = parcels.len();
        format!(
            "the idempotency key {key} created {count} parcels with several API keys, each of which has its own \
             keys: {numbers}"
        )
    }

    fn describe_order(&self) -> String {
        let (Self { name: (_, order), parcels }, numbers) = (self, self.numbers());
        format!("the order {order} (externalOrderId) has {} parcels: {numbers}", parcels.len())
    }

    fn numbers(&self) -> String {
        let numbers: Vec<_> = self.parcels.iter().map(|parcel| parcel.number.as_str()).collect();
        numbers.join(", ")
    }
}

async fn find_suspects(
    store: &Store,
    creations: &[CreationRecord],
) -> Result<SuspectKeys, StoreError> {
    let mut keys: HashMap<i64, Vec<i64>> = HashMap::new();
    let all: Vec<ApiKeyRecord> = store.credentials().await?;
    for key in all {
        keys.entry(key.scope.tenant.number()).or_default().push(key.row);
    }
    let mut suspects = SuspectKeys::new();
    for parcel in creations {
        let tenant = parcel.tenant.number();
        let callers = keys.get(&tenant).map(Vec::as_slice).unwrap_or_default();
        let records = find_records(store, callers, &parcel.idempotency_key).await?;
        if records.iter().any(|record| matches_creation(record, parcel)) {
            continue;
        }
        let numbers = suspects.entry((tenant, parcel.idempotency_key.clone())).or_default();
        let others = records
            .iter()
            .filter_map(created_parcel)
            .filter_map(|parcel| text_field(&parcel, "trackingNumber"));
        for number in others.chain([parcel.number.clone()]) {
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
    }
    Ok(suspects)
}

/// Returns the records of one idempotency key, one for each API key that created an order with it.
async fn find_records(
    store: &Store,
    callers: &[i64],
    key: &str,
) -> Result<Vec<IdempotencyRecord>, StoreError> {
    let Ok(key) = IdempotencyKey::parse(key) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for caller in callers {
        found.extend(
            store
                .idempotency_record(&RecordKey::new(*caller, Operation::CreateOrder, &key))
                .await?,
        );
    }
    Ok(found)
}

/// Returns `true` if the record is of this parcel's creation, or may have replaced that record.
fn matches_creation(record: &IdempotencyRecord, parcel: &CreationRecord) -> bool {
    let id = created_parcel(record).and_then(|parcel| text_field(&parcel, "id"));
    id == Some(public_id("par", parcel.id))
        || !idempotency::is_within_lifetime(parcel.created_at, record.first_seen)
}

/// Returns the parcel in a record's response.
fn created_parcel(record: &IdempotencyRecord) -> Option<Value> {
    serde_json::from_slice::<Value>(&record.body).ok()?.get_mut("parcel").map(Value::take)
}

fn text_field(parcel: &Value, name: &str) -> Option<String> {
    parcel.get(name)?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parcelo_types::{OrderRequest, TrackingNumber, internal::fingerprint};
    use serde_json::json;

    use super::*;
    use crate::{mock::MockServer, service::Caller};
    use parcelo_domain::{
        Millis, TrackingNumberGenerator,
        create::{self, OrderCreation},
        sample,
    };
    use parcelo_system::clock::Clock as _;

    /// Creates a parcel like a service without idempotency would.
    async fn create_without_a_record(
        server: &MockServer,
        caller: &Caller,
        (key, number): (&str, &str),
    ) {
        let settings = server.service.settings();
        let mut order: OrderRequest = serde_json::from_str(sample::ORDER).unwrap();
        order.idempotency_key = IdempotencyKey::parse(key).unwrap();
        order.tracking_number = Some(TrackingNumber::parse(number).unwrap());
        let record = RecordKey::new(caller.key.row, Operation::CreateOrder, &order.idempotency_key);
        let numbers =
            Arc::new(TrackingNumberGenerator::new(Box::new(|| [0; 5]), settings.secrets.clone()));
        let decision = OrderCreation {
            tenant: caller.tenant(),
            order,
            warnings: Vec::new(),
            idempotency: (record, fingerprint(&json!({}), "")),
            site: &settings.sandbox,
            secrets: &settings.secrets,
            numbers: &numbers,
        };
        let now = server.clock.now();
        let mut changes = create::create(decision, server.ids.ulid(now), now);
        changes.idempotency_record = None;
        server.service.store().commit(changes).await;
    }

    async fn create(server: &MockServer, caller: &Caller, (key, number): (&str, &str)) {
        create_with_order_id(server, caller, (key, number, None)).await;
    }

    async fn create_with_order_id(
        server: &MockServer,
        caller: &Caller,
        (key, number, order_id): (&str, &str, Option<&str>),
    ) {
        let mut order = sample::order();
        order["idempotencyKey"] = json!(key);
        order["trackingNumber"] = json!(number);
        order["externalOrderId"] = json!(order_id);
        server.service.create_order(caller, &order, None).await.unwrap();
    }

    fn caller(server: &MockServer) -> Caller {
        Caller { key: Arc::new(server.key().issue_with_record().1), trace: None }
    }

    fn other_account(server: &MockServer) -> Caller {
        Caller { key: Arc::new(server.key().account("other").issue_with_record().1), trace: None }
    }

    async fn void(server: &MockServer, number: &str) {
        let number = TrackingNumber::parse(number).unwrap();
        server.put_status(&number, parcelo_types::ParcelStatus::Voided).await.unwrap();
    }

    #[tokio::test]
    async fn a_key_may_be_used_by_two_accounts_and_after_a_day() {
        let server = MockServer::start().await;
        let (one, other) = (caller(&server), other_account(&server));
        create(&server, &one, ("order-0001", "SB-A-000001")).await;
        create(&server, &one, ("order-0001", "SB-A-000001")).await;
        create(&server, &other, ("order-0001", "SB-A-000002")).await;
        server.clock.set(server.clock.now().plus(Millis::DAY));
        create(&server, &one, ("order-0001", "SB-A-000003")).await;
        server.assert_exactly_once();
    }

    #[tokio::test]
    async fn one_key_sent_with_two_api_keys_is_reported() {
        let server = MockServer::start().await;
        let (one, other) = (caller(&server), caller(&server));
        create(&server, &one, ("order-0001", "SB-A-000001")).await;
        create(&server, &other, ("order-0001", "SB-A-000002")).await;
        let expected = "the idempotency key order-0001 created 2 parcels with several API keys, each of which has its \
                    own keys: SB-A-000001, SB-A-000002";
        assert_eq!(offences(&server), [expected]);
        void(&server, "SB-A-000001").await;
        server.assert_exactly_once();
    }

    #[tokio::test]
    async fn two_parcels_of_an_order_are_reported_unless_voided() {
        let server = MockServer::start().await;
        let (one, other) = (caller(&server), other_account(&server));
        create_with_order_id(&server, &one, ("order-0001", "SB-A-000001", Some("A-17"))).await;
        create_with_order_id(&server, &one, ("order-0002", "SB-A-000002", Some("A-18"))).await;
        create_with_order_id(&server, &other, ("order-0001", "SB-A-000003", Some("A-17"))).await;
        server.assert_exactly_once();
        // A day later, the same text is a new key.
        server.clock.set(server.clock.now().plus(Millis::DAY));
        create_with_order_id(&server, &one, ("order-0001", "SB-A-000004", Some("A-17"))).await;
        let expected = "the order A-17 (externalOrderId) has 2 parcels: SB-A-000001, SB-A-000004";
        assert_eq!(offences(&server), [expected]);
        void(&server, "SB-A-000004").await;
        server.assert_exactly_once();
    }

    #[tokio::test]
    async fn keys_of_two_parcels_and_missing_keys_are_reported() {
        let server = MockServer::start().await;
        let one = caller(&server);
        create(&server, &one, ("order-0001", "SB-A-000001")).await;
        create(&server, &one, ("order-0002", "SB-A-000002")).await;
        create_without_a_record(&server, &one, ("order-0001", "SB-A-000003")).await;
        create_without_a_record(&server, &one, ("order-0004", "SB-A-000004")).await;
        assert_eq!(
            offences(&server),
            [
                "the idempotency key order-0001 created 2 parcels: SB-A-000001, SB-A-000003",
                "no idempotency key created the parcel SB-A-000004",
            ]
        );
    }
}
