//! Creating an order: an accepted request becomes a parcel, its label and its response
//! (spec: POST /api/v1/orders/create).

use std::sync::Arc;

use parcelo_types::{
    CountryCode, Environment, OrderRequest, Parcel, TrackingNumber,
    model::{CreatedOrder, Warning},
};
use ulid::Ulid;

use super::{
    Changes, IdempotencyRecord, NewParcel, RecordKey, Scenario, State, StoreOp, StoredOrder,
    Tenant, delivery,
    secrets::Secrets,
    site::Site,
    to_body,
    tracking_numbers::{RemainingDraws, TrackingNumberGenerator},
};
use crate::{Millis, ids::parcel_id};

/// A valid order, with everything that is needed to create it.
#[derive(Debug)]
pub struct OrderCreation<'a> {
    /// The tenant that will own the parcel.
    pub tenant: Tenant,
    /// The order as it was accepted.
    pub order: OrderRequest,
    /// The warnings to return with the order.
    pub warnings: Vec<Warning>,
    /// The idempotency key in its scope, and the request's fingerprint.
    pub idempotency: (RecordKey, parcelo_types::internal::Fingerprint),
    /// The source of the URLs in the response.
    pub site: &'a Site,
    /// The keys that sign the label link.
    pub secrets: &'a Secrets,
    /// The generator of the tracking number, for an order that has none.
    pub numbers: &'a Arc<TrackingNumberGenerator>,
}

/// Returns the changes that create an order. The idempotency record holds the body of the response.
pub fn create(creation: OrderCreation<'_>, id: Ulid, now: Millis) -> Changes {
    let OrderCreation { tenant, order, warnings, idempotency, site, secrets, numbers } = creation;
    let origin = (tenant.environment, order.receiver.address.country);
    let (number, redraws) = match order.tracking_number.clone() {
        Some(given) => (given, None),
        None => (numbers.draw(origin, now), Some(RemainingDraws::new(numbers))),
    };
    let label_url = site.label_url(secrets, &number, id);
    let parcel = Parcel::new(parcel_id(id), number.clone(), label_url)
        .with_status(State::LabelGenerated.into())
        .with_created_at(now.to_utc());
    let record = IdempotencyRecord {
        key: idempotency.0,
        tenant,
        fingerprint: idempotency.1,
        first_seen: now,
        body: to_body(&CreatedOrder::new(parcel).with_warnings(warnings)),
    };
    let parcel = new_parcel((tenant, order), (number, redraws), id, now);
    let ops = vec![StoreOp::InsertParcel(Box::new(parcel))];
    Changes { now, trace: None, idempotency_record: Some(record), expect: Vec::new(), ops }
}

/// Draws another tracking number for a parcel whose number is taken, and writes it into the parcel and its response.
/// Returns `false` if the caller chose the number, or if all draws are used up.
pub fn redraw_tracking_number(
    parcel: &mut NewParcel,
    record: Option<&mut IdempotencyRecord>,
) -> bool {
    let Some(source) = parcel.redraws.as_mut().and_then(RemainingDraws::next) else { return false };
    let environment = parcel.tenant.environment;
    let number = source.draw((environment, parcel.country), parcel.created_at);
    let taken = std::mem::replace(&mut parcel.tracking_number, number);
    let number = &parcel.tracking_number;
    if let Some(record) = record {
        let signed = |number| source.secrets.link_signature(environment, number, parcel.id);
        replace_in_body(&mut record.body, taken.as_str(), number.as_str());
        replace_in_body(&mut record.body, &signed(&taken), &signed(number));
    }
    true
}

/// Replaces every occurrence of a text in a response by another text of the same length.
fn replace_in_body(body: &mut [u8], text: &str, other: &str) {
    let length = text.len();
    for at in 0..body.len() {
        if let Some(found) = body.get_mut(at..at + length)
            && found == text.as_bytes()
        {
            found.copy_from_slice(other.as_bytes());
        }
    }
}

