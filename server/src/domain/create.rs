//! Creating an order: an accepted request becomes a parcel, its label and its answer
//! (spec: POST /api/v1/orders/create).

use parcelo::{
    CountryCode, Environment, OrderRequest, Parcel, TrackingNumber,
    model::{CreatedOrder, Warning},
};
use ulid::Ulid;

use super::{
    Changes, IdempotencyRecord, NewParcel, Op, RecordKey, Scenario, State, Tenant, delivery,
    secrets::Secrets, site::Site, to_body,
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
}

/// Decides what a creation changes, and the body of its answer.
pub(crate) fn create(
    creation: Creation<'_>,
    id: Ulid,
    random_suffix: &str,
    now: Millis,
) -> (Vec<u8>, Changes) {
    let Creation { tenant, order, warnings, idempotency, site, secrets } = creation;
    let country = order.receiver.address.country;
    let given = order.tracking_number.clone();
    let number = given
        .unwrap_or_else(|| generated_tracking_number(tenant.environment, country, random_suffix));
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
    let parcel = new_parcel(tenant, order, number, id, now);
    let ops = vec![Op::InsertParcel(Box::new(parcel))];
    (body, Changes { now, idempotency_record: Some(record), expect: Vec::new(), ops })
}

fn new_parcel(
    tenant: Tenant,
    order: OrderRequest,
    number: TrackingNumber,
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

/// A number of our own: the sandbox's start with `SB`, and production's never do.
fn generated_tracking_number(
    environment: Environment,
    country: CountryCode,
    random_suffix: &str,
) -> TrackingNumber {
    let prefix = match (environment, country.as_str()) {
        (Environment::Sandbox, code) => format!("SB{code}"),
        // SB is the code of the Solomon Islands; XS is one that ISO 3166 leaves to its users, so no country has it.
        (Environment::Production, "SB") => "XS".to_owned(),
        (Environment::Production, code) => code.to_owned(),
    };
    #[expect(clippy::expect_used, reason = "2-4 letters and 13 of base32 are 15-17 characters")]
    TrackingNumber::parse(&format!("{prefix}{random_suffix}"))
        .expect("a generated number is well formed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_numbers_start_with_what_their_environment_allows() {
        let table = [
            (Environment::Production, "EC", "EC0123456789ABC"),
            (Environment::Production, "SB", "XS0123456789ABC"),
            (Environment::Sandbox, "EC", "SBEC0123456789ABC"),
            (Environment::Sandbox, "SB", "SBSB0123456789ABC"),
        ];
        for (environment, country, number) in table {
            let country = CountryCode::parse(country).unwrap();
            assert_eq!(
                generated_tracking_number(environment, country, "0123456789ABC").as_str(),
                number
            );
        }
    }
}
