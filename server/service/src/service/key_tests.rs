//! Tests of keys during a flood of wrong ones, and while another process writes them.

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use parcelo_domain::{
    ApiKeyRecord, Millis,
    audit::Actor,
    credentials::{ApiKeyScope, CarrierScope},
    limit::Admission,
    sample::TEST_AUTHOR,
};
use parcelo_store::Store;
use parcelo_system::{
    clock::{ManualClock, monotonic_now},
    ids::Ids,
};
use parcelo_types::{ApiKey, Environment};
use parcelo_wire::CarrierKey;
use tempfile::TempDir;

use super::{
    CredentialIssuer, LimitSubject, Service,
    key_cache::MAX_CACHE_AGE,
    tests::{key_request, settings},
};

const NOW: Millis = Millis(1_767_600_000_000);

/// A service on a database file that another process has open too.
struct TestService {
    service: Service,
    other_process: Store,
    _folder: TempDir,
}

impl TestService {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("parcelo.db");
        let store = Store::open(&file, [1; 32]).unwrap();
        let other_process = Store::open_for_admin(&file, [1; 32]).unwrap();
        let (clock, ids) = (Arc::new(ManualClock::at(NOW)), Arc::new(Ids::seeded(1)));
        let service = Service::new(store, clock, ids, settings());
        Self { service, other_process, _folder: folder }
    }

    /// Issues a key in the other process.
    async fn issue_elsewhere(&self) -> (ApiKey, ApiKeyRecord) {
        let ids = &self.service.ids;
        let issuer = CredentialIssuer {
            store: &self.other_process,
            secrets: self.service.secrets(),
            ids,
            by: TEST_AUTHOR.clone(),
        };
        issuer.issue_api_key(key_request(), NOW).await.unwrap()
    }

    async fn accepts(&self, key: &ApiKey) -> bool {
        self.service.authenticate(Environment::Sandbox, Some(key.secret())).await.is_ok()
    }

    fn reads(&self) -> u64 {
        self.service.store.stats().reads
    }
}

/// Lets time pass until the cache of keys is too old.
async fn let_cache_expire() {
    const { assert!(MAX_CACHE_AGE.as_millis() < 1_000, "a revocation takes effect within a second") };
    tokio::time::pause();
    tokio::time::advance(MAX_CACHE_AGE + Duration::from_millis(1)).await;
    tokio::time::resume();
}

/// Returns a well-formed key that no one has.
fn wrong_key(number: u32) -> ApiKey {
    let mut bytes = [0; 32];
    bytes.iter_mut().zip(number.to_be_bytes()).for_each(|(to, from)| *to = from);
    ApiKey::from_random(Environment::Sandbox, &bytes)
}

/// Returns the maximum number of reads since `started`: the regular refreshes, and some for unknown keys after each.
fn max_reads(started: Instant) -> u64 {
    9 * (u64::try_from(started.elapsed().as_millis()).unwrap() / 250 + 2)
}

#[tokio::test]
async fn wrong_keys_cause_few_reads_and_do_not_block_valid_keys() {
    let test = TestService::new();
    let (valid, _) =
        test.service.issuer(Actor::Server).issue_api_key(key_request(), NOW).await.unwrap();
    assert!(test.accepts(&valid).await);
    let (started, before) = (monotonic_now(), test.reads());
    for number in 0..20_000 {
        assert!(!test.accepts(&wrong_key(number)).await);
    }
    let (reads, max) = (test.reads() - before, max_reads(started));
    assert!(reads <= max, "{reads} reads for 20,000 wrong keys, {max} at most");
    assert!(test.accepts(&valid).await);
    // A key that this server issues meanwhile works at once, and its revocation takes effect at once.
    let (fresh, record) =
        test.service.issuer(Actor::Server).issue_api_key(key_request(), NOW).await.unwrap();
    assert!(test.accepts(&fresh).await);
    test.service.revoke_key(&record.id, Actor::Server).await.unwrap();
    assert!(!test.accepts(&fresh).await && test.accepts(&valid).await);
}

