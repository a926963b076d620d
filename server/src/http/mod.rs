//! The HTTP layer of one environment: routes, and the format of responses and refusals on the wire.
//!
//! It makes no decisions: the [middleware] admits a request by the policy of its [area], a handler parses it, and the
//! [service](crate::service) executes it. All routes are listed in [routes].

#[cfg(feature = "server")]
mod admin;
mod area;
mod body;
mod carriers;
mod client_address;
mod connections;
#[cfg(feature = "server")]
mod dashboard;
mod docs;
#[cfg(feature = "server")]
mod guide;
mod health;
mod host;
mod labels;
mod legacy;
mod lingering_close;
pub(crate) mod listen;
mod manifests;
#[cfg(feature = "server")]
mod metrics;
mod middleware;
mod openapi;
mod orders;
mod parcels;
mod precondition;
mod public;
mod request_body;
mod response;
mod routes;
mod sandbox;
#[cfg(feature = "server")]
mod swagger;
mod tracking;

use std::sync::Arc;

use parcelo_types::Environment;

use crate::service::Service;
pub(crate) use body::{idempotency_key, json_object_of_any_type, path_parameter};
pub(crate) use connections::{ConnectionLimits, DEFAULT_CONNECTIONS_PER_ADDRESS};
pub(crate) use host::from_headers as host_from_headers;
pub(crate) use listen::ServerStream;
pub(crate) use listen::{Listener, SHUTDOWN_GRACE, Stop};
pub(crate) use openapi::Document;
#[cfg(test)]
pub(crate) use openapi::{call, operation_doc};
pub(crate) use request_body::{MAX_BODY_BYTES, drain_bodies, read_body};
pub(crate) use response::{HttpRefusal, json_ok, with_request_id};
#[cfg(feature = "server")]
pub(crate) use routes::OPERATORS;
#[cfg(feature = "server")]
pub use routes::admin_router;
pub use routes::router;
pub(crate) use routes::router_with_layer;

/// The state of every handler: the service, and the environment whose address was called.
#[derive(Debug, Clone)]
pub struct Api {
    /// The service.
    pub service: Arc<Service>,
    /// The environment.
    pub environment: Environment,
    /// `false` once the process was asked to stop.
    pub ready: Arc<std::sync::atomic::AtomicBool>,
}

#[cfg(test)]
#[cfg(feature = "server")]
mod tests;
