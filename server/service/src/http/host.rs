//! The `Host` header, of which a request must have exactly one (RFC 9112, 3.2). Otherwise a proxy and the service could
//! disagree about the host of a request.

use axum::{
    extract::Request,
    http::{HeaderMap, Version, header, uri::Authority},
};
use parcelo_domain::Refusal;
use parcelo_types::model::{FaultCode, FieldFault};

use super::client_address::PeerAddress;

/// Refuses a request from a socket without exactly one valid host. HTTP/1.0 needs none.
pub(super) fn check_host(request: &Request) -> Result<(), Refusal> {
    // A request that did not come over a socket has not passed through a proxy.
    if request.extensions().get::<PeerAddress>().is_none() {
        return Ok(());
    }
    let mut lines = request.headers().get_all(header::HOST).iter();
    let code = match (lines.next(), lines.next()) {
        (_, Some(_)) => FaultCode::Duplicate,
        (None, None) if request.version() <= Version::HTTP_10 => return Ok(()),
        (None, None) => FaultCode::Required,
        (Some(_), None) if from_headers(request.headers()).is_none() => FaultCode::InvalidFormat,
        (Some(_), None) => return Ok(()),
    };
    Err(Refusal::invalid(&[FieldFault::new(
        "Host",
        code,
        (
            "Send exactly one Host header, with the address of this service.",
            "Envíe un solo encabezado Host con la dirección a la que llama.",
        ),
    )]))
}

/// Returns the host that was called, with its port, if it is valid.
pub(crate) fn from_headers(headers: &HeaderMap) -> Option<Authority> {
    let host = headers.get(header::HOST)?.to_str().ok()?;
    host.parse::<Authority>().ok().filter(|host| !host.as_str().contains('@'))
}
