//! GET /metrics on the operators' listener: what the server counts, as Prometheus reads it.

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};

use super::{Api, Refused};

/// Where Prometheus finds it.
pub(super) const PATH: &str = "/metrics";
/// The text format's own media type.
const FORMAT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) async fn scrape(State(api): State<Api>) -> Result<Response, Refused> {
    let text = api.service.metrics_text()?;
    Ok(([(header::CONTENT_TYPE, FORMAT)], text).into_response())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::{body::Body, http::Request};
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use crate::{http::admin_router, mock::MockServer};

    async fn scraped(server: &MockServer) -> String {
        let request = Request::get(super::PATH).body(Body::empty()).unwrap();
        let answer = admin_router(server.api()).oneshot(request).await.unwrap();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(body.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn the_outbox_shows_how_much_waits_and_since_when() {
        let server = MockServer::start().await;
        let outbox = |state, events, age| {
            let labels = format!("{{environment=\"sandbox\",state=\"{state}\"}}");
            [
                format!("parcelo_outbox_events{labels} {events}\n"),
                format!("parcelo_outbox_age_seconds{labels} {age}\n"),
            ]
        };
        let counts = |outcome, count| {
            format!(
                "parcelo_webhook_deliveries_total{{environment=\"sandbox\",outcome=\"{outcome}\"}} {count}\n"
            )
        };
        let assert_all = |text: &str, samples: &[String]| {
            for sample in samples {
                assert!(text.contains(sample), "{sample} in {text}");
            }
        };
        let empty = [outbox("pending", 0, 0), outbox("held", 0, 0)].concat();
        assert_all(&scraped(&server).await, &empty);
        let _inbox = server.webhook_inbox().reply([503, 410]).start().await;
        server.seed_parcels(1).await;
        server.clock().advance(Duration::from_secs(3)).await;
        let waiting = [outbox("pending", 1, 3), outbox("held", 0, 0)].concat();
        assert_all(&scraped(&server).await, &waiting);
        assert_all(&scraped(&server).await, &[counts("retried", 1)]);
        server.clock().advance(Duration::from_secs(10)).await;
        server.seed_parcels(2).await;
        server.clock().advance(Duration::from_secs(60)).await;
        let held = [outbox("pending", 0, 0), outbox("held", 2, 60)].concat();
        assert_all(&scraped(&server).await, &held);
        assert_all(&scraped(&server).await, &[counts("gone", 1), counts("retried", 1)]);
    }
}
