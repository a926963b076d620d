//! The HTTP shell of one environment: routes, and how answers and refusals look on the wire.
//!
//! It decides nothing: the gate lets a request in, a handler reads it, the
//! [service](crate::service) answers.

#[cfg(feature = "server")]
mod admin;
mod answer;
mod body;
mod carriers;
mod connections;
#[cfg(feature = "server")]
mod dashboard;
#[cfg(test)]
#[cfg(feature = "server")]
pub(crate) mod described;
mod docs;
#[cfg(test)]
#[cfg(feature = "server")]
mod document;
mod gate;
mod health;
mod host;
mod labels;
mod legacy;
#[cfg(test)]
#[cfg(feature = "server")]
mod legacy_pages;
mod linger;
pub(crate) mod listen;
mod manifests;
#[cfg(feature = "server")]
mod metrics;
mod openapi;
mod orders;
#[cfg(test)]
#[cfg(feature = "server")]
mod pages;
mod parcels;
mod precondition;
mod public;
mod request_body;
mod sandbox;
#[cfg(feature = "server")]
mod swagger;
mod tracking;
#[cfg(test)]
#[cfg(feature = "server")]
mod webhook_pages;

use std::sync::Arc;

use axum::{
    Router,
    http::StatusCode,
    middleware,
    response::{IntoResponse, Response},
    routing::{MethodRouter, get, post},
};
use parcelo::{Environment, ErrorCode, Operation, model::Method};
use url::Url;

use crate::service::Service;
pub(crate) use answer::{Refused, ok as answer_ok, written};
pub(crate) use body::{any_json_object, idempotency_key, parameter};
pub(crate) use connections::{Connections, DEFAULT_SHARE};
pub(crate) use gate::Peer;
pub(crate) use host::of as host_of;
pub(crate) use listen::Line;
pub(crate) use listen::{Listener, SHUTDOWN_GRACE, Stop};
pub(crate) use openapi::Document;
pub(crate) use request_body::{read_body, settle};

/// Where the OpenAPI document is.
const DOCUMENT: &str = "/openapi.json";

/// What every handler is given: the service, and the environment whose address was called.
#[derive(Debug, Clone)]
pub struct Api {
    /// The service.
    pub service: Arc<Service>,
    /// The environment.
    pub environment: Environment,
    /// False once the process has been told to stop.
    pub ready: Arc<std::sync::atomic::AtomicBool>,
}

/// The routes of one environment.
pub(crate) fn router(api: Api) -> Router {
    gated(routes(&api), api)
}

/// The same, with something between the gate and the handlers.
pub(crate) fn router_through(api: Api, between: impl FnOnce(Router<Api>) -> Router<Api>) -> Router {
    gated(between(routes(&api)), api)
}

fn routes(api: &Api) -> Router<Api> {
    let files = format!("{}/{{file}}", labels_path(api));
    let routes = Router::new()
        .merge(operation(Operation::CreateOrder, post(orders::create)))
        .merge(operation(Operation::VoidOrders, post(orders::void)))
        .merge(operation(Operation::GetTracking, get(tracking::get)))
        .merge(operation(Operation::BatchTracking, post(tracking::batch)))
        .merge(operation(Operation::GetLabel, get(labels::metadata)))
        .merge(operation(Operation::ReprintLabel, post(labels::reprint)))
        .merge(operation(Operation::DownloadLabel, get(labels::download)))
        .merge(operation(Operation::SubmitManifest, post(manifests::submit)))
        .merge(operation(Operation::GetManifest, get(manifests::get)))
        .merge(operation(Operation::ListParcels, get(parcels::list)))
        .merge(operation(Operation::ResetSandbox, post(sandbox::reset)))
        .merge(operation(Operation::Health, get(health::of_key)))
        .merge(operation(Operation::PublicTracking, get(public::track)))
        .merge(operation(Operation::PushCarrierEvents, post(carriers::push)))
        .merge(operation(Operation::LegacyCreateOrder, post(legacy::create)))
        .merge(operation(Operation::LegacyCancelOrder, post(legacy::cancel)))
        .merge(operation(Operation::LegacyTracking, get(legacy::track)))
        .merge(operation(Operation::LegacyLabel, get(legacy::label)))
        .route(legacy::MIGRATION, get(legacy::migration))
        .route(&files, get(labels::linked))
        .route(DOCUMENT, openapi::route())
        .route(health::LIVE, get(health::live))
        .route(health::READY, get(health::ready));
    #[cfg(feature = "server")]
    let routes = routes.merge(swagger::routes());
    routes
}

/// Routes behind the gate, with answers in JSON for whatever they do not have.
fn gated(routes: Router<Api>, api: Api) -> Router {
    routes
        .fallback(|| async { Refused::from(ErrorCode::NotFound) })
        .method_not_allowed_fallback(|| async { Refused::from(ErrorCode::MethodNotAllowed) })
        .layer(middleware::from_fn_with_state(api.clone(), gate::gate))
        .with_state(api)
}

/// The routes of the admin listener: the dashboard, whether the process lives, and what it does.
#[cfg(feature = "server")]
pub fn admin_router(api: Api) -> Router {
    let routes = Router::new()
        .route(health::LIVE, get(health::live))
        .route(health::READY, get(health::ready))
        .route(metrics::PATH, get(metrics::scrape))
        .merge(admin::routes(&api))
        .merge(dashboard::routes());
    gated(routes, api)
        .layer(axum::Extension(dashboard::Here::default()))
        .layer(axum::Extension(gate::Operators))
}

fn operation(operation: Operation, handler: MethodRouter<Api>) -> Router<Api> {
    debug_assert!(matches!(operation.method(), Method::Get | Method::Post));
    Router::new().route(operation.path(), handler)
}

/// Where label files are served: what their address has beyond the API's, whose own path a proxy
/// takes away; on a host of their own, the whole path.
fn labels_path(api: &Api) -> String {
    let site = api.service.settings().site(api.environment);
    let beyond = site.labels_host.strip_prefix(&site.base_url);
    if let Some(path) = beyond.filter(|path| path.is_empty() || path.starts_with('/')) {
        return path.to_owned();
    }
    let path = Url::parse(&site.labels_host).map(|url| url.path().trim_end_matches('/').to_owned());
    path.unwrap_or_default()
}

fn json(status: StatusCode, body: Vec<u8>) -> Response {
    (status, [(http::header::CONTENT_TYPE, "application/json")], body).into_response()
}

#[cfg(test)]
#[cfg(feature = "server")]
mod tests;
