//! POST /carrier/v1/events.

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use parcelo_types::internal::{Envelope, Meta};

use super::{
    Api, HttpRefusal, body,
    response::{self, RequestId},
};
use crate::service::Carrier;

/// Handles POST /carrier/v1/events.
pub(super) async fn push(
    State(api): State<Api>,
    Extension(carrier): Extension<Carrier>,
    id: RequestId,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let body = body::json_object(request).await?;
    let data = api.service.push_carrier_events(&carrier, &body).await?;
    Ok(response::json_ok(&Envelope::new(
        data,
        Meta::new(parcelo_types::model::RequestId::unchecked(id.0)),
    )))
}

/// The description of these calls for the OpenAPI document.
#[cfg(test)]
pub(super) mod description {
    use parcelo_types::Operation;
    use parcelo_wire::{CarrierEvents, CarrierResults};

    use crate::http::openapi::call::Call;
    use parcelo_domain::sample;

    pub(in crate::http) fn calls() -> Vec<Call> {
        let call = Call::new(Operation::PushCarrierEvents, "Report a carrier's scans")
            .with_body::<CarrierEvents>(sample::carrier_events())
            .with_data::<CarrierResults>("200", "The result of each event.");
        vec![call]
    }
}
