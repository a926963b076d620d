//! Lists and counts compared with a full scan of their table, and long reads, which delay only their tenant's next long
//! read.

use std::{
    collections::BTreeMap,
    sync::mpsc::{Sender, channel},
    time::Duration,
};

use parcelo_domain::{Changes, Event, Millis, ParcelRowId, State, StoreOp, Tenant};
use parcelo_system::clock::runtime_now;
use parcelo_types::{
    CountryCode,
    internal::{ListQuery, check_list},
};
use rusqlite::Connection;
use tokio::sync::mpsc;

use super::conformance::{NOW, SECRET, create, empty_changes, file, sandbox};
use crate::{CommitOutcome, Store, StoreError, sqlite};

/// The number of parcels by tenant, day, state and country.
type Counts = BTreeMap<(i64, i64, i64, String), i64>;

fn counts(store: &Store, sql: &str) -> Counts {
    let read = |db: &Connection| {
        let mut find = db.prepare(sql)?;
        let row = |row: &rusqlite::Row<'_>| {
            Ok(((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?), row.get(4)?))
        };
        find.query_map([], row)?.collect()
    };
    store.read(read).unwrap()
}

fn assert_counts_match_rows(store: &Store, after: &str) {
    let stored = counts(store, "SELECT tenant, day, state, country, total FROM parcel_counts");
    let counted = counts(
        store,
        "SELECT tenant, (created_at - (created_at % 86400000 + 86400000) % 86400000) / 86400000, \
         state, country, count(*) FROM parcels GROUP BY 1, 2, 3, 4",
    );
    assert_eq!(stored, counted, "after {after}");
    let totals = |table: &str| {
        let sql = format!(
            "SELECT tenant, 0, state, country, sum(total) FROM {table} GROUP BY 1, 3, 4 HAVING sum(total) > 0"
        );
        counts(store, &sql)
    };
    assert_eq!(totals("parcel_totals"), totals("parcel_counts"), "after {after}");
}

/// Times around which parcels are created: different days, midnight, and before 1970.
const DAYS: [i64; 5] = [0, -1, 1, -2_000, -21_000];
const COUNTRIES: [CountryCode; 3] = [CountryCode::EC, CountryCode::MX, CountryCode::CO];

fn random_order(rng: &mut fastrand::Rng, number: u32) -> Changes {
    let mut changes = create(tenant(rng), &format!("SB-RANDOM-{number:06}"), number);
    changes.idempotency_record = None;
    if let StoreOp::InsertParcel(parcel) = &mut changes.ops[0] {
        let midnight = Millis(NOW.0 - NOW.0 % Millis::DAY);
        parcel.created_at = midnight.plus(DAYS[rng.usize(..5)] * Millis::DAY + rng.i64(-2..3));
        parcel.country = COUNTRIES[rng.usize(..3)];
    }
    changes
}

fn tenant(rng: &mut fastrand::Rng) -> Tenant {
    let mut tenant = sandbox(rng.i64(1..3));
    if rng.u8(..4) == 0 {
        tenant.environment = parcelo_types::Environment::Production;
    }
    tenant
}

/// Moves a random parcel to a random state: the domain checks transitions, not the store.
fn random_move(rng: &mut fastrand::Rng, store: &Store) -> Changes {
    let parcels = "SELECT id, last_sequence FROM parcels ORDER BY random() LIMIT 1";
    let found = store.read(|db| db.query_row(parcels, [], |row| Ok((row.get(0)?, row.get(1)?))));
    let (parcel, last): (i64, u32) = found.unwrap_or((0, 1));
    let state = State::from_number(rng.u8(1..14)).unwrap();
    let (sequence, location) = (last + 1, "Quito, EC".to_owned());
    let event = Event { sequence, state, at: NOW, location, description: None };
    let op = StoreOp::Move { parcel: ParcelRowId(parcel), event };
    // The second move has the same sequence, so it is refused and undoes the first, including its count.
    let ops = if rng.u8(..8) == 0 { vec![op.clone(), op] } else { vec![op] };
    Changes { ops, ..empty_changes() }
}

