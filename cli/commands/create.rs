//! `order create`: an order out of a file, and its label.

use parcelo::{
    Client, OrderRequest, Outcome,
    model::Warning,
    rules::{Accepted, Destinations, OrderContext, check_order, parse_body},
};

use super::{call, label};
use crate::{
    failure::Failure,
    input,
    order_fields::OrderInput,
    resolve::LabelFile,
    results::{CommandOutcome, Created, Results},
    resume::ResumeHint,
    texts,
};

pub(super) async fn create(
    client: &Client,
    order: &OrderInput,
    label: Option<&LabelFile>,
) -> Result<CommandOutcome, Failure> {
    let Accepted { value: order, warnings, .. } = checked(client, &order.read()?)?;
    let key = order.idempotency_key.clone();
    let reply = call::answer(client.orders().create(&order), ResumeHint::SameOrder(&key)).await?;
    let (outcome, request_id) = (reply.outcome(), reply.meta().request_id.clone());
    let mut order = reply.into_inner();
    add_new(&mut order.warnings, warnings);

    let number = &order.parcel.tracking_number;
    let (label, failure) = match label {
        None => (None, None),
        Some(LabelFile { path, format }) => {
            match label::save(client, number, *format, path).await {
                Ok(saved) => (Some(saved), None),
                Err(why) => (None, Some(Failure::label_unsaved(number, &why))),
            }
        }
    };
    let created = Created { order, outcome, idempotency_key: key, request_id, label };
    let done =
        CommandOutcome { failure, ..CommandOutcome::with(Results::Created(Box::new(created))) };
    Ok(match outcome {
        Outcome::Created => done,
        Outcome::Replayed => done.note(texts::REPLAYED.into()),
    })
}

/// The order, if it keeps the rules; an order that breaks them is not sent.
fn checked(client: &Client, file: &[u8]) -> Result<Accepted<OrderRequest>, Failure> {
    let broken = |faults| Failure::invalid(texts::BAD_ORDER, faults);
    let body = parse_body(input::without_mark(file)).map_err(|fault| broken(vec![fault]))?;
    let context = OrderContext::new(&Destinations::All).with_environment(client.environment());
    check_order(&body, &context)
        .map_err(|rejected| broken(rejected.faults).warned(rejected.warnings))
}

/// Adds what only the check before sending could see, such as fields that are not sent at all.
fn add_new(told: &mut Vec<Warning>, seen: Vec<Warning>) {
    for warning in seen {
        let same = |other: &Warning| (&other.code, &other.field) == (&warning.code, &warning.field);
        if !told.iter().any(same) {
            told.push(warning);
        }
    }
}
