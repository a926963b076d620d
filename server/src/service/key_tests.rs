//! What is promised of keys while strangers try wrong ones, and while another process writes them.

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use parcelo::{ApiKey, Environment, admin::CarrierKey};
use tempfile::TempDir;

use super::{
    CredentialIssuer, Limited, NewKeyRequest, Service, key_cache::MAX_AGE, tests::settings,
};
use crate::{
    clock::{ManualClock, Millis, stopwatch},
    domain::{
        ApiKeyRecord, Countries,
        audit::Actor,
        audit::BY,
        credentials::{ApiKeyScope, CarrierScope},
        limit::Admission,
    },
    ids::Ids,
    store::Store,
};

const NOW: Millis = Millis(1_767_600_000_000);

/// A server's service on a file, and that file as another process opens it.
struct Ground {
    service: Service,
    beside: Store,
    _folder: TempDir,
}

impl Ground {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("parcelo.db");
        let store = Store::open(&file, [1; 32]).unwrap();
        let beside = Store::open_for_admin(&file, [1; 32]).unwrap();
        let (clock, ids) = (Arc::new(ManualClock::at(NOW)), Arc::new(Ids::seeded(1)));
        Self { service: Service::new(store, clock, ids, settings()), beside, _folder: folder }
    }

    /// A key that another process makes.
    async fn key_beside(&self) -> (ApiKey, ApiKeyRecord) {
        let ids = &self.service.ids;
        let issuer = CredentialIssuer {
            store: &self.beside,
            secrets: self.service.secrets(),
            ids,
            by: BY.clone(),
        };
        issuer.issue_api_key(wanted(), NOW).await.unwrap()
    }

    async fn knows(&self, key: &ApiKey) -> bool {
        self.service.authenticate(Environment::Sandbox, Some(key.secret())).await.is_ok()
    }

    fn reads(&self) -> u64 {
        self.service.store.stats().reads
    }
}

fn wanted() -> NewKeyRequest {
    NewKeyRequest {
        account: "default".to_owned(),
        environment: Environment::Sandbox,
        name: "Test".to_owned(),
        countries: Countries::All,
        ip_list: Vec::new(),
        rate_limit: None,
    }
}

/// Lets so much time pass that all that is known of keys is too old to be believed.
async fn pass() {
    const { assert!(MAX_AGE.as_millis() < 1_000, "a revocation is in force within a second") };
    tokio::time::pause();
    tokio::time::advance(MAX_AGE + Duration::from_millis(1)).await;
    tokio::time::resume();
}

/// Right in form, and no one's.
fn wrong_key(number: u32) -> ApiKey {
    let mut bytes = [0; 32];
    bytes.iter_mut().zip(number.to_be_bytes()).for_each(|(to, from)| *to = from);
    ApiKey::from_random(Environment::Sandbox, &bytes)
}

/// The most looks that a time may have cost: the regular ones, and some for unknown keys with each.
fn most_looks(begun: Instant) -> u64 {
    9 * (u64::try_from(begun.elapsed().as_millis()).unwrap() / 250 + 2)
}

#[tokio::test]
async fn a_flood_of_wrong_keys_costs_no_read_each_and_keeps_no_good_key_out() {
    let ground = Ground::new();
    let (good, _) =
        ground.service.issuer(Actor::Server).issue_api_key(wanted(), NOW).await.unwrap();
    assert!(ground.knows(&good).await);
    let (begun, before) = (stopwatch(), ground.reads());
    for number in 0..20_000 {
        assert!(!ground.knows(&wrong_key(number)).await);
    }
    let (looks, most) = (ground.reads() - before, most_looks(begun));
    assert!(looks <= most, "{looks} reads for 20,000 wrong keys, {most} at most");
    assert!(ground.knows(&good).await);
    // One that this server makes meanwhile is known at once, and so is that one is revoked.
    let (fresh, record) =
        ground.service.issuer(Actor::Server).issue_api_key(wanted(), NOW).await.unwrap();
    assert!(ground.knows(&fresh).await);
    ground.service.revoke_key(&record.id, Actor::Server).await.unwrap();
    assert!(!ground.knows(&fresh).await && ground.knows(&good).await);
}

