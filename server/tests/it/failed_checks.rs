//! A failed check of the mock server is attributed to the line of the test that made it.

use std::{
    cell::RefCell,
    panic::{self, AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use futures_util::FutureExt;
use parcelo_server::mock::Reply;

type Check<'s> = Box<dyn FnOnce() + 's>;

thread_local!(static FILE: RefCell<String> = const { RefCell::new(String::new()) });

/// Records the file to which each panic of a thread is attributed.
fn record_files() {
    let previous = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        FILE.set(info.location().map(|at| at.file().to_owned()).unwrap_or_default());
        previous(info);
    }));
}

#[tokio::test]
async fn a_failed_check_is_attributed_to_the_line_of_the_test() {
    let server = crate::embedded::start().await;
    server.faults().on_any().nth(2).close();
    record_files();
    let failing: [(&str, Check<'_>); 7] = [
        ("verify", Box::new(|| server.verify())),
        ("assert_count", Box::new(|| server.requests().assert_count(1))),
        ("nth", Box::new(|| drop(server.faults().on_any().nth(0)))),
        ("two triggers", Box::new(|| drop(server.faults().on_any().nth(1).first(1)))),
        ("latency", Box::new(|| server.faults().on_any().latency(Duration::ZERO))),
        ("countries", Box::new(|| drop(server.key().countries(["XX"])))),
        ("status", Box::new(|| drop(Reply::status(100)))),
    ];
    for (name, run) in failing {
        assert!(catch_unwind(AssertUnwindSafe(run)).is_err(), "{name}");
        assert!(FILE.take().ends_with("failed_checks.rs"), "{name}");
    }
    let waiting = server.requests().wait_for(1, Duration::ZERO);
    let panic = AssertUnwindSafe(waiting).catch_unwind().await.unwrap_err();
    let message = panic.downcast_ref::<String>().unwrap();
    assert!(message.contains("failed_checks.rs:"), "{message}");
}
