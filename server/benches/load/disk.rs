//! What the disk does for anyone: the bare write and fdatasync that a commit cannot beat.

use std::{fs::File, io::Write as _, path::Path, time::Duration};

use crate::figures::Latencies;

/// About what a group of orders writes.
const BLOCK: usize = 32 * 1024;

/// Writes and syncs for a while, in the folder of the databases, and prints how long each took; its p99 in ms.
pub(crate) fn report(folder: &Path, time: Duration) -> f64 {
    let mut file = File::create(folder.join("bare")).unwrap();
    let block = vec![7; BLOCK];
    let mut latencies = Latencies::default();
    let begun = std::time::Instant::now();
    while begun.elapsed() < time {
        latencies.time(|| {
            file.write_all(&block).unwrap();
            file.sync_data().unwrap();
        });
    }
    let [p50, p99, p999] = latencies.millis();
    println!(
        "A bare write of 32 KiB and its fdatasync: p50 {p50:.2} ms, p99 {p99:.2}, p99.9 {p999:.2}.\n"
    );
    p99
}
