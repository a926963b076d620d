//! The limits that servers share, as the database counts them.

use std::collections::HashMap;

use parcelo_domain::{
    login_throttle::LoginAttempt,
    shared_limit::{LimitClaim, SharedKey},
};

use crate::postgres::test_util::cluster::{client, database, new_store, query, run_sql};
use crate::{
    Store,
    tests::conformance::{NOW, SECRET},
};

#[tokio::test(flavor = "multi_thread")]
async fn postgresql_grants_claims_like_the_simulation() {
    let Some((store, _)) = new_store().await else { return };
    let (mut random, mut taken) = (fastrand::Rng::with_seed(3), HashMap::new());
    let keys = [SharedKey::Api(1), SharedKey::Api(2), SharedKey::Carrier(1)];
    for round in 0..200 {
        let chosen = (0..2).flat_map(|before| keys.map(|key| (round / 10 - before, key)));
        let chosen: Vec<_> = chosen.filter(|_| random.bool()).collect();
        let claim = |(second, key)| {
            let (admitted, wanted) = (random.u32(0..6), random.u32(0..9));
            LimitClaim { second, key, limit: 50, admitted, wanted }
        };
        let mut claims: Vec<_> = chosen.into_iter().map(claim).collect();
        random.shuffle(&mut claims);
        let expected: Vec<_> = claims
            .iter()
            .map(|claim| claim.grant(taken.entry((claim.second, claim.key)).or_default()))
            .collect();
        assert_eq!(store.claim_requests(claims.clone()).await.unwrap(), expected, "{claims:?}");
    }
    assert!(taken.values().any(|taken| *taken >= 50), "{taken:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_sign_ins_leave_no_rows() {
    let Some((store, address)) = new_store().await else { return };
    let attempt = async |account: &str| {
        let client = "203.0.113.7".parse().unwrap();
        store.begin_login(LoginAttempt { account, client, is_signed_in: false }, NOW).await.unwrap()
    };
    for _ in 0..5 {
        assert!(attempt("shop").await.is_ok());
    }
    let count = "SELECT count(*) FROM login_failures";
    assert_eq!(query(&address, count), "2");
    for number in 0..20 {
        assert!(attempt(&format!("account-{number}")).await.is_err());
    }
    assert_eq!(query(&address, count), "2");
}

/// Sends heartbeats while there are 50,000 expired windows, which an open transaction can still see. Returns the number
/// of pages of windows that they read.
async fn count_window_pages_read(heartbeats: usize) -> Option<i64> {
    let address = database()?;
    let store = Store::connect(address.clone(), SECRET).await.unwrap();
    // On a slow machine autovacuum may run meanwhile, and read the same pages.
    run_sql(
        &address,
        "ALTER TABLE rate_limit_windows SET (autovacuum_enabled = off); \
         INSERT INTO rate_limit_windows SELECT 1767600000 + n / 100, 0, n, 1, 1, 1, 1, 1 \
         FROM generate_series(1, 50000) AS n",
    );
    let holder = client(&address).await;
    holder.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").await.unwrap();
    for _ in 0..heartbeats {
        store.send_heartbeat().await.unwrap();
    }
    drop(store);
    // Connections report their reads when they end.
    let count_idle = "SELECT count(*) FROM pg_stat_activity \
         WHERE datname = current_database() AND state = 'idle'";
    while query(&address, count_idle) != "0" {}
    let pages = "SELECT heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read \
         FROM pg_statio_user_tables WHERE relname = 'rate_limit_windows'";
    Some(query(&address, pages).parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_windows_are_scanned_once() {
    let Some(once) = count_window_pages_read(1).await else { return };
    let often = count_window_pages_read(41).await.unwrap();
    let per_call = (often - once) / 40;
    assert!(per_call < 100, "{per_call} pages by each call after the first, which read {once}");
}
