//! `order validate`: the service's rules, offline.

use parcelo::rules::{Destinations, OrderContext};

use crate::{
    failure::Failure,
    order_check,
    order_fields::OrderInput,
    results::{CommandOutcome, Verdict, Verdicts},
};

pub(super) fn validate(orders: &OrderInput) -> Result<CommandOutcome, Failure> {
    let mut verdicts = Vec::new();
    for (file, orders) in orders.all()? {
        let orders = orders.iter().enumerate();
        verdicts.extend(orders.map(|(index, order)| verdict(&file, index, order)));
    }
    let bad = verdicts.iter().filter(|verdict| !verdict.valid).count();
    let failure = (bad > 0).then(|| Failure::for_invalid_orders(bad, verdicts.len()));
    Ok(CommandOutcome::report(Verdicts(verdicts)).failing(failure))
}

fn verdict(file: &str, index: usize, order: &str) -> Verdict {
    // Offline the environment is unknown, so rules that depend on it are left to the service.
    let context = OrderContext::new(&Destinations::All);
    let (errors, warnings) = match order_check::check(order, &context) {
        Ok(accepted) => (Vec::new(), accepted.warnings),
        Err(rejected) => (rejected.faults, rejected.warnings),
    };
    Verdict { file: file.to_owned(), index, valid: errors.is_empty(), errors, warnings }
}