#[tokio::test]
async fn a_valid_key_costs_few_reads() {
    let test = TestService::new();
    let (valid, _) =
        test.service.issuer(Actor::Server).issue_api_key(key_request(), NOW).await.unwrap();
    let (started, before) = (monotonic_now(), test.reads());
    for _ in 0..20_000 {
        assert!(test.accepts(&valid).await);
    }
    assert!(test.reads() - before <= max_reads(started));
}

#[tokio::test]
async fn keys_of_another_process_work_soon_even_in_a_flood() {
    let test = TestService::new();
    let (first, record) = test.issue_elsewhere().await;
    assert!(test.accepts(&first).await);
    let (second, _) = test.issue_elsewhere().await;
    assert!(test.accepts(&second).await, "before the next regular refresh");
    for number in 0..1_000 {
        assert!(!test.accepts(&wrong_key(number)).await);
    }
    let (third, _) = test.issue_elsewhere().await;
    let_cache_expire().await;
    assert!(test.accepts(&third).await);
    test.other_process
        .revoke_credential::<ApiKeyScope>(&record.id, NOW, &TEST_AUTHOR)
        .await
        .unwrap();
    let_cache_expire().await;
    assert!(!test.accepts(&first).await);
    assert!(test.accepts(&second).await && test.accepts(&third).await);
}

#[tokio::test]
async fn a_flood_of_wrong_carrier_keys_costs_few_reads() {
    let test = TestService::new();
    let issuer = test.service.issuer(Actor::Server);
    let issue =
        || issuer.issue::<CarrierScope>("Andes Cargo".to_owned(), Environment::Sandbox, NOW);
    let accepts = async |key: &CarrierKey| {
        let key = Some(key.secret());
        test.service.authenticate_carrier(Environment::Sandbox, key).await.is_ok()
    };
    let (valid, record) = issue().await.unwrap();
    assert!(accepts(&valid).await);
    let (started, before) = (monotonic_now(), test.reads());
    for number in 0..20_000_u32 {
        let mut bytes = [0; 32];
        bytes.iter_mut().zip(number.to_be_bytes()).for_each(|(to, from)| *to = from);
        assert!(!accepts(&CarrierKey::from_random(Environment::Sandbox, &bytes)).await);
    }
    assert!(test.reads() - before <= max_reads(started));
    let (fresh, _) = issue().await.unwrap();
    assert!(accepts(&valid).await && accepts(&fresh).await);
    test.other_process
        .revoke_credential::<CarrierScope>(&record.id, NOW, &TEST_AUTHOR)
        .await
        .unwrap();
    assert!(!accepts(&valid).await, "another process's revocation takes effect at once");
}

#[tokio::test]
async fn the_addresses_of_one_ipv6_network_share_each_limit() {
    let test = TestService::new();
    let limits = test.service.settings.limits;
    let ip = |text: String| text.parse::<IpAddr>().unwrap();
    let production = Environment::Production;
    let kinds: [(&dyn Fn(IpAddr) -> LimitSubject, u32); 3] = [
        (&|client| LimitSubject::Address(production, client), limits.unauthenticated),
        (&LimitSubject::Operator, limits.unauthenticated),
        (&|client| LimitSubject::Public(production, client), limits.public),
    ];
    for (kind, limit) in kinds {
        let admits =
            |client| matches!(test.service.admit(kind(client), NOW), Admission::Granted(_));
        let admitted = (0..200).filter(|last| admits(ip(format!("2001:db8:1:2::{last:x}"))));
        assert_eq!(admitted.count(), limit as usize, "{:?}", kind(ip("::".to_owned())));
        assert!(admits(ip("2001:db8:1:3::1".to_owned())), "the next network has its own limit");
        assert!((0..200).all(|last| admits(ip(format!("203.0.113.{last}")))), "each IPv4 address");
    }
    let sandbox = LimitSubject::Address(Environment::Sandbox, ip("2001:db8:1:2::1".to_owned()));
    assert!(matches!(test.service.admit(sandbox, NOW), Admission::Granted(_)));
}
