//! Tests that two servers on one database share limits, keys, webhooks, sessions and attempts to sign in.

use std::{collections::HashMap, net::Ipv4Addr, sync::Arc};

use futures_util::future::join_all;
use parcelo_domain::{
    Millis, Secrets, Tenant,
    audit::Actor,
    credentials::{AdminScope, CarrierScope},
    limit::Admission,
    login_throttle::{LoginAttempt, LoginThrottle},
    sample::TEST_AUTHOR,
    session::PasswordLogin,
    webhooks::{AllowedHosts, DeliverySlots, DisabledBy, WebhookEventKinds},
};
use parcelo_store::{Address, Store, test_util::database};
use parcelo_system::{
    clock::{Clock, ManualClock},
    ids::Ids,
};
use parcelo_types::{ApiKey, Environment};

use super::{
    Caller, CredentialIssuer, EndpointRequest, NewKeyRequest, Service,
    key_cache::MAX_CACHE_AGE,
    tests::{key_request, settings},
};
use crate::waiting::{PausedTime, until};

const NOW: Millis = Millis(1_767_600_000_000);
const LIMIT: u32 = 50;

/// Two servers on one database, with a manual clock.
struct TwoServers {
    both: [Service; 2],
    clock: Arc<ManualClock>,
}

impl TwoServers {
    /// Starts both servers. Returns `None` if PostgreSQL is not installed.
    async fn start() -> Option<Self> {
        Some(Self::with_database(&database()?).await)
    }

    async fn with_database(address: &Address) -> Self {
        let clock = Arc::new(ManualClock::at(NOW));
        let service = async |seed| {
            let store = Store::connect(address.clone(), [1; 32]).await.unwrap();
            let settings =
                super::Settings { secrets: Secrets::derive(&store.secret()), ..settings() };
            Service::new(store, clock.clone(), Arc::new(Ids::seeded(seed)), settings)
        };
        let both = [service(1).await, service(2).await];
        Self { both, clock }
    }

    /// Sends heartbeats until each server counts the other, and both are in the same second of the database's clock.
    async fn exchange_heartbeats(&self, caller: &Caller) {
        loop {
            for server in [&self.both[0], &self.both[1], &self.both[0]] {
                server.send_heartbeat().await.unwrap();
            }
            let [one, other] = self.both.each_ref().map(|server| server.quota_for(caller, NOW));
            if one == other {
                return;
            }
        }
    }

    async fn key(&self, rate_limit: Option<u32>) -> (ApiKey, Caller) {
        let request = NewKeyRequest { rate_limit, ..key_request() };
        let (key, record) =
            self.both[0].issuer(Actor::Server).issue_api_key(request, NOW).await.unwrap();
        (key, Caller { key: Arc::new(record), trace: None })
    }

    /// Sends requests at once, each to the server that `choose` returns, and returns the number admitted by window.
    async fn admit(
        &self,
        caller: &Caller,
        requests: usize,
        choose: impl Fn(usize) -> usize,
    ) -> HashMap<i64, u32> {
        let now = self.clock.now();
        let all = (0..requests).map(|number| self.both[choose(number)].admit_caller(caller, now));
        let mut admitted = HashMap::new();
        for admission in join_all(all).await {
            match admission {
                Admission::Granted(quota) => {
                    assert!(quota.remaining < LIMIT);
                    *admitted.entry(quota.reset).or_default() += 1;
                }
                Admission::Refused(quota) => assert_eq!(quota.remaining, 0),
            }
        }
        admitted
    }

    fn advance(&self, millis: i64) {
        self.clock.set(self.clock.now().plus(millis));
    }
}

