//! The tracing spans of a call, with OpenTelemetry's names for HTTP and without personal data.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    fmt::Write,
    sync::Once,
};

use parcelo::{LabelFormat, Language, RateLimit, Retry, transport::Phase};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
    subscriber::Interest,
};

use crate::scripted_transport::{
    CREATED, RECORD, ScriptedTransport, Step, client_with, key, number, order, refusal, response,
};

thread_local! {
    /// Every span and event of this test's thread as text, one line for each.
    static LINES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    static LEVELS: RefCell<BTreeMap<&'static str, Level>> = const { RefCell::new(BTreeMap::new()) };
    static COLLECTING: Cell<bool> = const { Cell::new(false) };
}

/// A collector for all threads: collectors that come and go hide spans from each other.
#[derive(Debug)]
struct Collector;

struct Line<'a>(&'a mut String);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

fn begin(metadata: &Metadata<'_>, visit: impl FnOnce(&mut dyn Visit)) -> u64 {
    let mut line = metadata.name().to_owned();
    LEVELS.with_borrow_mut(|levels| levels.insert(metadata.name(), *metadata.level()));
    visit(&mut Line(&mut line));
    LINES.with_borrow_mut(|lines| {
        lines.push(line);
        lines.len() as u64
    })
}

/// Returns the lines that contain a name.
fn lines_of(lines: &[String], name: &str) -> Vec<String> {
    lines.iter().filter(|line| line.starts_with(name)).cloned().collect()
}

impl Subscriber for Collector {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        COLLECTING.get() && metadata.target().starts_with("parcelo::")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        Id::from_u64(begin(span.metadata(), |visit| span.record(visit)))
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let index = usize::try_from(span.into_u64()).unwrap() - 1;
        LINES.with_borrow_mut(|lines| values.record(&mut Line(&mut lines[index])));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        begin(event.metadata(), |visit| event.record(visit));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn an_attempt_is_a_span_with_the_names_of_opentelemetry() {
    let collected = collect(async {
        let busy =
            response(503, refusal("SERVICE_UNAVAILABLE")).with_header("x-request-id", "req_1");
        let created = response(201, CREATED).with_header("x-request-id", "req_2");
        let (client, _) = ScriptedTransport::client([busy, created]);
        client.orders().create(&order()).await.unwrap();
        let (client, _) = ScriptedTransport::client([Step::Fail(Phase::Untrusted)]);
        client.tracking().get(&number()).await.unwrap_err();
    });
    let path = "/api/v1/orders/create";
    let create = format!(
        r#"parcelo.attempt otel.name=POST {path} otel.kind="client" http.request.method="POST" url.template="{path}" server.address="localhost" server.port=80"#
    );
    let tracking = "/api/v1/tracking/{trackingNumber}";
    let expected = [
        format!(
            r#"{create} http.request.resend_count=0 queued_ms=0 error.type="503" http.response.status_code=503 request_id="req_1""#
        ),
        format!(
            r#"{create} http.request.resend_count=1 queued_ms=0 http.response.status_code=201 request_id="req_2""#
        ),
        format!(
            r#"parcelo.attempt otel.name=GET {tracking} otel.kind="client" http.request.method="GET" url.template="{tracking}" server.address="localhost" server.port=80 http.request.resend_count=0 queued_ms=0 error.type="Untrusted""#
        ),
    ];
    assert_eq!(lines_of(&collected, "parcelo.attempt"), expected);
}

/// Returns the fields of the last span of a call.
fn last_call_fields(collected: &[String]) -> BTreeMap<String, String> {
    let line = lines_of(collected, "parcelo.call").pop().unwrap();
    // A later value of a field replaces an earlier one.
    let fields = line.split(' ').filter_map(|field| field.split_once('='));
    fields.map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned())).collect()
}