#[tokio::test]
async fn a_good_key_costs_no_read_each_time_either() {
    let ground = Ground::new();
    let (good, _) =
        ground.service.issuer(Actor::Server).issue_api_key(wanted(), NOW).await.unwrap();
    let (begun, before) = (stopwatch(), ground.reads());
    for _ in 0..20_000 {
        assert!(ground.knows(&good).await);
    }
    assert!(ground.reads() - before <= most_looks(begun));
}

#[tokio::test]
async fn keys_of_another_process_work_at_once_and_during_a_flood_soon() {
    let ground = Ground::new();
    let (first, record) = ground.key_beside().await;
    assert!(ground.knows(&first).await);
    let (second, _) = ground.key_beside().await;
    assert!(ground.knows(&second).await, "no one has to wait for the next regular look");
    for number in 0..1_000 {
        assert!(!ground.knows(&wrong_key(number)).await);
    }
    let (third, _) = ground.key_beside().await;
    pass().await;
    assert!(ground.knows(&third).await);
    ground.beside.revoke_credential::<ApiKeyScope>(&record.id, NOW, &BY).await.unwrap();
    pass().await;
    assert!(!ground.knows(&first).await);
    assert!(ground.knows(&second).await && ground.knows(&third).await);
}

#[tokio::test]
async fn a_flood_of_wrong_carrier_keys_costs_no_read_each_either() {
    let ground = Ground::new();
    let issuer = ground.service.issuer(Actor::Server);
    let issue =
        || issuer.issue::<CarrierScope>("Andes Cargo".to_owned(), Environment::Sandbox, NOW);
    let knows = async |key: &CarrierKey| {
        let key = Some(key.secret());
        ground.service.authenticate_carrier(Environment::Sandbox, key).await.is_ok()
    };
    let (good, record) = issue().await.unwrap();
    assert!(knows(&good).await);
    let (begun, before) = (stopwatch(), ground.reads());
    for number in 0..20_000_u32 {
        let mut bytes = [0; 32];
        bytes.iter_mut().zip(number.to_be_bytes()).for_each(|(to, from)| *to = from);
        assert!(!knows(&CarrierKey::from_random(Environment::Sandbox, &bytes)).await);
    }
    assert!(ground.reads() - before <= most_looks(begun));
    let (fresh, _) = issue().await.unwrap();
    assert!(knows(&good).await && knows(&fresh).await);
    ground.beside.revoke_credential::<CarrierScope>(&record.id, NOW, &BY).await.unwrap();
    assert!(!knows(&good).await, "by whatever process: at once");
}

#[tokio::test]
async fn the_addresses_of_one_ipv6_network_share_each_limit() {
    let ground = Ground::new();
    let limits = ground.service.settings.limits;
    let ip = |text: String| text.parse::<IpAddr>().unwrap();
    let production = Environment::Production;
    let kinds: [(&dyn Fn(IpAddr) -> Limited, u32); 3] = [
        (&|client| Limited::Address(production, client), limits.unauthenticated),
        (&Limited::Operator, limits.unauthenticated),
        (&|client| Limited::Public(production, client), limits.public),
    ];
    for (kind, limit) in kinds {
        let admits =
            |client| matches!(ground.service.admit(kind(client), NOW), Admission::Granted(_));
        let admitted = (0..200).filter(|last| admits(ip(format!("2001:db8:1:2::{last:x}"))));
        assert_eq!(admitted.count(), limit as usize, "{:?}", kind(ip("::".to_owned())));
        assert!(admits(ip("2001:db8:1:3::1".to_owned())), "the network beside it has its own");
        assert!((0..200).all(|last| admits(ip(format!("203.0.113.{last}")))), "of IPv4 each one");
    }
    let sandbox = Limited::Address(Environment::Sandbox, ip("2001:db8:1:2::1".to_owned()));
    assert!(matches!(ground.service.admit(sandbox, NOW), Admission::Granted(_)));
}
