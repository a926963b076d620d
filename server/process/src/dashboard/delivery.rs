//! The page that shows the request with which an event is sent to a webhook. The log does not store the body. It is
//! rebuilt here from the parcel's history, and is the same at every attempt.

use askama::Template;
use axum::{
    extract::{Path, State},
    response::Response,
};
use parcelo::webhook;
use parcelo_domain::{ids::public_id, webhooks::USER_AGENT};
use parcelo_service::http::{Api, HttpRefusal};
use parcelo_types::ErrorCode;
use ulid::Ulid;

use super::{
    auth::SignedInUser,
    frame::{Frame, Section, render_page},
    webhooks::{address, parse_environment},
};

#[derive(Template)]
#[template(path = "dashboard/delivery.html")]
struct DeliveryPage {
    frame: Frame,
    id: String,
    headers: Vec<(&'static str, String)>,
    body: String,
    back: String,
}

/// Shows an event's request without its signature, because a reader could send a signed request too.
pub(super) async fn show(
    State(api): State<Api>,
    Path((environment, event)): Path<(String, String)>,
    user: SignedInUser,
) -> Result<Response, HttpRefusal> {
    let environment = parse_environment(&environment)?;
    let event = event.strip_prefix("evt_").and_then(|id| Ulid::from_string(id).ok());
    let event = event.ok_or(ErrorCode::NotFound)?;
    let body = api.service.webhook_body(user.tenant(environment), event).await?;
    let (id, language) = (public_id("evt", event), user.language());
    let headers = vec![
        ("content-type", "application/json".to_owned()),
        ("user-agent", USER_AGENT.to_owned()),
        (webhook::ID, id.clone()),
        (
            webhook::TIMESTAMP,
            language
                .pick("(Unix seconds, of each attempt)", "(segundos Unix, de cada intento)")
                .to_owned(),
        ),
        (webhook::SIGNATURE, language.pick("v1,… (not shown)", "v1,… (no se muestra)").to_owned()),
    ];
    render_page(&DeliveryPage {
        frame: user.frame(Section::Webhooks),
        id,
        headers,
        body: String::from_utf8_lossy(&body).into_owned(),
        back: address(environment),
    })
}
