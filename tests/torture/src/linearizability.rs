//! Whether concurrent calls were answered as one server would have answered them that does one thing at a
//! time, each call at some moment between its start and its answer.
//!
//! The search is that of Wing and Gong, with Lowe's memory of places that lead nowhere: it takes a call
//! that could have been the next one, asks the model whether its answer fits, goes on, and comes back when
//! nothing fits. It is exponential in the calls that overlap, so a history is cut into one for each order.

use std::{collections::HashSet, hash::Hash};

/// What a service that does one thing at a time would answer.
pub(crate) trait Model {
    /// What the service knows.
    type State: Clone + Default + Eq + Hash;
    /// What it is asked.
    type Call;
    /// What it says.
    type Answer;

    /// The state after a call, or none if the answer is not the one of this state. A call whose answer was
    /// not heard may have been any.
    fn step(
        state: &Self::State,
        call: &Self::Call,
        answer: Option<&Self::Answer>,
    ) -> Option<Self::State>;
}

/// A call, with the moments between which it took effect. The moments of a history are all different.
#[derive(Debug, Clone)]
pub(crate) struct Record<C, A> {
    pub(crate) call: C,
    pub(crate) started: u64,
    /// None when no answer was heard: the call may take effect at any later moment, or never.
    pub(crate) answered: Option<(u64, A)>,
}

type RecordOf<M> = Record<<M as Model>::Call, <M as Model>::Answer>;

/// Whether the records have an order in which each answer fits.
pub(crate) fn is_linearizable<M: Model>(history: &[RecordOf<M>]) -> bool {
    let unanswered = history.iter().filter(|record| record.answered.is_none()).count();
    let mut search = Search::<M> { history, seen: HashSet::new() };
    let done = vec![false; history.len()];
    search.goes_on(&M::State::default(), done, history.len() - unanswered)
}

struct Search<'a, M: Model> {
    history: &'a [RecordOf<M>],
    /// Calls that were done with the state after them, from which no way led on.
    seen: HashSet<(Vec<bool>, M::State)>,
}

impl<M: Model> Search<'_, M> {
    /// Whether the calls that are not done can follow `state`, `left` answered ones among them.
    fn goes_on(&mut self, state: &M::State, done: Vec<bool>, left: usize) -> bool {
        if left == 0 {
            return true;
        }
        if !self.seen.insert((done.clone(), state.clone())) {
            return false;
        }
        let history = self.history;
        let open = || history.iter().enumerate().zip(&done).filter(|(_, done)| !**done);
        let answers = open().filter_map(|((_, record), _)| Some(record.answered.as_ref()?.0));
        // What started after another call's answer cannot come before that call.
        let first_answer = answers.min().unwrap_or(u64::MAX);
        for ((at, record), _) in open().filter(|((_, record), _)| record.started < first_answer) {
            let answer = record.answered.as_ref().map(|(_, answer)| answer);
            let Some(next) = M::step(state, &record.call, answer) else { continue };
            let mut done = done.clone();
            done[at] = true;
            if self.goes_on(&next, done, left - usize::from(answer.is_some())) {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use stateright::semantics::{
        ConsistencyTester, LinearizabilityTester,
        register::{Register, RegisterOp, RegisterRet},
    };

    use super::*;

    /// A register: the smallest thing of which answers can be stale.
    struct OneRegister;

    impl Model for OneRegister {
        type State = u8;
        type Call = RegisterOp<u8>;
        type Answer = RegisterRet<u8>;

        fn step(state: &u8, call: &RegisterOp<u8>, answer: Option<&RegisterRet<u8>>) -> Option<u8> {
            match (call, answer) {
                (RegisterOp::Write(value), None | Some(RegisterRet::WriteOk)) => Some(*value),
                (RegisterOp::Read, None) => Some(*state),
                (RegisterOp::Read, Some(RegisterRet::ReadOk(value))) if value == state => {
                    Some(*state)
                }
                _ => None,
            }
        }
    }

    /// Calls of three clients, one after another for each, with answers drawn at random: many are wrong.
    fn random_history(random: &mut fastrand::Rng) -> (Vec<RecordOf<OneRegister>>, bool) {
        let mut tester = LinearizabilityTester::new(Register(0_u8));
        let mut records: Vec<RecordOf<OneRegister>> = Vec::new();
        let mut running = [None::<usize>; 3];
        for moment in 0..random.u64(4..16) {
            let client = random.usize(..3);
            let Some(at) = running[client].take() else {
                let call = if random.bool() {
                    RegisterOp::Read
                } else {
                    RegisterOp::Write(random.u8(1..3))
                };
                tester.on_invoke(client, call.clone()).unwrap();
                running[client] = Some(records.len());
                records.push(Record { call, started: moment, answered: None });
                continue;
            };
            let answer = match records[at].call {
                RegisterOp::Read => RegisterRet::ReadOk(random.u8(..3)),
                RegisterOp::Write(_) => RegisterRet::WriteOk,
            };
            tester.on_return(client, answer.clone()).unwrap();
            records[at].answered = Some((moment, answer));
        }
        (records, tester.is_consistent())
    }

    #[test]
    fn the_checker_agrees_with_the_tester_of_stateright_on_50_000_small_histories() {
        let mut verdicts = [0_u32; 2];
        for seed in 0..50_000 {
            let (history, is_consistent) = random_history(&mut fastrand::Rng::with_seed(seed));
            assert_eq!(
                is_linearizable::<OneRegister>(&history),
                is_consistent,
                "seed {seed}: {history:?}"
            );
            verdicts[usize::from(is_consistent)] += 1;
        }
        // Both verdicts are common, or the agreement would say little.
        assert!(verdicts.iter().all(|count| *count > 5_000), "{verdicts:?}");
    }
}
