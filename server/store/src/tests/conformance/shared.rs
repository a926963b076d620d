//! State that the servers of one database share in addition to its data. A file has one server, for which the
//! same tests must pass.

use parcelo_domain::shared_limit::{LimitClaim, SharedKey};

use crate::Store;

conformance_tests!(claims_are_granted_within_the_limit, a_single_server_counts_itself_only,);
mod sign_in {
    use super::super::NOW;
    use crate::Store;
    use parcelo_domain::{Millis, login_throttle::LoginAttempt};

    conformance_tests!(
        after_five_failures_the_next_attempt_waits,
        an_attempt_that_was_taken_back_does_not_count,
        sign_ins_from_a_known_network_are_counted_separately,
        failures_are_forgotten_after_an_hour,
    );

    fn attempt_from(client: &str) -> LoginAttempt<'_> {
        LoginAttempt { account: "shop", client: client.parse().unwrap(), is_signed_in: false }
    }

    /// Makes an attempt that fails. Returns the seconds to wait if it is refused.
    async fn fail_sign_in(store: &Store, client: &str, now: Millis) -> Option<u32> {
        store.begin_login(attempt_from(client), now).await.unwrap().err()
    }

    async fn after_five_failures_the_next_attempt_waits(store: Store) {
        for _ in 0..5 {
            assert_eq!(fail_sign_in(&store, "203.0.113.7", NOW).await, None);
        }
        assert_eq!(fail_sign_in(&store, "203.0.113.7", NOW.plus(59_001)).await, Some(1));
        assert_eq!(fail_sign_in(&store, "203.0.113.8", NOW).await, None, "no other network waits");
        assert_eq!(fail_sign_in(&store, "203.0.113.7", NOW.plus(60_000)).await, None);
        assert_eq!(fail_sign_in(&store, "203.0.113.7", NOW.plus(60_000)).await, Some(120));
    }

    async fn an_attempt_that_was_taken_back_does_not_count(store: Store) {
        for _ in 0..20 {
            let begun = store.begin_login(attempt_from("203.0.113.7"), NOW).await.unwrap().unwrap();
            store.take_back_login(begun).await.unwrap();
        }
        assert_eq!(fail_sign_in(&store, "203.0.113.7", NOW).await, None);
    }

    async fn sign_ins_from_a_known_network_are_counted_separately(store: Store) {
        store.remember_login(attempt_from("203.0.113.7"), NOW).await.unwrap();
        for other in 0..10 {
            assert_eq!(fail_sign_in(&store, &format!("198.51.100.{other}"), NOW).await, None);
        }
        assert_eq!(fail_sign_in(&store, "198.51.100.99", NOW).await, Some(60));
        for _ in 0..5 {
            assert_eq!(fail_sign_in(&store, "203.0.113.7", NOW).await, None);
        }
        assert_eq!(fail_sign_in(&store, "203.0.113.7", NOW).await, Some(1));
    }

    async fn failures_are_forgotten_after_an_hour(store: Store) {
        for _ in 0..5 {
            assert_eq!(fail_sign_in(&store, "203.0.113.7", NOW).await, None);
        }
        let later = NOW.plus(Millis::HOUR);
        store.purge_sessions(later).await.unwrap();
        for _ in 0..5 {
            assert_eq!(fail_sign_in(&store, "203.0.113.7", later).await, None);
        }
        assert_eq!(fail_sign_in(&store, "203.0.113.7", later).await, Some(60));
    }
}

async fn claims_are_granted_within_the_limit(store: Store) {
    let claim = |key, wanted| LimitClaim { second: 7, key, limit: 50, admitted: 5, wanted };
    let claims = vec![claim(SharedKey::Api(1), 30), claim(SharedKey::Carrier(1), 45)];
    let granted: Vec<_> =
        store.claim_requests(claims).await.unwrap().iter().map(|grant| grant.granted).collect();
    assert_eq!(granted, [30, 45]);
}

async fn a_single_server_counts_itself_only(store: Store) {
    for _ in 0..2 {
        let count = store.send_heartbeat().await.unwrap();
        assert!(count.is_none_or(|count| count.servers == 1), "{count:?}");
    }
}
