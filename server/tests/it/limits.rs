//! The rate limit: fixed windows of one second.

use std::time::Duration;

use crate::api::Api;

const HEALTH: &str = "/api/v1/health";

#[tokio::test]
async fn the_51st_request_of_a_window_is_refused() {
    let server = crate::embedded::start().await;
    let api = Api::with_key(server.url(), &server.key().rate_limit(50).issue());
    for left in (0..50).rev() {
        let response = api.get(HEALTH).await;
        assert_eq!(response.status, 200);
        assert_eq!(response.header("x-ratelimit-remaining"), left.to_string());
        assert_eq!(response.header("x-ratelimit-limit"), "50");
    }
    let refused = api.get(HEALTH).await;
    assert_eq!(refused.refusal(), (429, "RATE_LIMIT_EXCEEDED"));
    assert_eq!(refused.json()["error"]["retryAfter"].to_string(), "1");
    assert_eq!(refused.header("retry-after"), "1");
    assert_eq!(refused.header("x-ratelimit-remaining"), "0");
    assert_eq!(refused.header("x-ratelimit-reset"), "1767600001");
    let message = refused.json()["error"]["message"].clone();
    assert_eq!(message, "Too many requests. Retry after 1 second(s).");
    server.clock().advance(Duration::from_millis(999)).await;
    assert_eq!(api.get(HEALTH).await.status, 429);
    server.clock().advance(Duration::from_millis(1)).await;
    assert_eq!(api.get(HEALTH).await.header("x-ratelimit-remaining"), "49");
}

#[tokio::test]
async fn a_flood_of_wrong_keys_does_not_block_valid_keys() {
    let server = crate::embedded::builder().rate_limits(true).start().await;
    let known = Api::with_key(server.url(), &server.key().issue());
    assert_eq!(known.get(HEALTH).await.status, 200);
    let elsewhere = crate::embedded::builder().seed(7).start().await;
    let wrong = Api::with_key(server.url(), &elsewhere.key().issue());
    let mut statuses = Vec::new();
    for _ in 0..60 {
        statuses.push(wrong.get(HEALTH).await.status);
    }
    assert!(statuses[..50].iter().all(|status| *status == 401), "{statuses:?}");
    assert!(statuses[50..].iter().all(|status| *status == 429), "{statuses:?}");
    let fresh = Api::with_key(server.url(), &server.key().issue());
    assert_eq!((known.get(HEALTH).await.status, fresh.get(HEALTH).await.status), (200, 200));
}

#[tokio::test]
async fn each_key_has_its_own_window() {
    let server = crate::embedded::start().await;
    let one = Api::with_key(server.url(), &server.key().rate_limit(1).issue());
    let two = Api::with_key(server.url(), &server.key().rate_limit(1).issue());
    assert_eq!((one.get(HEALTH).await.status, one.get(HEALTH).await.status), (200, 429));
    assert_eq!(two.get(HEALTH).await.status, 200);
}
