//! The limits that servers share, as the database counts them.

use std::collections::HashMap;

use super::cluster::database;
use crate::{
    domain::shared_limit::{Claim, SharedKey, tests::grant},
    store::{Store, tests::conformance::SECRET},
};

#[tokio::test(flavor = "multi_thread")]
async fn the_database_grants_what_the_simulated_one_does() {
    let Some(address) = database() else { return };
    let store = Store::connect(address, SECRET).await.unwrap();
    let (mut random, mut taken) = (fastrand::Rng::with_seed(3), HashMap::new());
    let keys = [SharedKey::Api(1), SharedKey::Api(2), SharedKey::Carrier(1)];
    for round in 0..200 {
        let asked = (0..2).flat_map(|before| keys.map(|key| (round / 10 - before, key)));
        let asked: Vec<_> = asked.filter(|_| random.bool()).collect();
        let claim = |(second, key)| {
            let (admitted, wanted) = (random.u32(0..6), random.u32(0..9));
            Claim { second, key, limit: 50, admitted, wanted }
        };
        let mut claims: Vec<_> = asked.into_iter().map(claim).collect();
        random.shuffle(&mut claims);
        let expected: Vec<_> = claims.iter().map(|claim| grant(&mut taken, claim)).collect();
        assert_eq!(store.claim_requests(claims.clone()).await.unwrap(), expected, "{claims:?}");
    }
    assert!(taken.values().any(|taken| *taken >= 50), "{taken:?}");
}
