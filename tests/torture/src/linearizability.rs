//! A linearizability checker. The answers to concurrent calls must be those of a server that executes one call at a
//! time, each at some moment between its start and its answer.
//!
//! It uses the search of Wing and Gong with Lowe's cache of visited states. The search picks a call that could have
//! been executed next, asks the model whether the answer fits, and continues from the resulting states. Its time grows
//! exponentially with the number of overlapping calls, so each order is checked separately.

use std::{collections::HashSet, hash::Hash};

/// A model of a service that executes one call at a time.
pub(crate) trait Model {
    /// The state of the service.
    type State: Clone + Eq + Hash;
    /// A call to it.
    type Call;
    /// An answer to a call.
    type Answer;

    /// Returns the possible states after a call; none if the service cannot give this answer in this state. `answer` is
    /// `None` if it is unknown.
    fn step(
        state: &Self::State,
        call: &Self::Call,
        answer: Option<&Self::Answer>,
    ) -> Vec<Self::State>;
}

/// A call and the interval in which it took effect. All moments in a history are different.
#[derive(Debug, Clone)]
pub(crate) struct Record<C, A> {
    pub(crate) call: C,
    pub(crate) started: u64,
    /// The answer and its moment; `None` if none arrived, and the call may take effect at any later moment or never.
    pub(crate) answered: Option<(u64, A)>,
}

type RecordOf<M> = Record<<M as Model>::Call, <M as Model>::Answer>;

/// Returns the possible states of the service after the last answer; none if the answers fit no order of the calls.
/// States that unanswered calls may still produce are not included.
pub(crate) fn end_states<M: Model>(
    before: &[M::State],
    history: &[RecordOf<M>],
) -> HashSet<M::State> {
    let answered = history.iter().filter(|record| record.answered.is_some()).count();
    let mut search = Search::<M> { history, visited: HashSet::new(), ends: HashSet::new() };
    for state in before {
        search.extend(state, &vec![false; history.len()], answered);
    }
    search.ends
}

struct Search<'a, M: Model> {
    history: &'a [RecordOf<M>],
    /// The sets of calls that were tried, each with the state after them.
    visited: HashSet<(Vec<bool>, M::State)>,
    ends: HashSet<M::State>,
}

impl<M: Model> Search<'_, M> {
    /// Tries all orders of the remaining calls from `state` on. `answers_left` is the number of answered ones among
    /// them.
    fn extend(&mut self, state: &M::State, done: &[bool], answers_left: usize) {
        if answers_left == 0 {
            self.ends.insert(state.clone());
            return;
        }
        if !self.visited.insert((done.to_vec(), state.clone())) {
            return;
        }
        let history = self.history;
        let open = || history.iter().enumerate().zip(done).filter(|(_, done)| !**done);
        let answers = open().filter_map(|((_, record), _)| Some(record.answered.as_ref()?.0));
        // A call that started after another one's answer cannot precede it.
        let first_answer = answers.min().unwrap_or(u64::MAX);
        for ((at, record), _) in open().filter(|((_, record), _)| record.started < first_answer) {
            let answer = record.answered.as_ref().map(|(_, answer)| answer);
            let mut done = done.to_vec();
            done[at] = true;
            for next in M::step(state, &record.call, answer) {
                self.extend(&next, &done, answers_left - usize::from(answer.is_some()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;

    /// A single register: the smallest object whose answers can be stale.
    struct Register;

    impl Model for Register {
        type State = u8;
        /// The value to write; `None` is a read.
        type Call = Option<u8>;
        type Answer = u8;

        fn step(state: &u8, call: &Option<u8>, answer: Option<&u8>) -> Vec<u8> {
            let next = call.unwrap_or(*state);
            if answer.is_none_or(|seen| *seen == next) { vec![next] } else { Vec::new() }
        }
    }

    /// Returns the calls of three clients, sequential for each of them, with random answers, many of which are wrong.
    fn random_history(random: &mut Rng) -> Vec<RecordOf<Register>> {
        let mut records: Vec<RecordOf<Register>> = Vec::new();
        let mut running = [None::<usize>; 3];
        for moment in 0..random.u64(4..11) {
            let client = &mut running[random.usize(..3)];
            if let Some(at) = client.take() {
                let seen = records[at].call.unwrap_or_else(|| random.u8(..3));
                records[at].answered = Some((moment, seen));
            } else {
                *client = Some(records.len());
                let call = random.bool().then(|| random.u8(1..3));
                records.push(Record { call, started: moment, answered: None });
            }
        }
        records
    }

    /// Computes the same result by trying every order of all answered calls and any of the others.
    fn fits_by_brute_force(
        state: u8,
        done: &[&RecordOf<Register>],
        rest: &[&RecordOf<Register>],
    ) -> bool {
        let is_in_order = |next: &RecordOf<Register>| {
            let began = |it: &&RecordOf<Register>| {
                next.answered.is_some_and(|(answered, _)| answered < it.started)
            };
            !done.iter().any(began)
        };
        rest.iter().all(|record| record.answered.is_none())
            || rest.iter().enumerate().filter(|(_, next)| is_in_order(next)).any(|(at, next)| {
                let (mut done, mut rest) = (done.to_vec(), rest.to_vec());
                done.push(rest.remove(at));
                let answer = next.answered.as_ref().map(|(_, answer)| answer);
                let ends = Register::step(&state, &next.call, answer);
                ends.iter().any(|end| fits_by_brute_force(*end, &done, &rest))
            })
    }

    /// Compares with brute force; `just torture-checker` compares with stateright.
    #[test]
    fn the_search_agrees_with_brute_force() {
        let mut verdicts = [0_u32; 2];
        for seed in 0..20_000 {
            let history = random_history(&mut Rng::with_seed(seed));
            let fits = fits_by_brute_force(0, &[], &history.iter().collect::<Vec<_>>());
            let ends = end_states::<Register>(&[0], &history);
            assert_eq!(!ends.is_empty(), fits, "seed {seed}: {history:?}");
            verdicts[usize::from(fits)] += 1;
        }
        // Both results must be frequent, or their agreement would prove little.
        assert!(verdicts.iter().all(|count| *count > 2_000), "{verdicts:?}");
    }
}
