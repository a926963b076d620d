//! Creating an order: an accepted request becomes a parcel, its label and its answer
//! (spec: POST /api/v1/orders/create).

use parcelo::{
    CountryCode, Environment, OrderRequest, Parcel, TrackingNumber,
    model::{CreatedOrder, Warning},
};
use ulid::Ulid;

use super::{
    Changes, IdempotencyRecord, NewParcel, NumberKey, Op, ParcelRowId, RecordKey, Scenario, State,
    Tenant, delivery, secrets::Secrets, site::Site, to_body,
};
use crate::{clock::Millis, ids::parcel_id};

/// A valid order, and all that its creation needs.
#[derive(Debug)]
pub(crate) struct Creation<'a> {
    /// Whose parcel it will be.
    pub tenant: Tenant,
    /// The order.
    pub order: OrderRequest,
    /// What was odd about it.
    pub warnings: Vec<Warning>,
    /// The idempotency key in its scope, and the request's fingerprint.
    pub idempotency: (RecordKey, parcelo::model::Fingerprint),
    /// The addresses that stand in the answer.
    pub site: &'a Site,
    /// Signs the label link.
    pub secrets: &'a Secrets,
    /// Makes its number, if it has none.
    pub number_key: &'a NumberKey,
}

/// Decides what a creation changes, and the body of its answer. The parcel will be in `row`, which no other
/// ever had.
pub(crate) fn create(
    creation: Creation<'_>,
    row: ParcelRowId,
    id: Ulid,
    now: Millis,
) -> (Vec<u8>, Changes) {
    let Creation { tenant, order, warnings, idempotency, site, secrets, number_key } = creation;
    let place = (tenant.environment, order.receiver.address.country);
    let given = order.tracking_number.clone();
    let number = given.unwrap_or_else(|| number_key.generate(place, row, id));
    let label_url = site.label_url(secrets, &number, id);
    let parcel = Parcel::new(parcel_id(id), number.clone(), label_url)
        .with_status(State::LabelGenerated.into())
        .with_created_at(now.to_utc());
    let body = to_body(&CreatedOrder::new(parcel).with_warnings(warnings));
    let record = IdempotencyRecord {
        key: idempotency.0,
        tenant,
        fingerprint: idempotency.1,
        first_seen: now,
        body: body.clone(),
    };
    let parcel = new_parcel((tenant, order), number, (row, id), now);
    let ops = vec![Op::InsertParcel(Box::new(parcel))];
    (body, Changes { now, idempotency_record: Some(record), expect: Vec::new(), ops })
}

fn new_parcel(
    (tenant, order): (Tenant, OrderRequest),
    number: TrackingNumber,
    (row, id): (ParcelRowId, Ulid),
    now: Millis,
) -> NewParcel {
    let country = order.receiver.address.country;
    let step = match tenant.environment {
        Environment::Sandbox => {
            Scenario::for_number(&number).and_then(|scenario| scenario.step(0, now))
        }
        Environment::Production => None,
    };
    NewParcel {
        row,
        id,
        tenant,
        created_at: now,
        origin: place(&order.sender.address.city, order.sender.address.country),
        destination: place(&order.receiver.address.city, country),
        country,
        promised_day: delivery::promised_day(country, now),
        step,
        tracking_number: number,
        order,
    }
}

fn place(city: &str, country: CountryCode) -> String {
    format!("{city}, {country}")
}
