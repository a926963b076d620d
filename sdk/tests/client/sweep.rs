//! A caller's session, with each fault at each of its requests: whatever happens, it ends with
//! exactly the parcels that were asked for.

use std::collections::HashMap;

use parcelo::{
    Awb, Client, Error, IdempotencyKey, ManifestRequest, ParcelStatus, ParcelSummary, Reply, Retry,
    TrackingNumber, VoidRequest,
};

use crate::conformance::{FAULTS, Planned, Session, Way, keyed, plan};

/// How many requests the session makes when nothing goes wrong.
const REQUESTS: u64 = 5;

/// One fault, or several in a row.
#[derive(Debug, Clone, Copy)]
struct Trouble {
    /// The first request that meets it, counted from 1.
    at: u64,
    times: u64,
    after: bool,
    planned: Planned,
}

fn troubles(faults: &[Planned], times: &[u64]) -> Vec<Trouble> {
    let mut all = Vec::new();
    for planned in faults {
        for at in 1..=REQUESTS {
            for times in times {
                for after in [false, true] {
                    all.push(Trouble { at, times: *times, after, planned: *planned });
                }
            }
        }
    }
    all
}

/// Calls until there is an answer, as a caller does who knows that the key makes it safe.
async fn insist<T>(call: impl AsyncFn() -> Result<Reply<T>, Error>) -> T {
    loop {
        match call().await {
            Ok(reply) => return reply.into_inner(),
            Err(error) => assert!(error.may_have_executed(), "{error:?}"),
        }
    }
}

async fn create(client: &Client, key: &str) -> TrackingNumber {
    let order = keyed(key);
    insist(async || client.orders().create(&order).await).await.parcel.tracking_number
}

/// Creates an order, sends it again, creates another, voids the first and hands over the second.
async fn session(client: &Client) -> [TrackingNumber; 2] {
    let first = create(client, "order-0001").await;
    assert_eq!(create(client, "order-0001").await, first);
    let second = create(client, "order-0002").await;
    let key = |text| IdempotencyKey::parse(text).unwrap();
    let void = VoidRequest::new(key("void-0001"), std::slice::from_ref(&first));
    let voided = insist(async || client.orders().void(&void).await).await;
    assert_eq!((voided.summary.voided, voided.summary.failed), (1, 0));
    let awb = Awb::parse("17612345675").unwrap();
    let manifest = ManifestRequest::new(key("manifest-0001"), awb, std::slice::from_ref(&second));
    let manifest = insist(async || client.manifests().submit(&manifest).await).await;
    assert_eq!(manifest.tracking_numbers, std::slice::from_ref(&second));
    [first, second]
}

/// Runs the session in trouble, and looks at what there is in the end.
async fn survive(way: Way, trouble: Trouble) {
    let Session { server, client, .. } = &Session::start(way, Retry::standard()).await;
    for nth in trouble.at..trouble.at + trouble.times {
        plan(server.faults().on_any().nth(nth), trouble.after, trouble.planned);
    }
    let [first, second] = session(client).await;
    assert!(server.faults().unused().len() < usize::try_from(trouble.times).unwrap());
    server.faults().clear();

    let page = client.parcels().list().await.unwrap();
    let told = |one: &ParcelSummary| (one.tracking_number.clone(), one.status.clone());
    let parcels: HashMap<_, _> = page.parcels.iter().map(told).collect();
    let expected = [(first, ParcelStatus::Voided), (second, ParcelStatus::ManifestSubmitted)];
    assert_eq!((page.parcels.len(), parcels), (2, expected.into()));
}

#[tokio::test(start_paused = true)]
async fn any_fault_at_any_request_leaves_exactly_the_parcels_asked_for() {
    let Session { server, client, .. } = &Session::start(Way::InMemory, Retry::none()).await;
    session(client).await;
    server.requests().assert_count(usize::try_from(REQUESTS).unwrap());
    for trouble in troubles(&FAULTS, &[1, 3]) {
        println!("{trouble:?}");
        survive(Way::InMemory, trouble).await;
    }
}

#[tokio::test]
async fn so_it_is_over_a_socket_that_really_breaks() {
    let broken =
        FAULTS.into_iter().filter(|fault| ["close", "reset", "truncated"].contains(&fault.0));
    for trouble in troubles(&broken.collect::<Vec<_>>(), &[1]) {
        println!("{trouble:?}");
        survive(Way::Http, trouble).await;
    }
}
