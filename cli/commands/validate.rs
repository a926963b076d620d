//! `order validate`: the service's own rules, offline.

use parcelo::{
    model::{FaultCode, FieldFault},
    rules::{Destinations, OrderContext, check_order, parse_body},
};

use crate::{
    failure::Failure,
    input::{self, Source},
    results::{CommandOutcome, Verdict, Verdicts},
    texts,
};

pub(super) fn validate(sources: &[Source]) -> Result<CommandOutcome, Failure> {
    let mut verdicts = Vec::new();
    for source in sources {
        let content = source.read()?;
        verdicts.extend(verdicts_of(&source.name(), &content));
    }
    let bad = verdicts.iter().filter(|verdict| !verdict.valid).count();
    let failure = (bad > 0).then(|| Failure::bad_orders(bad, verdicts.len()));
    Ok(CommandOutcome::report(Verdicts(verdicts)).failing(failure))
}

fn verdicts_of(file: &str, content: &str) -> Vec<Verdict> {
    let orders = input::orders(content);
    if orders.is_empty() {
        return vec![verdict(file, 0, Err(no_orders()))];
    }
    let check = |(index, order): (usize, &str)| verdict(file, index, parse_body(order.as_bytes()));
    orders.into_iter().enumerate().map(check).collect()
}

fn verdict(file: &str, index: usize, body: Result<serde_json::Value, FieldFault>) -> Verdict {
    // Offline the environment is unknown, so rules that depend on it are left to the service.
    let context = OrderContext::new(&Destinations::All);
    let (errors, warnings) = match body.map(|body| check_order(&body, &context)) {
        Ok(Ok(accepted)) => (Vec::new(), accepted.warnings),
        Ok(Err(rejected)) => (rejected.faults, rejected.warnings),
        Err(fault) => (vec![fault], Vec::new()),
    };
    Verdict { file: file.to_owned(), index, valid: errors.is_empty(), errors, warnings }
}

fn no_orders() -> FieldFault {
    FieldFault::new(
        "body",
        FaultCode::Required,
        (
            texts::NO_ORDERS.pick(parcelo::Language::En),
            texts::NO_ORDERS.pick(parcelo::Language::Es),
        ),
    )
}
