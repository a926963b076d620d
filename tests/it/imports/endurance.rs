//! Long-running tests of imports: thousands of rows at the rate limit, processes that are killed again and again, and
//! the progress bar on a terminal.

use std::{
    fs,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use chrono::TimeDelta;
use parcelo::{ErrorCode, Operation};
use parcelo_server::mock::{Clock, RecordedRequest};

use super::{rows, sheet};
use crate::shop::TestShop;

async fn start_shop() -> TestShop {
    let server = crate::embedded::builder().clock(Clock::system()).request_log(100_000);
    TestShop::new(server.start().await)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: `.ci/prove proofs` runs it"]
async fn ten_thousand_rows_use_the_rate_limit_without_refusals() {
    let shop = start_shop().await;
    shop.write_file("orders.csv", sheet(&rows(10_000)));
    let stalls = count_stalls();
    let begun = now();
    let output = shop.import("");
    let stalls = stalls.load(Ordering::Relaxed);
    let took = begun.elapsed().as_secs_f64();
    assert_eq!(output.code, 0, "{output:?}");
    let requests = shop.server.requests().all();
    let refused = ErrorCode::RateLimitExceeded.status();
    let refused = requests.iter().filter(|request| request.status == Some(refused)).count();
    let share = f64::from(u32::try_from(requests.len()).unwrap()) / took / 100.0;
    println!("{} requests in {took:.1} s: {:.1} % of the limit", requests.len(), share * 100.0);
    println!("{refused} refused, {stalls} stalls of the machine");
    assert_eq!((requests.len() - refused, shop.labels()), (20_000, 10_000));
    // On a stalled machine, requests that are sent too late fall into the next window.
    assert!(refused <= stalls, "{refused} refused, {stalls} stalls");
    // Other load on the machine lowers the average, but not every moment.
    let best = busiest_share(&requests);
    println!("{:.1} % in the busiest ten seconds", best * 100.0);
    assert!(best >= 0.95, "{best}");
    let lines =
        output.stderr.lines().filter(|line| line.contains(" of 10000 rows processed: ")).count();
    assert!(lines >= 20, "a line every five seconds: {}", output.stderr);
}

/// Starts counting how often the machine runs no process for longer than the limiter's margin.
fn count_stalls() -> Arc<AtomicUsize> {
    const INTERVAL: Duration = Duration::from_millis(10);
    let counted = Arc::new(AtomicUsize::new(0));
    let weak = Arc::downgrade(&counted);
    tokio::spawn(async move {
        let mut last = now();
        while let Some(counter) = weak.upgrade() {
            tokio::time::sleep(INTERVAL).await;
            counter.fetch_add(usize::from(last.elapsed() > 4 * INTERVAL), Ordering::Relaxed);
            last = now();
        }
    });
    counted
}

/// Returns the share of the rate limit that was used in the busiest ten seconds.
fn busiest_share(requests: &[RecordedRequest]) -> f64 {
    let mut times: Vec<_> = requests.iter().map(|request| request.at).collect();
    times.sort_unstable();
    let within = |start: usize| {
        let end = times[start] + TimeDelta::seconds(10);
        times.partition_point(|time| *time < end) - start
    };
    let busiest_share = (0..times.len()).map(within).max().unwrap();
    f64::from(u32::try_from(busiest_share).unwrap()) / 1000.0
}

#[expect(clippy::disallowed_methods, reason = "how long a process takes is measured by the clock")]
fn now() -> Instant {
    Instant::now()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: `.ci/prove proofs` runs it"]
async fn an_import_killed_twenty_times_creates_each_order_once() {
    const ROWS: usize = 400;
    let shop = start_shop().await;
    shop.write_file("orders.csv", sheet(&rows(ROWS)));
    let mut random_state = 20_260_105_u64;
    for cycle in 0..20 {
        random_state = random_state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let more = usize::try_from(random_state >> 33).unwrap() % 40;
        let reached = shop.server.requests().count() + more;
        let mut child =
            shop.dir.start("order import orders.csv --labels out --resume", Stdio::null());
        shop.server.requests().wait_for(reached, Duration::from_secs(60)).await;
        child.kill().unwrap();
        child.wait().unwrap();
        println!("cycle {cycle}: killed after {reached} requests");
    }
    let output = shop.import("--resume -o ndjson");
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(output.lines().len(), ROWS);
    let listed = shop.run("parcel list --all -o ndjson").lines();
    let mut references: Vec<_> =
        listed.iter().map(|parcel| parcel["externalOrderId"].as_str().unwrap()).collect();
    references.sort_unstable();
    references.dedup();
    assert_eq!((listed.len(), references.len()), (ROWS, ROWS), "none lost, none doubled");
    assert_eq!(shop.labels(), ROWS);
    let drafts = fs::read_dir(shop.dir.path("out")).unwrap();
    let drafts = drafts
        .filter(|file| file.as_ref().unwrap().file_name().to_string_lossy().starts_with(".label-"));
    assert_eq!(drafts.count(), 0, "drafts of killed runs are removed");
    shop.server.assert_exactly_once();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs script (bsdutils) for a terminal: `.ci/prove proofs` runs it"]
async fn a_terminal_shows_a_progress_bar_and_clears_it() {
    let shop = start_shop().await;
    shop.write_file("orders.csv", sheet(&rows(60)));
    let line = "order import orders.csv --labels out";
    let output = tokio::task::block_in_place(|| shop.dir.run_on_terminal(line, ""));
    assert_eq!(output.code, 0, "{output:?}");
    let seen = output.text();
    assert!(seen.contains('█') && seen.contains('%') && seen.contains(" left"), "{seen:?}");
    assert!(seen.contains("60 of 60 rows processed: 60 succeeded, 0 did not\r\n"), "{seen:?}");
    assert_eq!(shop.server.requests().of(Operation::CreateOrder).count(), 60);
}
