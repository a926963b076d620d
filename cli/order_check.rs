//! The check of an order in `order create` and `order validate` before anything is sent: the service's rules, and text
//! that was damaged before it came into the file.

use parcelo::{
    Language, OrderRequest,
    model::{FaultCode, FieldFault},
    rules::{Accepted, OrderContext, Rejected, check_order},
};
use parcelo_types::internal::parse_body;

use crate::{
    import::{find_lost_characters, find_misread_text},
    texts,
};

/// Checks the text of an order.
pub(crate) fn check(
    order: &str,
    context: &OrderContext<'_>,
) -> Result<Accepted<OrderRequest>, Rejected> {
    if order.trim().is_empty() {
        return Err(Rejected::new(vec![no_orders()]));
    }
    let body = parse_body(order.as_bytes()).map_err(|fault| Rejected::new(vec![fault]))?;
    let (order, faults, warnings) = match check_order(&body, context) {
        Ok(accepted) => (Some(accepted.value), Vec::new(), accepted.warnings),
        Err(rejected) => (None, rejected.faults, rejected.warnings),
    };
    let lost = find_lost_characters(&body).into_iter().map(FieldFault::from);
    let faults: Vec<_> = lost.chain(faults).collect();
    let warnings = [find_misread_text(&body), warnings].concat();
    match order {
        Some(order) if faults.is_empty() => Ok(Accepted::new(order, warnings)),
        Some(_) | None => {
            let mut rejected = Rejected::new(faults);
            rejected.warnings = warnings;
            Err(rejected)
        }
    }
}

fn no_orders() -> FieldFault {
    let text = [Language::En, Language::Es].map(|language| texts::NO_ORDERS.pick(language));
    FieldFault::new("body", FaultCode::Required, text.into())
}
