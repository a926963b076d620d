//! Further servers for the workers of a suite, so that each has data, a clock and faults of its own.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::extract::{Path, Request, State, rejection::PathRejection};
use parcelo_types::ErrorCode;

use super::{
    ControlResult, StateExtractor,
    refusals::{invalid_body, invalid_field},
    requests::{WantedServer, read_body},
    responses::{Offences, StartedServer},
};
use crate::{
    http::{json_ok, path_parameter},
    mock::{Builder, Clock, MockServer},
};

/// Maximum number of further servers. Each has a store, a socket and tasks.
const MAX_SERVERS: usize = 1_000;

/// The further servers by their ports, and the settings with which the next one starts.
#[derive(Debug)]
pub(super) struct Servers {
    builder: Builder,
    ip: IpAddr,
    by_port: Mutex<BTreeMap<u16, Arc<MockServer>>>,
}

impl Servers {
    pub(super) fn new(builder: Builder, ip: IpAddr) -> Self {
        Self { builder, ip, by_port: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u16, Arc<MockServer>>> {
        self.by_port.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Handles POST servers: starts a further server with a key.
pub(super) async fn start(State(state): StateExtractor, request: Request) -> ControlResult {
    let wanted: WantedServer = read_body(request, "seed and clock").await?;
    let servers = &state.servers;
    if servers.lock().len() >= MAX_SERVERS {
        let message =
            format!("{MAX_SERVERS} servers were started: stop some by DELETE servers/{{port}}");
        let spanish =
            format!("ya hay {MAX_SERVERS} servidores: detenga algunos con DELETE servers/{{port}}");
        return Err(invalid_body(&message, &spanish).into());
    }
    let mut builder = servers.builder.clone();
    if let Some(seed) = wanted.seed {
        builder = builder.seed(seed);
    }
    if let Some(clock) = &wanted.clock {
        let expected = format!("clock must be {}", Clock::FORMS);
        let spanish = format!("clock debe ser {}", Clock::FORMS_ES);
        let clock = Clock::parse(clock);
        builder = builder.clock(clock.ok_or_else(|| invalid_field("clock", &expected, &spanish))?);
    }
    let (server, port) = builder.start_beside((servers.ip, 0).into()).await.map_err(|error| {
        let message = format!("no further server could be started: {error}");
        invalid_body(&message, "no se pudo iniciar otro servidor")
    })?;
    let (url, key) = (server.url().to_owned(), server.key().issue().secret().to_owned());
    servers.lock().insert(port, server);
    Ok(json_ok(&StartedServer { port, url, key }))
}

/// Handles DELETE servers/{port}: stops a further server, and returns its offences.
pub(super) async fn stop(
    State(state): StateExtractor,
    port: Result<Path<String>, PathRejection>,
) -> ControlResult {
    let port = path_parameter(port).parse::<u16>().ok();
    let server = port.and_then(|port| state.servers.lock().remove(&port));
    let server = server.ok_or(ErrorCode::NotFound)?;
    server.stop();
    Ok(json_ok(&Offences { offences: server.offences() }))
}
