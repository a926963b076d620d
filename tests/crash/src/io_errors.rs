//! Failures of system calls: each one fails in turn, once or from then on. No acknowledged order is lost, and the other
//! requests are answered with an error.

use std::path::Path;

use crate::{
    check::{self, Violation},
    disk::{Image, Kept},
    explore::Replay,
    recording::{Expected, Recording, Run, put},
    syscalls::{self, Calls, Fault, FaultKind},
};

/// The counts and messages of the failing runs.
#[derive(Debug, Default)]
pub struct Outcome {
    pub runs: usize,
    pub images: usize,
    pub acknowledged: usize,
    pub refused: usize,
    pub messages: Vec<String>,
}

const KINDS: [FaultKind; 4] =
    [FaultKind::Eio, FaultKind::Enospc, FaultKind::Short, FaultKind::ReadEio];

/// Makes each `every`th call fail in turn, in each way.
pub fn every_call_fails(folder: &Path, every: usize) -> Outcome {
    let live = folder.join("io-errors");
    std::fs::create_dir_all(&live).unwrap();
    let base = base(&live);
    let (calls, mut outcome) = (record(&live, &base, None).calls, Outcome::default());
    for kind in KINDS {
        let Calls { changes, reads } = calls;
        let count = if kind == FaultKind::ReadEio { reads } else { changes };
        for lasts in [false, true] {
            for nth in (0..count).step_by(every) {
                one(&live, &base, Fault { kind, nth, lasts }, &mut outcome);
            }
        }
    }
    outcome
}

/// Returns the files of a server that has ended. Each run begins with the same file, because the store never closes a
/// file that it has opened.
fn base(folder: &Path) -> Image {
    let mut run = Recording::start("a server", folder, None);
    run.open();
    run.finish();
    syscalls::read_folder(folder)
}

fn record(folder: &Path, base: &Image, fault: Option<Fault>) -> Run {
    put(folder, base);
    let mut run = Recording::start(&format!("{fault:?}"), folder, fault);
    // A server that refuses to start is started a second time.
    if (run.open() || run.open()) && (run.set_up() || run.set_up()) {
        for size in [1, 1, 6] {
            run.create(size);
        }
        run.job(|server| server.deliver(2));
        run.checkpoint("PASSIVE");
        run.create(1);
        run.close();
        if run.open() || run.open() {
            run.create(1);
        }
    }
    run.finish()
}

fn one(folder: &Path, base: &Image, fault: Fault, outcome: &mut Outcome) {
    let run = record(folder, base, Some(fault));
    let replay = Replay::new(&run).to(run.events.len());
    let expected = creates_of(&run, &replay.expected);
    outcome.runs += 1;
    outcome.acknowledged += expected.acknowledged.len();
    outcome.refused += expected.sent.len() - expected.acknowledged.len();
    // The files as the process left them, then after a power cut that takes everything no sync has made durable.
    let count = replay.disk.pending().len();
    for kept in [Kept::All, Kept::No] {
        put(folder, &replay.disk.image(&vec![kept; count]));
        outcome.images += 1;
        if let Err(Violation { guarantee, what }) = check::check(&run, &expected, folder) {
            outcome.messages.push(format!("{guarantee}: {what}\n  after {fault:?}, {kept:?} kept"));
        }
    }
}

/// Returns the expectations without the requests that create nothing. A failing run records no facts, so only its
/// orders are compared.
fn creates_of(run: &Run, expected: &Expected) -> Expected {
    let creates = |at: &usize| run.requests[*at].what.creates();
    let only = |all: &[usize]| all.iter().copied().filter(creates).collect();
    Expected {
        sent: only(&expected.sent),
        acknowledged: only(&expected.acknowledged),
        ..expected.clone()
    }
}
