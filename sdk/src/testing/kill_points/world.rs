//! What outlives the processes of a run: the service, the time, and a record of what happened. It also kills.

use std::{
    fmt,
    future::pending,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use chrono::{DateTime, Utc};
use http::Request;

use super::{
    Gap, Violation,
    service::{Answer, Fault, Service},
};
use crate::journal::JournalError;

/// The world of a run, which its processes share.
#[derive(Debug, Clone)]
pub(super) struct World(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    program: Program,
    service: Service,
    log: Vec<String>,
    /// The number of processes that were started.
    processes: usize,
    changes_of_api_key: u8,
    fault: Fault,
    interruption: Option<Interruption>,
    /// The number of steps of the present process that count for its interruption.
    steps: usize,
    was_interrupted: bool,
    /// The state of the order that the journal has acknowledged, open or settled; `None` if that is unknown.
    expects_open: Option<bool>,
    has_lost_entry: bool,
}

/// The actions of a program when it starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Program {
    #[default]
    ResumesAndShips,
    /// It ships what it has to ship, and resumes nothing.
    Ships,
}

/// The interruption of a process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interruption {
    pub(super) kind: Kind,
    /// The step, from 1.
    pub(super) step: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The process is killed at the step.
    Kill,
    /// The journal returns an error; requests are not steps.
    JournalFails,
}

/// A step of a process at which it may be interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Journal,
    Request,
}

impl World {
    pub(super) fn new(program: Program) -> Self {
        Self(Arc::new(Mutex::new(State { program, ..State::default() })))
    }

    pub(super) fn program(&self) -> Program {
        self.state().program
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Plain data, which stays valid after a panic of the journal.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> DateTime<Utc> {
        self.state().service.now()
    }

    pub(super) fn begin_process(&self, fault: Fault, interruption: Option<Interruption>) {
        let mut state = self.state();
        state.processes += 1;
        (state.fault, state.interruption) = (fault, interruption);
        (state.steps, state.was_interrupted) = (0, false);
        let line = format!("process {} starts at {}", state.processes, state.service.now());
        state.log.push(line);
    }

    /// Ends the process, and returns whether it was interrupted.
    pub(super) fn end_process(&self) -> bool {
        self.state().was_interrupted
    }

    pub(super) fn is_killed(&self) -> bool {
        let state = self.state();
        state.was_interrupted && state.interruption.is_some_and(|it| it.kind == Kind::Kill)
    }

    /// Returns the number of the present process, from 1, and of the API key that it has.
    pub(super) fn process(&self) -> (usize, u8) {
        let state = self.state();
        (state.processes, state.changes_of_api_key % 2)
    }

    /// Lets time pass between two processes.
    pub(super) fn pass(&self, gap: Gap) {
        let mut state = self.state();
        state.service.advance(gap.time);
        state.changes_of_api_key =
            state.changes_of_api_key.wrapping_add(gap.changes_api_key.into());
        let key = if gap.changes_api_key { ", another API key from here on" } else { "" };
        state.log.push(format!("{} minutes pass{key}", gap.time.as_secs() / 60));
    }

    pub(super) fn record(&self, line: impl fmt::Display) {
        self.state().log.push(line.to_string());
    }

    /// Passes a step, unless the process is interrupted at it. A killed process never continues.
    pub(super) async fn reach(&self, step: Step, name: &str) -> Result<(), JournalError> {
        let Some(kind) = self.interruption_at(step) else { return Ok(()) };
        match kind {
            Kind::JournalFails => {
                self.record(format_args!("  the journal fails {name}"));
                Err("the disk is full".into())
            }
            Kind::Kill => {
                self.record(format_args!("  killed {name}"));
                pending().await
            }
        }
    }

    fn interruption_at(&self, step: Step) -> Option<Kind> {
        let mut state = self.state();
        let Interruption { kind, step: at } = state.interruption?;
        if kind == Kind::JournalFails && step != Step::Journal {
            return None;
        }
        state.steps += 1;
        let is_here = state.steps == at;
        state.was_interrupted |= is_here;
        is_here.then_some(kind)
    }

    pub(super) fn expect_open(&self, is_open: Option<bool>) {
        self.state().expects_open = is_open;
    }

    /// Returns `true` if the journal has acknowledged that it has the order as open.
    pub(super) fn is_open_expected(&self) -> bool {
        self.state().expects_open == Some(true)
    }

    pub(super) fn record_lost_entry(&self) {
        self.state().has_lost_entry = true;
        self.record("  the journal does not have the open order");
    }

    pub(super) fn has_lost_entry(&self) -> bool {
        self.state().has_lost_entry
    }

    /// Serves a request.
    pub(super) fn respond(&self, request: &Request<bytes::Bytes>) -> Answer {
        let mut state = self.state();
        let fault = state.fault;
        let (line, answer) = if *request.method() == http::Method::GET {
            state.service.find(request)
        } else {
            // Only the first creation of a process meets the fault.
            state.fault = Fault::None;
            state.service.create(request, fault)
        };
        state.log.push(format!("  {line}"));
        answer
    }

    /// Returns the numbers of all parcels.
    pub(super) fn parcels(&self) -> Vec<String> {
        self.state().service.parcels().to_vec()
    }

    pub(super) fn violation(&self, what: &str) -> Violation {
        Violation { what: what.to_owned(), steps: self.state().log.clone() }
    }
}
