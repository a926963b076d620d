//! SIGTERM: not ready at once, while the listeners go on accepting for as long as `--drain` says.

use std::time::{Duration, Instant};

use crate::{
    api::{Answer, Api, try_send},
    running::House,
    waiting::found,
};

/// The longest drain that there is. Nothing but this pause takes as long: what ends sooner did not wait for it.
const DRAIN: Duration = Duration::from_secs(25);
const LONGEST: [&str; 2] = ["--drain", "25"];

/// The first answer that says that the server is not ready.
async fn not_ready(url: &str) -> Answer {
    found("the server is not ready", async || {
        let asked = try_send(Api::new(url).request("GET", "/readyz")).await;
        let answer = asked.expect("the listener still accepts");
        (answer.status == 503).then_some(answer)
    })
    .await
}

#[tokio::test]
async fn after_sigterm_it_is_not_ready_and_still_accepts() {
    let house = House::new();
    let mut running = house.start(&LONGEST);
    let key = house.new_key("sandbox").1;
    running.signal("-TERM");
    for listener in ["production", "sandbox", "admin"] {
        let answer = not_ready(running.url(listener)).await;
        assert_eq!(answer.header("connection"), "close", "{listener}");
    }
    let created = running.api(&key).create(&crate::api::order("order-0001")).await;
    assert_eq!((created.status, created.header("connection")), (201, "close"));
    running.signal("-TERM");
    assert_eq!(running.wait(), Some(0), "{}", house.output());
}

#[tokio::test]
async fn a_second_signal_ends_the_drain() {
    for second in ["-TERM", "-INT"] {
        let house = House::new();
        let mut running = house.start(&LONGEST);
        let began = Instant::now();
        running.signal("-TERM");
        not_ready(running.sandbox()).await;
        running.signal(second);
        assert_eq!(running.wait(), Some(0), "{second}: {}", house.output());
        assert!(began.elapsed() < DRAIN, "{second} did not end the drain");
    }
}

#[tokio::test]
async fn sigint_and_no_drain_end_it_at_once() {
    for (arguments, signal) in [(&LONGEST, "-INT"), (&["--drain", "0"], "-TERM")] {
        let house = House::new();
        let mut running = house.start(arguments);
        let began = Instant::now();
        running.signal(signal);
        assert_eq!(running.wait(), Some(0), "{signal}: {}", house.output());
        assert!(began.elapsed() < DRAIN, "{signal} drained");
    }
}