#[tokio::test]
async fn counts_match_the_table_after_any_history() {
    let mut rng = fastrand::Rng::with_seed(12);
    let store = Store::memory(SECRET).unwrap();
    for step in 0..4_000_u32 {
        let what = rng.u32(..1_000);
        match what {
            0..450 => drop(store.commit(random_order(&mut rng, step)).await),
            450..980 => drop(store.commit(random_move(&mut rng, &store)).await),
            980..985 => drop(store.reset(tenant(&mut rng)).await.unwrap()),
            _ => {
                store.purge(NOW.plus(rng.i64(-2_500..3) * Millis::DAY)).await.unwrap();
            }
        }
        if what >= 980 || step % 100 == 0 {
            assert_counts_match_rows(&store, &format!("step {step} ({what})"));
        }
    }
    assert_counts_match_rows(&store, "all");
    store.reset_all().await.unwrap();
    store.purge(Millis(i64::MAX)).await.unwrap();
    assert_counts_match_rows(&store, "the end");
}

/// Returns the ids of all parcels that match a query, newest first, by checking every row.
fn find_by_full_scan(store: &Store, tenant: Tenant, query: &ListQuery) -> Vec<ParcelRowId> {
    let millis =
        |time: Option<chrono::DateTime<chrono::Utc>>| time.map(|time| Millis::from(time).0);
    let (from, to) = (millis(query.created_from), millis(query.created_to));
    let state = query.status.as_ref().map(|status| State::from_status(status).unwrap().number());
    let sql = "SELECT id FROM parcels WHERE tenant = ?1 AND created_at >= ?2 AND created_at < ?3 \
               AND coalesce(state = ?4, 1) AND coalesce(country = ?5, 1) \
               ORDER BY created_at DESC, id DESC";
    let (from, to) = (from.unwrap_or(i64::MIN), to.unwrap_or(i64::MAX));
    let country = query.country.map(|country| country.as_str());
    let find = |db: &Connection| {
        let bound = (tenant.number(), from, to, state, country);
        db.prepare(sql)?.query_map(bound, |row| row.get(0).map(ParcelRowId))?.collect()
    };
    store.read(find).unwrap()
}

fn random_query(rng: &mut fastrand::Rng) -> ListQuery {
    let mut query = check_list([("limit".into(), "7".into())]).unwrap();
    query.page = rng.u32(1..9);
    if rng.bool() {
        query.status = Some(State::from_number([2, 7, 13][rng.usize(..3)]).unwrap().into());
    }
    query.country = rng.bool().then(|| COUNTRIES[rng.usize(..3)]);
    let midnight = Millis(NOW.0 - NOW.0 % Millis::DAY);
    let mut moment = || {
        let day = DAYS[rng.usize(..5)] + rng.i64(-1..2);
        let at = midnight.plus(day * Millis::DAY + rng.i64(-2..3) * rng.i64(0..2));
        rng.bool().then(|| at.to_utc())
    };
    (query.created_from, query.created_to) = (moment(), moment());
    query
}

#[tokio::test]
async fn pages_and_totals_match_a_full_scan() {
    let mut rng = fastrand::Rng::with_seed(6);
    let store = Store::memory(SECRET).unwrap();
    for number in 0..400 {
        store.commit(random_order(&mut rng, number)).await;
        store.commit(random_move(&mut rng, &store)).await;
    }
    let mut non_empty_pages = 0;
    for _ in 0..3_000 {
        let (tenant, query) = (sandbox(rng.i64(1..3)), random_query(&mut rng));
        let expected = find_by_full_scan(&store, tenant, &query);
        let (page, total) = store.list(tenant, query.clone()).await.unwrap();
        assert_eq!(total, expected.len() as u64, "{query:?}");
        let page: Vec<_> = page.iter().map(|listed| listed.parcel.key).collect();
        let before = (query.page as usize - 1) * 7;
        let expected_page: Vec<_> = expected.into_iter().skip(before).take(7).collect();
        assert_eq!(page, expected_page, "{query:?}");
        non_empty_pages += usize::from(!page.is_empty());
    }
    assert!(non_empty_pages > 500, "{non_empty_pages} non-empty pages");
}

/// Starts a scan that reports when it begins, and ends when it is released.
fn scan(
    store: &Store,
    tenant: Tenant,
    scan_started: &mpsc::UnboundedSender<(Tenant, Sender<()>)>,
) -> tokio::task::JoinHandle<Result<(), StoreError>> {
    let (store, scan_started) = (store.clone(), scan_started.clone());
    tokio::spawn(async move {
        let read = move |_: &sqlite::Store| {
            let (release, gate) = channel();
            let _nobody = scan_started.send((tenant, release));
            let _released = gate.recv();
            Ok(())
        };
        store.scan(Some(tenant), read).await
    })
}

