//! The drain after SIGTERM: the server reports that it is not ready at once, but its listeners accept connections for
//! the time of `--drain`.

use std::time::{Duration, Instant};

use crate::{
    api::{Api, HttpResponse, try_send},
    running::TestSetup,
    waiting::wait_for_value,
};

/// The longest drain. Nothing else takes this long, so a server that ends sooner did not wait for it.
const DRAIN: Duration = Duration::from_secs(25);
const LONGEST: [&str; 2] = ["--drain", "25"];

/// Waits until the server reports that it is not ready, and returns that response.
async fn wait_until_not_ready(url: &str) -> HttpResponse {
    wait_for_value("the server is not ready", async || {
        let asked = try_send(Api::new(url).request("GET", "/readyz")).await;
        let response = asked.expect("the listener still accepts");
        (response.status == 503).then_some(response)
    })
    .await
}

#[tokio::test]
async fn a_draining_server_accepts_until_a_second_signal() {
    for second in ["-TERM", "-INT"] {
        let setup = TestSetup::new();
        let mut running = setup.start(&LONGEST);
        let key = setup.new_key("sandbox").1;
        let began = Instant::now();
        running.signal("-TERM");
        for listener in ["production", "sandbox", "admin"] {
            let response = wait_until_not_ready(running.url(listener)).await;
            assert_eq!(response.header("connection"), "close", "{listener}");
        }
        let created = running.api(&key).create(&crate::api::order("order-0001")).await;
        assert_eq!((created.status, created.header("connection")), (201, "close"));
        running.signal(second);
        assert_eq!(running.wait(), Some(0), "{second}: {}", setup.output());
        assert!(began.elapsed() < DRAIN, "{second} did not end the drain");
    }
}

#[tokio::test]
async fn sigint_or_a_drain_of_zero_ends_the_server_at_once() {
    for (arguments, signal) in [(&LONGEST, "-INT"), (&["--drain", "0"], "-TERM")] {
        let setup = TestSetup::new();
        let mut running = setup.start(arguments);
        let began = Instant::now();
        running.signal(signal);
        assert_eq!(running.wait(), Some(0), "{signal}: {}", setup.output());
        assert!(began.elapsed() < DRAIN, "{signal} drained");
    }
}