fn new_parcel(
    (tenant, order): (Tenant, OrderRequest),
    (number, redraws): (TrackingNumber, Option<RemainingDraws>),
    id: Ulid,
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
        id,
        tenant,
        created_at: now,
        origin: city_and_country(&order.sender.address.city, order.sender.address.country),
        destination: city_and_country(&order.receiver.address.city, country),
        country,
        promised_day: delivery::promised_day(country, now),
        step,
        tracking_number: number,
        redraws,
        order: StoredOrder::to_json(&order),
        external_order_id: order.external_order_id,
    }
}

fn city_and_country(city: &str, country: CountryCode) -> String {
    format!("{city}, {country}")
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::{AtomicU8, Ordering};

    use serde_json::Value;

    use super::*;
    use crate::{AccountRowId, Step, sample};

    const NOW: Millis = Millis(1_768_057_500_000);

    fn secrets() -> Secrets {
        Secrets::derive(&[1; 32])
    }

    fn site() -> Site {
        Site::new(Environment::Sandbox, "https://sandbox.example")
    }

    /// Creates the example's order with this tracking number, or with a generated one. Each draw is another number.
    pub(crate) fn created(tracking_number: Option<&str>) -> (NewParcel, IdempotencyRecord) {
        let draws = AtomicU8::new(0);
        let random = move || [draws.fetch_add(1, Ordering::Relaxed); 5];
        let numbers = Arc::new(TrackingNumberGenerator::new(Box::new(random), secrets()));
        let mut order: OrderRequest = serde_json::from_str(sample::ORDER).unwrap();
        order.tracking_number = tracking_number.map(|text| TrackingNumber::parse(text).unwrap());
        let (site, secrets) = (site(), secrets());
        let creation = OrderCreation {
            tenant: Tenant { account: AccountRowId(1), environment: Environment::Sandbox },
            order,
            warnings: Vec::new(),
            idempotency: (RecordKey([1; 16]), [7; 32]),
            site: &site,
            secrets: &secrets,
            numbers: &numbers,
        };
        let changes = create(creation, Ulid::nil(), NOW);
        let Some(StoreOp::InsertParcel(parcel)) = changes.ops.into_iter().next() else {
            panic!("the first operation creates the parcel")
        };
        (*parcel, changes.idempotency_record.unwrap())
    }

    #[test]
    fn a_new_parcel_has_its_places_its_label_and_its_first_step() {
        let (parcel, record) = created(Some("SB-SUCCESS-0001"));
        assert_eq!((&*parcel.origin, &*parcel.destination), ("Miami, US", "Quito, EC"));
        let first = Step { index: 0, due: NOW.plus(5 * Millis::MINUTE) };
        assert_eq!(parcel.step, Some(first));
        let response: Value = serde_json::from_slice(&record.body).unwrap();
        assert_eq!(response["parcel"]["id"], "par_00000000000000000000000000");
        // The signature was computed with Python's hmac.
        let link = "https://sandbox.example/files/SB-SUCCESS-0001.pdf?sig=yekTsAbV08rLQ8nhFuBgcg";
        assert_eq!(response["parcel"]["labelUrl"], link);
    }

    #[test]
    fn a_taken_number_is_redrawn_seven_times_in_the_parcel_and_its_response() {
        let (mut parcel, mut record) = created(None);
        let mut numbers = vec![parcel.tracking_number.clone()];
        while redraw_tracking_number(&mut parcel, Some(&mut record)) {
            let number = parcel.tracking_number.clone();
            assert!(!numbers.contains(&number), "{number} again");
            let response: CreatedOrder = serde_json::from_slice(&record.body).unwrap();
            assert_eq!(response.parcel.tracking_number, number);
            let link = site().label_url(&secrets(), &number, parcel.id);
            assert_eq!(response.parcel.label_url.unwrap().as_str(), link);
            numbers.push(number);
        }
        assert_eq!(numbers.len(), 8);
    }

    #[test]
    fn a_number_that_the_caller_chose_is_not_replaced() {
        let (mut parcel, mut record) = created(Some("SB-SUCCESS-0001"));
        let before = record.clone();
        assert!(!redraw_tracking_number(&mut parcel, Some(&mut record)));
        assert_eq!((parcel.tracking_number.as_str(), record), ("SB-SUCCESS-0001", before));
    }
}
