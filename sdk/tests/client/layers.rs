//! Layers around the transport: they see the requests, can add headers to them, and can refuse them.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderValue, Request};
use parcelo::{
    ErrorKind, Language,
    calls::{FailureClass, StopReason},
    transport::{Phase, ResponseFuture, Transport, TransportError},
};

use crate::scripted_transport::{CREATED, Step, client_with, key, order, response};

/// The requests that passed a layer, in order, with the name of the layer.
type SeenRequests = Arc<Mutex<Vec<(&'static str, Request<Bytes>)>>>;

#[derive(Debug)]
struct RecordingLayer<T> {
    inner: T,
    name: &'static str,
    seen: SeenRequests,
}

impl<T: Transport> Transport for RecordingLayer<T> {
    fn send(&self, mut request: Request<Bytes>) -> ResponseFuture<'_> {
        self.seen.lock().unwrap().push((self.name, request.clone()));
        request.headers_mut().append("x-layers", HeaderValue::from_static(self.name));
        self.inner.send(request)
    }
}

#[derive(Debug)]
struct RefusingLayer(Phase);

impl Transport for RefusingLayer {
    fn send(&self, _: Request<Bytes>) -> ResponseFuture<'_> {
        Box::pin(async { Err(TransportError::new(self.0, "not on a Sunday")) })
    }
}

#[tokio::test(start_paused = true)]
async fn layers_see_each_attempt_and_the_first_layer_is_outermost() {
    let seen = SeenRequests::default();
    let layer = |name| {
        let seen = Arc::clone(&seen);
        move |inner| RecordingLayer { inner, name, seen: Arc::clone(&seen) }
    };
    let steps = [response(503, ""), response(201, CREATED)];
    let (client, script) = client_with(steps, |builder| {
        let builder = builder.header("x-token", "CANARY").unwrap();
        builder.layer(layer("outer")).layer(layer("inner"))
    });
    client.orders().create(&order()).await.unwrap();

    let seen = seen.lock().unwrap();
    let names: Vec<_> = seen.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["outer", "inner", "outer", "inner"]);
    for sent in script.sent_requests() {
        let layers: Vec<_> = sent.headers().get_all("x-layers").iter().collect();
        assert_eq!(layers, ["outer", "inner"]);
        let (_, first) = &seen[0];
        assert_eq!(first.body(), sent.body(), "the bytes that are sent");
        assert_eq!(first.uri(), sent.uri());
        for (name, value) in first.headers() {
            assert_eq!(&sent.headers()[name], value);
        }
        assert!(sent.headers()["x-api-key"].is_sensitive());
        let shown = format!("{first:?}");
        assert!(
            !shown.contains(key().secret()) && !format!("{:?}", first.headers()).contains("CANARY")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_refused_by_a_layer_was_not_sent() {
    let permanent = (FailureClass::Permanent, ErrorKind::Config, StopReason::Permanent);
    let retried = (FailureClass::NotSent, ErrorKind::Network, StopReason::Attempts);
    for (phase, attempts, (class, kind, reason)) in
        [(Phase::Refused, 1, permanent), (Phase::NotSent, 4, retried)]
    {
        let failures = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&failures);
        let (client, script) = client_with([response(201, CREATED)], |builder| {
            let builder = builder.layer(move |_| RefusingLayer(phase));
            builder.on_attempt(move |attempt| log.lock().unwrap().push(attempt.failure))
        });
        let order = order();
        let error = client.orders().create(&order).await.unwrap_err();
        assert_eq!((error.may_have_executed(), error.attempts()), (false, attempts));
        assert_eq!(order.idempotency_key.first_sent(), None, "its 24 hours have not begun");
        assert!(!order.idempotency_key.may_have_executed() && script.sent_requests().is_empty());
        assert!(error.message(Language::En).ends_with("; nothing was sent."), "{error}");
        assert!(error.message(Language::Es).ends_with("; no se envió nada."), "{error}");
        assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "not on a Sunday");
        assert!(failures.lock().unwrap().iter().all(|failure| *failure == Some(class)));
        assert_eq!((error.kind(), error.stop_reason()), (kind, Some(reason)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_by_a_layer_settles_no_unknown_outcome() {
    #[derive(Debug)]
    struct FailOnce<T>(T, Mutex<bool>);

    impl<T: Transport> Transport for FailOnce<T> {
        fn send(&self, request: Request<Bytes>) -> ResponseFuture<'_> {
            if std::mem::replace(&mut *self.1.lock().unwrap(), true) {
                return Box::pin(async { Err(TransportError::new(Phase::Refused, "once")) });
            }
            self.0.send(request)
        }
    }
    let steps = [Step::Fail(Phase::MaybeSent)];
    let (client, script) =
        client_with(steps, |builder| builder.layer(|inner| FailOnce(inner, Mutex::default())));
    let error = client.orders().create(&order()).await.unwrap_err();
    assert!(error.may_have_executed() && script.sent_requests().len() == 1, "{error:?}");
    assert!(error.to_string().contains("may have been executed"), "{error}");
}

#[cfg(feature = "reqwest")]
#[tokio::test]
async fn headers_added_by_a_layer_are_sent() {
    use wiremock::{
        Mock, MockServer, ResponseTemplate,
        matchers::{any, header},
    };

    use crate::scripted_transport::{RECORD, number};

    let server = MockServer::start().await;
    Mock::given(any())
        .and(header("x-layers", "outer"))
        .and(header("x-api-key", key().secret()))
        .respond_with(ResponseTemplate::new(200).set_body_string(RECORD))
        .expect(1)
        .mount(&server)
        .await;
    let client = parcelo::Client::builder(key())
        .base_url(&server.uri())
        .unwrap()
        .layer(|inner| RecordingLayer { inner, name: "outer", seen: SeenRequests::default() })
        .build()
        .unwrap();
    client.tracking().get(&number()).await.unwrap();
}