/// Lets every task run until it waits.
async fn settle() {
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_tenant_has_one_long_read_at_a_time_and_delays_no_other() {
    let (store, _folder) = file();
    let (scan_started, mut starts) = mpsc::unbounded_channel();
    let greedy: Vec<_> = (0..20).map(|_| scan(&store, sandbox(1), &scan_started)).collect();
    settle().await;
    let (_, first) = starts.recv().await.unwrap();
    let modest = scan(&store, sandbox(2), &scan_started);
    let (scanning_tenant, second) = starts.recv().await.unwrap();
    assert_eq!(scanning_tenant, sandbox(2), "the first tenant's second scan waits for its first");
    // While both run, a write and a point read succeed.
    assert_eq!(store.commit(create(sandbox(3), "SB-FREE-0001", 1)).await, CommitOutcome::Committed);
    drop((first, second));
    modest.await.unwrap().unwrap();
    for _ in 1..20 {
        let (scanning_tenant, release) = starts.recv().await.unwrap();
        settle().await;
        assert!(scanning_tenant == sandbox(1) && starts.try_recv().is_err(), "one scan per tenant");
        drop(release);
    }
    for scan in greedy {
        scan.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn few_long_reads_run_at_once_in_tenant_order() {
    let (store, _folder) = file();
    let (scan_started, mut starts) = mpsc::unbounded_channel();
    let scans: Vec<_> =
        (1..=12).map(|account| scan(&store, sandbox(account), &scan_started)).collect();
    let mut running = Vec::new();
    let mut order_of_reads = Vec::new();
    while order_of_reads.len() < 12 {
        settle().await;
        while let Ok((scanning_tenant, release)) = starts.try_recv() {
            running.push(release);
            order_of_reads.push(scanning_tenant);
        }
        assert!(running.len() <= 4, "{} at once", running.len());
        if !running.is_empty() {
            running.remove(0);
        }
    }
    let in_order: Vec<_> = (1..=12).map(sandbox).collect();
    order_of_reads.sort_by_key(|tenant| tenant.number());
    assert_eq!(order_of_reads, in_order);
    drop(running);
    for scan in scans {
        scan.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn long_reads_are_refused_when_queued_too_long_or_too_many() {
    let (store, _folder) = file();
    let (scan_started, mut starts) = mpsc::unbounded_channel();
    let first = scan(&store, sandbox(1), &scan_started);
    let (_, release) = starts.recv().await.unwrap();
    let waiting: Vec<_> = (1..64).map(|_| scan(&store, sandbox(1), &scan_started)).collect();
    settle().await;
    let one_too_many = store.scan(Some(sandbox(1)), |_| Ok(())).await;
    assert!(matches!(one_too_many, Err(StoreError::Crowded { .. })), "{one_too_many:?}");
    store.scan(Some(sandbox(2)), |_| Ok(())).await.unwrap();
    assert!(waiting.iter().all(|scan| !scan.is_finished()));
    tokio::time::advance(Duration::from_millis(5_001)).await;
    for scan in waiting {
        let refused = scan.await.unwrap();
        assert!(matches!(refused, Err(StoreError::Crowded { .. })), "{refused:?}");
    }
    drop(release);
    first.await.unwrap().unwrap();
    store.scan(Some(sandbox(1)), |_| Ok(())).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_tenant_pauses_as_long_as_its_last_read_took() {
    let (store, _folder) = file();
    let (scan_started, mut starts) = mpsc::unbounded_channel();
    let first = scan(&store, sandbox(1), &scan_started);
    let (_, release) = starts.recv().await.unwrap();
    let second = scan(&store, sandbox(1), &scan_started);
    let start = runtime_now();
    tokio::time::advance(Duration::from_millis(80)).await;
    drop(release);
    first.await.unwrap().unwrap();
    store.scan(Some(sandbox(2)), |_| Ok(())).await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_millis(80), "another tenant reads at once");
    let (_, release) = starts.recv().await.unwrap();
    assert_eq!(start.elapsed().as_millis(), 160, "this tenant waits as long as its scan took");
    drop(release);
    second.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_short_read_is_followed_by_no_pause() {
    let (store, _folder) = file();
    let (scan_started, mut starts) = mpsc::unbounded_channel();
    let scans: Vec<_> = (0..4).map(|_| scan(&store, sandbox(1), &scan_started)).collect();
    let start = runtime_now();
    for done in 0..4 {
        let (_, release) = starts.recv().await.unwrap();
        assert_eq!(start.elapsed(), Duration::from_millis(4 * done), "the next one begins at once");
        tokio::time::advance(Duration::from_millis(4)).await;
        drop(release);
    }
    for scan in scans {
        scan.await.unwrap().unwrap();
    }
}
