//! The HTTP layer of one environment: routes, and the format of responses and refusals on the wire.
//!
//! It makes no decisions: the middleware admits a request by the policy of its [area], a handler parses it, and the
//! [service](crate::service) executes it. All routes are listed in [routes].

pub mod area;
pub mod body;
mod carriers;
pub mod client_address;
mod connections;
mod docs;
#[cfg(feature = "docs")]
mod guide;
mod health;
mod host;
pub mod labels;
mod legacy;
mod lingering_close;
pub mod listen;
mod manifests;
mod middleware;
pub mod openapi;
mod orders;
mod parcels;
mod precondition;
pub mod public;
mod request_body;
mod request_ids;
pub mod response;
pub mod routes;
mod sandbox;
#[cfg(feature = "docs")]
mod swagger;
mod tracking;

use std::sync::Arc;

use parcelo_types::Environment;

use crate::service::Service;
pub(crate) use body::{idempotency_key, json_object_of_any_type, path_parameter};
pub use connections::{ConnectionLimits, DEFAULT_CONNECTIONS_PER_ADDRESS};
pub(crate) use host::from_headers as host_from_headers;
pub(crate) use listen::ServerStream;
pub use listen::{Listener, SHUTDOWN_GRACE, Stop};
pub(crate) use openapi::Document;
#[cfg(test)]
pub(crate) use openapi::{call, operation_doc};
pub(crate) use request_body::{BodyError, drain_bodies};
pub use request_body::{MAX_BODY_BYTES, read_body};
pub use request_ids::RequestIds;
pub use response::HttpRefusal;
pub(crate) use response::{json_ok, with_request_id};
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
