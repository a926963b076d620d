//! Errors that say whether a write may have been executed.

use std::time::Duration;

use parcelo::{Error, ErrorKind, IdempotencyKey, Language, Retry, transport::Phase};

use crate::scripted_transport::{CREATED, ScriptedTransport, Step, order, refusal, response};

/// The server's reaction to a request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ConnectionEnd {
    /// The connection is closed at once.
    Closed,
    /// A piece of the request is read, then the connection is closed.
    Cut,
    /// The whole request is read, then the connection is closed.
    Unanswered,
    /// The whole request is read, and no response follows.
    Silence,
    /// The whole request is read, and these bytes are sent.
    Bytes(&'static str),
    /// The whole request is read, and a response is sent.
    Response(u16, ResponseKind),
}

/// The body of a response.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ResponseKind {
    Code(&'static str),
    Fault(&'static str),
    Body(&'static str),
}

impl ResponseKind {
    pub(crate) fn body(self) -> String {
        match self {
            Self::Code(code) => refusal(code),
            Self::Body(body) => body.to_owned(),
            Self::Fault(field) => format!(
                r#"{{"success":false,"error":{{"code":"VALIDATION_FAILED","message":"No.",
                "details":{{"errors":[{{"field":"{field}","message":"No."}}]}}}}}}"#
            ),
        }
    }
}

/// The conclusion that the client may draw about the write from the end of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpectedOutcome {
    /// No conclusion.
    None,
    /// This request was not executed.
    Refused,
    /// Neither this request nor an earlier one was executed.
    Settled,
}

