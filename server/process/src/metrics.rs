//! GET /metrics on the operators' listener: the metrics in one of the two formats of Prometheus, which `Accept`
//! chooses. The default is the older one, which other programs read too.

use std::{collections::HashSet, fmt::Write};

use axum::{
    extract::State,
    http::{HeaderMap, header},
    response::{IntoResponse, Response},
};
use parcelo_service::http::{Api, HttpRefusal};

/// The path of the metrics.
pub(super) const PATH: &str = "/metrics";
/// The media types of the two formats.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Handles GET /metrics.
pub(super) async fn scrape(
    State(api): State<Api>,
    headers: HeaderMap,
) -> Result<Response, HttpRefusal> {
    let open_metrics = api.service.metrics_text().await?;
    let (format, text) = if prefers_open_metrics(&headers) {
        (OPEN_METRICS, open_metrics)
    } else {
        (TEXT, to_text_format(&open_metrics))
    };
    Ok(([(header::CONTENT_TYPE, format), (header::VARY, "accept")], text).into_response())
}

/// Returns `true` if `Accept` names `OpenMetrics` with at least the weight of plain text.
fn prefers_open_metrics(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::ACCEPT).iter().filter_map(|line| line.to_str().ok());
    let (mut open_metrics, mut text) = (0.0, 0.0);
    for range in lines.flat_map(|line| line.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default().to_ascii_lowercase();
        let parameters: Vec<_> = parts.filter_map(|part| part.split_once('=')).collect();
        let parameter = |name: &str| {
            let found = parameters.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.trim_matches('"'))
        };
        let weight = parameter("q").map_or(1.0, |q| q.parse::<f32>().unwrap_or(0.0));
        match media_type.as_str() {
            "application/openmetrics-text" if parameter("version").is_none_or(|v| v == "1.0.0") => {
                open_metrics = weight.max(open_metrics);
            }
            "text/plain" | "text/*" | "*/*" => text = weight.max(text),
            _ => {}
        }
    }
    open_metrics > 0.0 && open_metrics >= text
}

/// Converts `OpenMetrics` to the text format 0.0.4: a counter has the name of its samples, and there are neither
/// units nor an end mark. Samples are equal in both.
fn to_text_format(open_metrics: &str) -> String {
    let meta = |line: &str| -> Option<(String, String, String)> {
        let mut words = line.strip_prefix("# ")?.splitn(3, ' ').map(str::to_owned);
        Some((words.next()?, words.next().unwrap_or_default(), words.next().unwrap_or_default()))
    };
    let all = open_metrics.lines().filter_map(meta);
    let counters: HashSet<_> = all
        .filter(|(keyword, _, rest)| keyword == "TYPE" && rest == "counter")
        .map(|(_, name, _)| name)
        .collect();
    let mut text = String::with_capacity(open_metrics.len());
    for line in open_metrics.lines() {
        let _infallible = match meta(line) {
            None => writeln!(text, "{line}"),
            Some((keyword, name, rest)) if keyword == "HELP" || keyword == "TYPE" => {
                let total = if counters.contains(&name) { "_total" } else { "" };
                writeln!(text, "# {keyword} {name}{total} {rest}")
            }
            Some(_) => Ok(()),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::{
        body::Body,
        http::{HeaderValue, Request},
    };
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;
    use crate::routes::admin_router;
    use parcelo_service::mock::MockServer;

    #[test]
    fn accept_chooses_the_format_and_plain_text_is_the_default() {
        let open = "application/openmetrics-text";
        let prometheus = format!(
            "{open};version=1.0.0;escaping=allow-utf-8;q=0.6,{open};version=0.0.1;q=0.5,\
             text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
        );
        let table: [(&[&str], bool); 12] = [
            (&[], false),
            (&["*/*"], false),
            (&["text/plain"], false),
            (&["application/json"], false),
            (&[&prometheus], true),
            (&[open], true),
            (&["Application/OpenMetrics-Text; Version=\"1.0.0\", */*;q=0.1"], true),
            (&["text/plain;q=0.5", &format!("{open};q=0.6")], true),
            (&["text/plain;q=0.7", &format!("{open};q=0.6")], false),
            (&[&format!("{open};q=0")], false),
            (&[&format!("{open};version=0.0.1"), "text/plain;version=0.0.4;q=0.2"], false),
            (&[&format!("{open};q=much")], false),
        ];
        for (accept, expected) in table {
            let mut headers = HeaderMap::new();
            for line in accept {
                headers.append(header::ACCEPT, HeaderValue::from_str(line).unwrap());
            }
            assert_eq!(prefers_open_metrics(&headers), expected, "{accept:?}");
        }
    }

    #[test]
    fn the_text_format_names_a_counter_as_its_samples() {
        let open_metrics = "# HELP parcelo_requests Requests answered, by code.\n\
             # TYPE parcelo_requests counter\n\
             parcelo_requests_total{code=\"a # HELP b\"} 3\n\
             # HELP parcelo_request_seconds How long.\n\
             # TYPE parcelo_request_seconds histogram\n\
             # UNIT parcelo_request_seconds seconds\n\
             parcelo_request_seconds_sum 0.5\n\
             parcelo_request_seconds_bucket{le=\"+Inf\"} 1\n\
             # HELP parcelo_writable 1 while it is.\n\
             # TYPE parcelo_writable gauge\n\
             parcelo_writable 1\n\
             # EOF\n";
        let text = "# HELP parcelo_requests_total Requests answered, by code.\n\
             # TYPE parcelo_requests_total counter\n\
             parcelo_requests_total{code=\"a # HELP b\"} 3\n\
             # HELP parcelo_request_seconds How long.\n\
             # TYPE parcelo_request_seconds histogram\n\
             parcelo_request_seconds_sum 0.5\n\
             parcelo_request_seconds_bucket{le=\"+Inf\"} 1\n\
             # HELP parcelo_writable 1 while it is.\n\
             # TYPE parcelo_writable gauge\n\
             parcelo_writable 1\n";
        assert_eq!(to_text_format(open_metrics), text);
    }

    async fn scrape_text(server: &MockServer) -> String {
        let request = Request::get(super::PATH).body(Body::empty()).unwrap();
        let response = admin_router(server.api()).oneshot(request).await.unwrap();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(body.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn outbox_metrics_show_size_and_age() {
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
        assert_all(&scrape_text(&server).await, &empty);
        let _inbox = server.webhook_inbox().reply([503, 410]).start().await;
        server.seed_parcels(1).await;
        server.clock().advance(Duration::from_secs(3)).await;
        let waiting = [outbox("pending", 1, 3), outbox("held", 0, 0)].concat();
        assert_all(&scrape_text(&server).await, &waiting);
        assert_all(&scrape_text(&server).await, &[counts("retried", 1)]);
        server.clock().advance(Duration::from_secs(10)).await;
        server.seed_parcels(2).await;
        server.clock().advance(Duration::from_secs(60)).await;
        let held = [outbox("pending", 0, 0), outbox("held", 2, 60)].concat();
        assert_all(&scrape_text(&server).await, &held);
        assert_all(&scrape_text(&server).await, &[counts("gone", 1), counts("retried", 1)]);
    }
}
