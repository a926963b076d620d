//! A handler that follows `next_step` by hand. `next_step` runs it against every end of a call.

use parcelo::{
    Client, Error, IdempotencyKey, IfAbsent, NextStep, OrderRequest, ParcelStatus, TrackingNumber,
};

/// Returns the order's only parcel, no matter how often and how late this is called. After an error, call it again
/// with the same order: its key remembers the attempts.
pub(crate) async fn ship(
    client: &Client,
    order: &mut OrderRequest,
    id: &str,
) -> Result<TrackingNumber, Error> {
    let mut resends = 0..5;
    loop {
        let error = match client.orders().create(order).await {
            Ok(created) => return Ok(created.into_inner().parcel.tracking_number),
            Err(error) => error,
        };
        match error.next_step() {
            NextStep::Resend { after } if resends.next().is_some() => {
                tokio::time::sleep(after).await;
            }
            NextStep::LookUp { if_absent: IfAbsent::NewKey } => {
                if let Some(number) = unvoided_parcel(client, id).await? {
                    return Ok(number);
                }
                order.idempotency_key = IdempotencyKey::random(); // save the order before it is sent
            }
            NextStep::Settled | NextStep::LookUp { .. } => {
                return unvoided_parcel(client, id).await?.ok_or(error);
            }
            // Correct, Configure and GiveUp are for a person.
            _ => return Err(error),
        }
    }
}

/// Returns the parcel of an order by its external id, unless it was voided.
async fn unvoided_parcel(client: &Client, id: &str) -> Result<Option<TrackingNumber>, Error> {
    let mut parcels = client.orders().find(id).await?.into_iter();
    let active = parcels.find(|parcel| parcel.status != ParcelStatus::Voided);
    Ok(active.map(|parcel| parcel.tracking_number))
}