pub(crate) fn all_ends() -> Vec<(ConnectionEnd, ExpectedOutcome)> {
    use ConnectionEnd::{Bytes, Closed, Cut, Response, Silence, Unanswered};
    use ExpectedOutcome::{None, Refused, Settled};
    use ResponseKind::{Body, Code, Fault};
    let mut all_ends = vec![
        (Closed, None),
        (Cut, None),
        (Unanswered, None),
        (Silence, None),
        (Bytes("220 smtp.example ESMTP\r\n"), None),
        (Bytes("HTTP/1.1 201 Created\r\ncontent-le"), None),
        (Bytes("HTTP/1.1 201 Created\r\ncontent-length: 99\r\n\r\n{"), None),
        (
            Bytes("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h\r\n\r\n"),
            None,
        ),
        (
            Response(
                201,
                Body(r#"{"success":false,"error":{"code":"INTERNAL_ERROR","message":"no"}}"#),
            ),
            None,
        ),
        (Response(201, Body("")), None),
        (Response(200, Body("<html>")), None),
        (Response(400, Fault("receiver.phone")), Settled),
        (Response(400, Fault("body")), Refused),
        (Response(409, Code("PARCEL_DUPLICATE_TRACKING")), Settled),
        (Response(409, Code("IDEMPOTENCY_CONFLICT")), Settled),
        (Response(409, Code("IDEMPOTENCY_IN_PROGRESS")), None),
        (Response(401, Code("AUTH_INVALID_API_KEY")), Refused),
        (Response(403, Code("AUTH_IP_NOT_ALLOWED")), Refused),
        (Response(404, Code("NOT_FOUND")), Refused),
        (Response(429, Code("RATE_LIMIT_EXCEEDED")), Refused),
    ];
    all_ends.extend([302, 307, 400, 404, 422].map(|status| (Response(status, Body("")), Refused)));
    // It may have been IDEMPOTENCY_IN_PROGRESS.
    all_ends.push((Response(409, Body("")), None));
    all_ends.extend(
        [303, 399, 408, 419, 499, 500, 501, 503, 599, 799]
            .map(|status| (Response(status, Body("")), None)),
    );
    all_ends
}

/// Checks that the text of an error agrees with `may_have_executed`.
pub(crate) fn assert_execution_is_reported(error: &Error) {
    let texts = [error.to_string(), error.message(Language::En), error.message(Language::Es)];
    let may = error.may_have_executed();
    assert_eq!(texts[0].contains("may have been executed"), may, "{texts:?}");
    let own = error.body().is_none_or(|body| body.message.is_empty());
    if own {
        assert_eq!(texts[1].contains("may have been executed"), may, "{texts:?}");
        assert_eq!(texts[2].contains("Es posible que"), may, "{texts:?}");
    }
    assert!(!may || !texts.concat().contains("nothing was sent"), "{texts:?}");
}

#[tokio::test(start_paused = true)]
async fn an_unsent_call_settles_no_earlier_unknown_outcome() {
    for phase in [Phase::NotSent, Phase::Untrusted] {
        let steps = [Step::Fail(phase), Step::Fail(Phase::MaybeSent), Step::Fail(phase)];
        let (client, _) = ScriptedTransport::client(steps);
        let (order, client) = (order(), client.with_retry(Retry::none()));
        let error = client.orders().create(&order).await.unwrap_err();
        assert!(!error.may_have_executed() && error.to_string().contains("nothing was sent"));
        assert_eq!(order.idempotency_key.first_sent(), None, "its 24 hours have not begun");
        for _ in 0..2 {
            let error = client.orders().create(&order.clone()).await.unwrap_err();
            assert!(error.may_have_executed() && error.idempotency_key().is_some());
            assert_execution_is_reported(&error);
        }
        assert!(order.idempotency_key.first_sent().is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn an_earlier_attempt_of_the_call_stays_unknown() {
    let validation = r#"{"success":false,"error":{"code":"VALIDATION_FAILED","message":"No.",
        "details":{"errors":[{"field":"receiver.phone","message":"No."}]}}}"#;
    let table = [
        (response(401, refusal("AUTH_INVALID_API_KEY")), true),
        (response(429, "").with_header("retry-after", "100"), true),
        (Step::Fail(Phase::Untrusted), true),
        (response(400, ""), true),
        (response(400, validation), false),
        (response(409, refusal("PARCEL_DUPLICATE_TRACKING")), false),
        (response(409, refusal("IDEMPOTENCY_CONFLICT")), false),
    ];
    for (last, expected) in table {
        let (client, script) =
            ScriptedTransport::client([Step::Fail(Phase::Timeout), last.clone()]);
        let error = client.orders().create(&order()).await.unwrap_err();
        assert_eq!(
            (error.may_have_executed(), script.sent_requests().len()),
            (expected, 2),
            "{last:?}"
        );
        assert_execution_is_reported(&error);
    }
}

#[tokio::test(start_paused = true)]
async fn an_executed_write_stays_executed_for_every_clone() {
    let (client, _) = ScriptedTransport::client([response(201, CREATED), Step::Hang]);
    let (order, client) = (order(), client.with_retry(Retry::none()));
    client.orders().create(&order).await.unwrap();
    let settled = order.idempotency_key.state();
    let error = client.orders().create(&order.clone()).await.unwrap_err();
    assert!(error.may_have_executed());
    assert_eq!(order.idempotency_key.state(), settled);
}

#[tokio::test(start_paused = true)]
async fn another_request_with_the_key_does_not_settle_the_first() {
    let refused = response(409, refusal("PARCEL_DUPLICATE_TRACKING"));
    let (client, _) = ScriptedTransport::client([Step::Fail(Phase::MaybeSent), refused]);
    let (first, client) = (order(), client.with_retry(Retry::none()));
    client.orders().create(&first).await.unwrap_err();
    let changed = first.clone().with_external_order_id("1001");
    assert!(client.orders().create(&changed).await.unwrap_err().may_have_executed());
    assert!(!client.orders().create(&first).await.unwrap_err().may_have_executed());
}

#[tokio::test(start_paused = true)]
async fn a_key_conflict_says_whether_the_request_was_its_own() {
    let lost = || Some(Step::Fail(Phase::MaybeSent));
    let table = [
        (lost(), "1002", true, "the order was corrected, and the first version shipped"),
        (lost(), "1001", false, "the same order cannot conflict with itself"),
        (Some(response(201, CREATED)), "1002", true, "the first version shipped"),
        (None, "1001", false, "it was never sent, as far as this process knows"),
    ];
    for (before, id, expected, case) in table {
        let conflict = response(409, refusal("IDEMPOTENCY_CONFLICT"));
        let (client, _) = ScriptedTransport::client(before.clone().into_iter().chain([conflict]));
        let (client, first) = (client.with_retry(Retry::none()), order());
        if before.is_some() {
            let _ = client.orders().create(&first.clone().with_external_order_id("1001")).await;
        }
        let error = client.orders().create(&first.with_external_order_id(id)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::KeyReused, "{case}");
        assert_eq!(error.may_have_executed(), expected, "{case}");
        assert_eq!(error.idempotency_key().unwrap().may_have_executed(), expected, "{case}");
        assert_execution_is_reported(&error);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_in_flight_has_an_unknown_outcome() {
    let (client, script) = ScriptedTransport::client([Step::Hang, Step::Fail(Phase::NotSent)]);
    let order = order();
    let moment = Duration::from_secs(1);
    tokio::time::timeout(moment, client.orders().create(&order)).await.unwrap_err();
    assert!(order.idempotency_key.may_have_executed() && script.sent_requests().len() == 1);
    let error = client.orders().create(&order).await.unwrap_err();
    assert!(error.may_have_executed());

    let (client, _) = ScriptedTransport::client([Step::Hang]);
    let keys: Vec<_> =
        (0..3).map(|row| IdempotencyKey::derive("dropped", &row.to_string())).collect();
    let orders = keys.clone().into_iter();
    let orders = orders.map(|key| order.clone().with_idempotency_key(key));
    let mut creations = client.orders().create_many(orders).concurrency(2);
    tokio::time::timeout(moment, creations.next()).await.unwrap_err();
    drop(creations);
    let may = keys.iter().map(IdempotencyKey::may_have_executed).collect::<Vec<_>>();
    assert_eq!(may, [true, true, false]);
}