#[tokio::test]
async fn two_servers_share_a_limit_and_admit_nine_tenths_of_it() {
    let Some(servers) = TwoServers::start().await else { return };
    let (_, caller) = servers.key(Some(LIMIT)).await;
    servers.exchange_heartbeats(&caller).await;
    // On a stopped clock, no server gives up waiting for the database and counts alone.
    let _paused = PausedTime::start();
    let choices: [fn(usize) -> usize; 4] =
        [|_| 0, |number| number % 2, |number| usize::from(number > 30), |_| 1];
    for choose in choices {
        for requests in [45, 200] {
            servers.advance(1_000);
            let admitted = servers.admit(&caller, requests, choose).await;
            let all: u32 = admitted.values().sum();
            assert_eq!(admitted.len(), 1, "one window: {admitted:?}");
            assert!((45..=LIMIT + LIMIT / 10).contains(&all), "{all} of {requests}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_leaves_its_share_to_the_other() {
    let Some(servers) = TwoServers::start().await else { return };
    let (_, caller) = servers.key(Some(LIMIT)).await;
    servers.exchange_heartbeats(&caller).await;
    let before = servers.both[0].store.stats().reads;
    let TwoServers { both: [one, other], clock } = servers;
    other.store.clone().close().await;
    one.send_heartbeat().await.unwrap();
    for left in (0..LIMIT).rev() {
        let admission = one.admit_caller(&caller, clock.now()).await;
        assert!(matches!(admission, Admission::Granted(quota) if quota.remaining == left));
    }
    assert!(matches!(one.admit_caller(&caller, clock.now()).await, Admission::Refused(_)));
    assert_eq!(one.store.stats().reads, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_revoked_at_one_server_is_soon_refused_at_the_other() {
    const { assert!(MAX_CACHE_AGE.as_millis() < 1_000) };
    let Some(servers) = TwoServers::start().await else { return };
    let [one, other] = &servers.both;
    let (key, caller) = servers.key(None).await;
    let accepts =
        async || other.authenticate(Environment::Sandbox, Some(key.secret())).await.is_ok();
    assert!(accepts().await);
    one.revoke_key(&caller.key.id, Actor::Server).await.unwrap();
    // The cache is refreshed when it is older than `MAX_CACHE_AGE`; the test does not move that clock.
    until("it is refused", async || !accepts().await).await;
    let (key, _) = servers.key(None).await;
    assert!(other.authenticate(Environment::Sandbox, Some(key.secret())).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn carrier_keys_and_tokens_are_revoked_at_both_servers() {
    let Some(servers) = TwoServers::start().await else { return };
    let [one, other] = &servers.both;
    let issuer = CredentialIssuer {
        store: &one.store,
        secrets: one.secrets(),
        ids: &one.ids,
        by: TEST_AUTHOR.clone(),
    };
    let name = "Andes Cargo".to_owned();
    let (key, record) =
        issuer.issue::<CarrierScope>(name, Environment::Sandbox, NOW).await.unwrap();
    let authenticate =
        async || other.authenticate_carrier(Environment::Sandbox, Some(key.secret())).await.is_ok();
    assert!(authenticate().await);
    one.store.revoke_credential::<CarrierScope>(&record.id, NOW, &TEST_AUTHOR).await.unwrap();
    assert!(!authenticate().await, "at the next request");
    let (token, record) =
        issuer.issue::<AdminScope>("Token".to_owned(), AdminScope, NOW).await.unwrap();
    let header = format!("Bearer {}", token.secret());
    assert!(other.authenticate_admin(Some(&header)).await.is_ok());
    one.store.revoke_credential::<AdminScope>(&record.id, NOW, &TEST_AUTHOR).await.unwrap();
    assert!(other.authenticate_admin(Some(&header)).await.is_err(), "at the next request");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_is_changed_and_turned_off_at_both_servers() {
    let Some(servers) = TwoServers::start().await else { return };
    let [one, other] = &servers.both;
    let account = one.store.account("default", "acc_1".to_owned(), NOW).await.unwrap();
    let tenant = Tenant { account, environment: Environment::Sandbox };
    let set = async |url: &str| {
        let allowed_hosts =
            AllowedHosts::for_environment(tenant.environment, one.settings.webhooks);
        let request = EndpointRequest {
            tenant,
            url: url.to_owned(),
            kinds: WebhookEventKinds::default(),
            allowed_hosts,
        };
        one.endpoints(Actor::Server).upsert(request, NOW).await.unwrap();
    };
    // The address to which the other server would send now.
    let next = async || {
        let leased = other.lease_deliveries(&DeliverySlots::new(10)).await.unwrap();
        let event = leased.into_iter().next()?;
        Some(other.prepare_delivery(event).await.unwrap().unwrap().url)
    };
    for url in ["https://shop.example/one", "https://shop.example/two"] {
        set(url).await;
        other.endpoints(Actor::Server).send_test(tenant, NOW).await.unwrap();
        assert_eq!(next().await.as_deref(), Some(url));
    }
    other.endpoints(Actor::Server).send_test(tenant, NOW).await.unwrap();
    one.store.disable_endpoint(tenant, DisabledBy::Operator, &TEST_AUTHOR).await.unwrap();
    assert_eq!(next().await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn both_servers_share_a_session_until_a_new_password() {
    let Some(servers) = TwoServers::start().await else { return };
    let [one, other] = &servers.both;
    let account = one.store.account("default", "acc_1".to_owned(), NOW).await.unwrap();
    let password = "a hash".to_owned();
    one.store.set_password(account, password.clone(), NOW, &TEST_AUTHOR).await.unwrap();
    let login = PasswordLogin { account, password };
    let token =
        one.begin_session(login, Ipv4Addr::LOCALHOST.into(), None, NOW).await.unwrap().unwrap();
    assert!(other.find_session(&token).await.unwrap().is_some());
    // A form that one server has shown is valid at the other.
    assert!(other.is_form_token(&token, &one.form_token(&token)));
    one.store.set_password(account, "another".to_owned(), NOW, &TEST_AUTHOR).await.unwrap();
    assert!(other.find_session(&token).await.unwrap().is_none());
}

fn attempt<'a>(account: &'a str, client: &str) -> LoginAttempt<'a> {
    LoginAttempt { account, client: client.parse().unwrap(), is_signed_in: false }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_allow_no_more_sign_in_attempts_than_one() {
    let Some(servers) = TwoServers::start().await else { return };
    let attempts = (0..200).map(|number| {
        let store = servers.both[number % 2].store.clone();
        tokio::spawn(async move { store.begin_login(attempt("a", "203.0.113.7"), NOW).await })
    });
    let pending = join_all(attempts.collect::<Vec<_>>()).await;
    let pending = pending.into_iter().filter(|pending| matches!(pending, Ok(Ok(Ok(_)))));
    assert_eq!(pending.count(), 5);
    // The other server's clock may be behind.
    for (server, behind) in [(0, 0), (1, 5_000), (0, 59_000)] {
        let store = &servers.both[server].store;
        let now = NOW.plus(-behind);
        let wait = store.begin_login(attempt("b", "203.0.113.7"), now).await.unwrap();
        assert_eq!(wait.err(), Some(60), "{behind} ms behind");
    }
    for server in &servers.both {
        let wait = server.store.begin_login(attempt("c", "203.0.113.7"), NOW).await.unwrap();
        assert_eq!(wait.err(), Some(60));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_throttle_sign_ins_like_one() {
    let Some(servers) = TwoServers::start().await else { return };
    let (mut throttle, mut random) = (LoginThrottle::default(), fastrand::Rng::with_seed(5));
    let mut now = NOW;
    for number in 0..600 {
        let store = &servers.both[number % 2].store;
        let client = format!("203.0.113.{}", random.u8(0..3));
        let account = ["shop", "other"][random.usize(0..2)];
        let attempt =
            LoginAttempt { is_signed_in: random.u8(0..9) == 0, ..attempt(account, &client) };
        now = now.plus(random.i64(0..40_000));
        let expected = throttle.begin(attempt, now);
        let pending = store.begin_login(attempt, now).await.unwrap();
        match (expected, pending) {
            (Err(expected), Err(wait)) => assert_eq!(wait, expected, "{attempt:?}"),
            (Ok(expected), Ok(pending)) if random.u8(0..4) == 0 => {
                throttle.take_back(expected);
                throttle.record_sign_in(attempt);
                store.take_back_login(pending).await.unwrap();
                store.remember_login(attempt, now).await.unwrap();
            }
            (Ok(_), Ok(_)) => {}
            (expected, pending) => panic!("{attempt:?}: {pending:?} instead of {expected:?}"),
        }
    }
}