#[test]
fn a_call_span_has_the_fields_that_support_needs() {
    let created = || response(201, CREATED).with_header("x-request-id", "req_1");
    let replayed = || created().with_header("idempotent-replayed", "true");
    let unreadable = || response(201, r#"{"success":true}"#).with_header("x-request-id", "req_1");
    let refused = || response(409, refusal("PARCEL_DUPLICATE_TRACKING"));
    // status, request id, outcome, error, may have executed
    let table = [
        (created(), "201 req_1 Created - -"),
        (replayed(), "201 req_1 Replayed - -"),
        (unreadable(), "201 req_1 - Executed true"),
        (refused(), "409 req_body - Conflict false"),
        (Step::Fail(Phase::MaybeSent), "- - - Network true"),
        (Step::Hang, "- - - Timeout true"),
    ];
    for (step, expected) in table {
        let fields = last_call_fields(&collect(async {
            let (client, _) = ScriptedTransport::client([step.clone()]);
            let _ = client.with_retry(Retry::none()).orders().create(&order()).await;
        }));
        let field = |name: &str| fields.get(name).map_or("-", String::as_str);
        let found = ["http.response.status_code", "request_id", "outcome", "error.type"].map(field);
        assert_eq!(format!("{} {}", found.join(" "), field("may_have_executed")), expected);
        assert_eq!((field("operation"), field("attempts")), ("CreateOrder", "1"), "{step:?}");
    }
    // A read has no outcome, and a refused call has no attempt. Both record their time in the queue.
    let second_call = |rate: RateLimit| {
        last_call_fields(&collect(async {
            let (client, _) =
                client_with([response(200, RECORD)], |builder| builder.rate_limit(rate));
            let _ = client.tracking().get(&number()).await;
            let _ = client.tracking().get(&number()).await;
        }))
    };
    let fields = second_call(RateLimit::adaptive().burst(1));
    assert!(!fields.contains_key("outcome") && !fields.contains_key("error.type"), "{fields:?}");
    assert_eq!((&*fields["queued_ms"], &*fields["attempts"]), ("11", "1"), "{fields:?}");
    let fields = second_call(RateLimit::adaptive().burst(1).fail_fast());
    assert_eq!((&*fields["error.type"], &*fields["attempts"]), ("RateLimited", "0"), "{fields:?}");
    assert_eq!(fields["operation"], "GetTracking");
}

#[test]
fn a_call_is_logged_at_info_and_its_attempts_at_debug() {
    let collected = collect(async {
        let (client, _) = ScriptedTransport::client([response(503, ""), response(201, CREATED)]);
        client.orders().create(&order()).await.unwrap();
    });
    for (name, level) in [("parcelo.call", "INFO"), ("parcelo.attempt", "DEBUG")] {
        assert_eq!(LEVELS.with_borrow(|levels| levels[name].to_string()), level);
    }
    assert!(!collected.is_empty());
}

#[test]
fn no_error_or_span_shows_a_key_or_personal_data() {
    let fault = r#"{"success":false,"error":{"code":"VALIDATION_FAILED","message":"The request is not valid.",
        "message_es":"La solicitud no es válida.","requestId":"req_1","retryAfter":1,"details":{"CANARY":"CANARY",
        "errors":[{"field":"receiver.nationalId","code":"INVALID_FORMAT","message":"CANARY","message_es":"CANARY",
        "suggestion":"CANARY"}]}}}"#;
    let statuses =
        [400, 401, 403, 404, 405, 408, 409, 413, 415, 422, 429, 500, 501, 502, 503, 504, 307, 599];
    let refusals = statuses.map(|status| response(status, fault));
    let phases = [Phase::NotSent, Phase::Untrusted, Phase::Stale, Phase::MaybeSent, Phase::Timeout];
    let failures = phases.map(Step::Fail);
    let others = [
        Step::Hang,
        response(200, r#"{"success":"CANARY","parcel":"CANARY"}"#),
        response(200, "CANARY"),
        response(403, refusal("AUTH_COUNTRY_NOT_ALLOWED")),
        response(409, refusal("IDEMPOTENCY_IN_PROGRESS")),
        Step::in_pieces(200, []).with_header("content-length", (99_u64 << 20).to_string()),
        response(302, "").with_header("location", "http://CANARY.example/CANARY"),
    ];
    let mut kinds = std::collections::HashSet::new();
    let collected = collect(async {
        for step in refusals.into_iter().chain(failures).chain(others) {
            let (client, script) = ScriptedTransport::client([step.clone()]);
            let link = "http://localhost/files/CANARY.pdf?sig=CANARY";
            let errors = [
                client.orders().create(&order()).await.err(),
                client.labels().download(&number(), LabelFormat::Pdf).bytes().await.err(),
                client.labels().download_link(link).bytes().await.err(),
                client.parcels().list().external_order_id("CANARY").await.err(),
                client.labels().download_link("https://CANARY.example/CANARY").bytes().await.err(),
                client.labels().download_link("CANARY").bytes().await.err(),
                client.tracking().get(&number()).await.err(),
            ];
            for error in errors.into_iter().flatten() {
                kinds.insert(error.kind());
                for cause in crate::errors::causes(&error) {
                    assert_no_personal_data(&format!("{cause} {cause:?}"));
                }
                assert_no_personal_data(&error.message(Language::Es));
            }
            assert_no_personal_data(&format!(
                "{client:?} {:?} {:?}",
                order(),
                script.sent_requests()[0].headers()
            ));
        }
    });
    assert!(kinds.len() >= 11, "{kinds:?}");
    assert!(collected.len() > 100);
    for line in &collected {
        assert_no_personal_data(line);
    }
}

/// Checks that a text contains no personal data: canaries stand for names, national ids and link signatures; the rest
/// comes from the order of the test.
fn assert_no_personal_data(shown: &str) {
    for secret in ["CANARY", key().secret(), "+593991234567", "SB-SUCCESS-0001"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
}

/// Runs calls in virtual time and returns the collected lines.
fn collect(calls: impl Future<Output = ()>) -> Vec<String> {
    static COLLECTOR: Once = Once::new();
    COLLECTOR.call_once(|| tracing::subscriber::set_global_default(Collector).unwrap());
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    COLLECTING.set(true);
    runtime.unwrap().block_on(calls);
    COLLECTING.set(false);
    LINES.take()
}
