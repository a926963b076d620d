//! Compares the linearizability checker with that of stateright.
#![cfg(test)]

use stateright::semantics::{
    ConsistencyTester, LinearizabilityTester,
    register::{Register, RegisterOp, RegisterRet},
};

use linearizability::{Model, Record, end_states};

#[path = "../../src/linearizability.rs"]
#[expect(dead_code, reason = "its own tests are run where it belongs")]
mod linearizability;

type RecordOf<M> = Record<<M as Model>::Call, <M as Model>::Answer>;

/// A single register: the smallest object whose answers can be stale.
struct OneRegister;

impl Model for OneRegister {
    type State = u8;
    type Call = RegisterOp<u8>;
    type Answer = RegisterRet<u8>;

    fn step(state: &u8, call: &RegisterOp<u8>, answer: Option<&RegisterRet<u8>>) -> Vec<u8> {
        match (call, answer) {
            (RegisterOp::Write(value), None | Some(RegisterRet::WriteOk)) => vec![*value],
            (RegisterOp::Read, None) => vec![*state],
            (RegisterOp::Read, Some(RegisterRet::ReadOk(value))) if value == state => {
                vec![*state]
            }
            _ => Vec::new(),
        }
    }
}

/// Returns the calls of three clients, sequential for each of them, with random answers, many of which are wrong.
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
fn the_checker_agrees_with_stateright_on_50_000_histories() {
    let mut verdicts = [0_u32; 2];
    for seed in 0..50_000 {
        let (history, is_consistent) = random_history(&mut fastrand::Rng::with_seed(seed));
        let ends = end_states::<OneRegister>(&[0], &history);
        assert_eq!(!ends.is_empty(), is_consistent, "seed {seed}: {history:?}");
        verdicts[usize::from(is_consistent)] += 1;
    }
    // Both results must be frequent, or their agreement would prove little.
    assert!(verdicts.iter().all(|count| *count > 5_000), "{verdicts:?}");
}
