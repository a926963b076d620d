//! What a collector of spans sees: OpenTelemetry's names for HTTP, and no personal data.

use std::{
    cell::{Cell, RefCell},
    fmt::Write,
    sync::Once,
};

use parcelo::{LabelFormat, Language, transport::Phase};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
    subscriber::Interest,
};

use crate::script::{CREATED, Script, Step, answer, key, number, order, refusal};

thread_local! {
    /// Every span and event of this test's thread as text, one line for each.
    static LINES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    static COLLECTING: Cell<bool> = const { Cell::new(false) };
}

/// Collects for all threads: collectors that come and go hide spans from each other.
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
    visit(&mut Line(&mut line));
    LINES.with_borrow_mut(|lines| {
        lines.push(line);
        lines.len() as u64
    })
}

/// The lines about a name.
fn of(lines: &[String], name: &str) -> Vec<String> {
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
        let place = usize::try_from(span.into_u64()).unwrap() - 1;
        LINES.with_borrow_mut(|lines| values.record(&mut Line(&mut lines[place])));
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
        let (client, _) = Script::client([answer(503, ""), answer(201, CREATED)]);
        client.orders().create(&order()).await.unwrap();
        let (client, _) = Script::client([Step::Fail(Phase::Untrusted)]);
        client.tracking().get(&number()).await.unwrap_err();
    });
    let path = "/api/v1/orders/create";
    let create = format!(
        r#"parcelo.attempt otel.name=POST {path} otel.kind="client" http.request.method="POST" url.template="{path}" server.address="localhost" server.port=80"#
    );
    let tracking = "/api/v1/tracking/{trackingNumber}";
    let expected = [
        format!(
            r#"{create} http.request.resend_count=0 http.response.status_code=503 error.type="503""#
        ),
        format!("{create} http.request.resend_count=1 http.response.status_code=201"),
        format!(
            r#"parcelo.attempt otel.name=GET {tracking} otel.kind="client" http.request.method="GET" url.template="{tracking}" server.address="localhost" server.port=80 http.request.resend_count=0 error.type="Untrusted""#
        ),
    ];
    assert_eq!(of(&collected, "parcelo.attempt"), expected);
    let calls = [
        format!(
            r#"parcelo.call http.request.method="POST" url.template="{path}" http.response.status_code=201 attempts=2"#
        ),
        format!(r#"parcelo.call http.request.method="GET" url.template="{tracking}" attempts=1"#),
    ];
    assert_eq!(of(&collected, "parcelo.call"), calls);
}

#[test]
fn no_error_and_no_span_shows_the_key_or_anything_personal() {
    let fault = r#"{"success":false,"error":{"code":"VALIDATION_FAILED","message":"The request is not valid.",
        "message_es":"La solicitud no es válida.","requestId":"req_1","retryAfter":1,"details":{"CANARY":"CANARY",
        "errors":[{"field":"receiver.nationalId","code":"INVALID_FORMAT","message":"CANARY","message_es":"CANARY",
        "suggestion":"CANARY"}]}}}"#;
    let statuses =
        [400, 401, 403, 404, 405, 408, 409, 413, 415, 422, 429, 500, 501, 502, 503, 504, 307, 599];
    let refusals = statuses.map(|status| answer(status, fault));
    let phases = [Phase::NotSent, Phase::Untrusted, Phase::Stale, Phase::MaybeSent, Phase::Timeout];
    let failures = phases.map(Step::Fail);
    let others = [
        Step::Hang,
        answer(200, r#"{"success":"CANARY","parcel":"CANARY"}"#),
        answer(200, "CANARY"),
        answer(403, refusal("AUTH_COUNTRY_NOT_ALLOWED")),
        answer(409, refusal("IDEMPOTENCY_IN_PROGRESS")),
        Step::Answer(200, vec![("content-length", (99_u64 << 20).to_string())], vec![]),
        Step::Answer(302, vec![("location", "http://CANARY.example/CANARY".into())], vec![]),
    ];
    let mut kinds = std::collections::HashSet::new();
    let collected = collect(async {
        for step in refusals.into_iter().chain(failures).chain(others) {
            let (client, script) = Script::client([step.clone()]);
            let link = "http://localhost/files/CANARY.pdf?sig=CANARY";
            let errors = [
                client.orders().create(&order()).await.err(),
                client.labels().download(&number(), LabelFormat::Pdf).bytes().await.err(),
                client.labels().download_link(link).unwrap().bytes().await.err(),
                client.parcels().list().external_order_id("CANARY").await.err(),
                client.labels().download_link("https://CANARY.example/CANARY").err(),
                client.labels().download_link("CANARY").err(),
                client.tracking().get(&number()).await.err(),
            ];
            for error in errors.into_iter().flatten() {
                kinds.insert(error.kind());
                let causes =
                    std::iter::successors(Some(&error as &dyn std::error::Error), |cause| {
                        (*cause).source()
                    });
                causes.for_each(|cause| assert_harmless(&format!("{cause} {cause:?}")));
                assert_harmless(&error.message(Language::Es));
            }
            assert_harmless(&format!("{client:?} {:?} {:?}", order(), script.sent()[0].headers()));
        }
    });
    assert!(kinds.len() >= 11, "{kinds:?}");
    assert!(collected.len() > 100);
    for line in &collected {
        assert_harmless(line);
    }
}

/// Canaries stand for names, national ids and link signatures; the rest is from the test's order.
fn assert_harmless(shown: &str) {
    for secret in ["CANARY", key().secret(), "+593991234567", "SB-SUCCESS-0001"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
}

/// Runs calls in virtual time, and tells what was collected meanwhile.
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
