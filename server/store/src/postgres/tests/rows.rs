//! Carriers' scans on PostgreSQL: each updates the row of a parcel, and usually none of its indexes.

use futures_util::future::join_all;

use parcelo_domain::{AcceptedCarrierEvent, CarrierRowId, ParcelRow, State, StoreOp};
use parcelo_types::{Environment, TrackingNumber};

use crate::postgres::test_util::cluster::Cluster;
use crate::{
    CommitOutcome, Store,
    postgres::Address,
    tests::conformance::{SECRET, changes_to, create, move_parcel, production},
    waiting::until,
};

const PARCELS: usize = 2_000;
/// Approximate number of scans that a carrier sends at once. Parcels that are created together are scanned together,
/// and their rows are on one page.
const SCANS: usize = 40;
const STATES: [State; 4] =
    [State::PickedUp, State::InTransit, State::OutForDelivery, State::Delivered];

/// Records a carrier event for each of the parcels, in order, and moves the parcel to `state`.
async fn scan(store: &Store, parcels: &mut [ParcelRow], (after, state): (i64, State)) {
    for parcels in parcels.chunks_mut(SCANS) {
        let scans = parcels.iter().map(|parcel| {
            let event_id = format!("{}-{after}", parcel.tracking_number);
            let carrier_event = AcceptedCarrierEvent {
                carrier: CarrierRowId(1),
                event_id,
                parcel: parcel.key,
                sequence: parcel.last_sequence + 1,
                code: None,
            };
            let ops =
                vec![StoreOp::RecordCarrierEvent(carrier_event), move_parcel(parcel, state, after)];
            store.commit(changes_to(parcel, ops))
        });
        let outcomes = join_all(scans).await;
        assert!(outcomes.iter().all(|outcome| *outcome == CommitOutcome::Committed));
        for parcel in parcels {
            parcel.version.0 += 1;
            parcel.last_sequence += 1;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn most_scans_of_carriers_write_no_index() {
    // A separate cluster, because old row versions are kept while an open transaction anywhere in their cluster might
    // see them.
    let Some(cluster) = Cluster::start(&[]) else { return };
    let name = cluster.create_database();
    let store = Store::connect(Address::parse(&cluster.url(&name)).unwrap(), SECRET).await.unwrap();
    let numbers: Vec<_> = (0..PARCELS).map(|parcel| format!("EC-SCAN-{parcel:06}")).collect();
    let orders = (0..).zip(&numbers).map(|(key, number)| create(production(1), number, key));
    let created = join_all(orders.map(|order| store.commit(order))).await;
    assert!(created.iter().all(|outcome| *outcome == CommitOutcome::Committed));
    let mut parcels = Vec::new();
    for number in &numbers {
        let number = TrackingNumber::parse(number).unwrap();
        parcels.extend(store.parcel(Environment::Production, &number).await.unwrap());
    }
    assert_eq!(parcels.len(), PARCELS);
    for step in (1..).zip(STATES) {
        scan(&store, &mut parcels, step).await;
    }
    store.close().await;
    let all = PARCELS * STATES.len();
    let counted = "SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = 'parcels'";
    until("connections have reported", async || cluster.query(&name, counted) == all.to_string())
        .await;
    let hot: usize = cluster.query(&name, &counted.replace("upd", "hot_upd")).parse().unwrap();
    assert!(2 * hot >= all, "{hot} of {all} updates wrote no index");
}
