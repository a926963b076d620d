//! Failing system calls. Each call that changes a file is made to fail in turn, either alone or with all later calls.
//! No acknowledged order may be lost, and the other requests must get an error as their response.

use std::path::Path;

use crate::{
    check::check,
    disk::{Disk, Expectations, Image, NOTHING, RecordedRun},
    facts::Violation,
    recording::{Recording, write_image},
    syscalls::{self, Fault},
};

/// The counts and findings of the failing runs.
#[derive(Debug, Default)]
pub struct Outcome {
    pub runs: usize,
    pub acknowledged: usize,
    pub refused: usize,
    pub violations: Vec<(Fault, Violation)>,
}

/// Makes every `interval`th call fail, one call per run, with each error, once or persistently.
pub fn fail_calls(folder: &Path, interval: usize) -> Outcome {
    // All runs use the same database file, because the store never closes a file that it has opened.
    let mut first = Recording::start(folder, None, Expectations::default());
    first.open();
    first.finish();
    let base = syscalls::read_folder(folder);
    let mut outcome = Outcome::default();
    for error in [libc::EIO, libc::ENOSPC] {
        for is_persistent in [false, true] {
            let mut fault = Fault { error, call_index: 0, is_persistent };
            // Stops at the first call index that the run did not reach.
            while fail_call(folder, &base, fault, &mut outcome).calls > fault.call_index {
                fault.call_index += interval;
            }
        }
    }
    outcome
}

/// Records a run with this fault, and adds what is found in its files to the outcome.
fn fail_call(folder: &Path, base: &Image, fault: Fault, outcome: &mut Outcome) -> RecordedRun {
    write_image(folder, base);
    let run = record(folder, fault);
    let disk = Disk::after(&run, run.events.len());
    let answered = disk.expected().requests.values().filter(|answered| **answered).count();
    outcome.runs += 1;
    outcome.acknowledged += answered;
    outcome.refused += disk.expected().requests.len() - answered;
    let mut check = || {
        let violation = check(&run, disk.expected(), folder).err();
        outcome.violations.extend(violation.map(|violation| (fault, violation)));
    };
    // Checks the files as the process left them, and then without the pending events, as after a power cut.
    check();
    write_image(folder, &disk.image(&vec![NOTHING; disk.pending().len()]));
    check();
    run
}

fn record(folder: &Path, fault: Fault) -> RecordedRun {
    let mut run = Recording::start(folder, Some(fault), Expectations::default());
    // A server that refuses to start is started a second time.
    if (run.open() || run.open()) && (run.set_up() || run.set_up()) {
        for size in [1, 1, 6] {
            run.create(size);
        }
        run.run_task(|server| server.deliver(2));
        run.checkpoint("PASSIVE");
        run.create(1);
        run.close();
        if run.open() || run.open() {
            run.create(1);
        }
    }
    run.finish()
}
