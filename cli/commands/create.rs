//! `order create`: an order from a file or from fields, and its label.

use std::path::PathBuf;

use parcelo::{
    Client, LabelFormat, OrderRequest, Outcome,
    model::{CreatedOrder, Warning},
    rules::{Accepted, Destinations, OrderContext},
};

use super::{call, label};
use crate::{
    failure::Failure,
    order_check,
    order_fields::OrderInput,
    results::{CommandOutcome, Created},
    resume::ResumeHint,
    texts,
};

/// The file for an order's label.
#[derive(Debug)]
pub(crate) struct LabelFile {
    pub(crate) path: PathBuf,
    pub(crate) format: LabelFormat,
}

pub(super) async fn create(
    client: &Client,
    order: &OrderInput,
    label: Option<&LabelFile>,
) -> Result<CommandOutcome, Failure> {
    let Accepted { value: order, warnings, .. } = check_order(client, &order.one()?)?;
    let create = client.orders().create(&order);
    let reply = call::execute(create, ResumeHint::SameOrder(&order)).await?;
    let (outcome, request_id) = (reply.outcome(), reply.meta().request_id.clone());
    let CreatedOrder { parcel, warnings: mut all, .. } = reply.into_inner();
    add_local_warnings(&mut all, warnings);

    let number = &parcel.tracking_number;
    let (label, failure) = match label {
        None => (None, None),
        Some(LabelFile { path, format }) => {
            match label::save(client, number, *format, path).await {
                Ok(saved) => (Some(saved), None),
                Err(err) => (None, Some(Failure::for_unsaved_label(number, &err))),
            }
        }
    };
    let note = texts::REPLAYED.with(&[("number", number.as_str())]);
    let idempotency_key = order.idempotency_key;
    let created = Created { outcome, parcel, warnings: all, idempotency_key, request_id, label };
    let done = CommandOutcome::report(created).failing(failure);
    Ok(match outcome {
        Outcome::Created => done,
        Outcome::Replayed => done.note(note),
    })
}

/// Validates the order.
fn check_order(client: &Client, order: &str) -> Result<Accepted<OrderRequest>, Failure> {
    let context = OrderContext::new(&Destinations::All).with_environment(client.environment());
    order_check::check(order, &context).map_err(|rejected| {
        Failure::invalid(texts::INVALID_ORDER, rejected.faults).with_warnings(rejected.warnings)
    })
}

/// Adds the warnings that only the local check gives, such as those about unknown fields, which are not sent.
fn add_local_warnings(warnings: &mut Vec<Warning>, local: Vec<Warning>) {
    for warning in local {
        let same = |other: &Warning| (&other.code, &other.field) == (&warning.code, &warning.field);
        if !warnings.iter().any(same) {
            warnings.push(warning);
        }
    }
}
