//! Further servers for the workers of a suite, so that each has data, a clock and faults of its own.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::extract::{Path, Request, State, rejection::PathRejection};
use futures_util::future::BoxFuture;
use parcelo_domain::Refusal;
use serde::Deserialize;
use serde_json::Value;

#[cfg(test)]
use super::scenario::WantedScenario;
use super::{
    ControlResult, StateExtractor,
    refusals::invalid_body,
    requests::read_body,
    responses::{Offences, StartedServer},
    scenario::{Scenario, ScenarioError, parse_clock},
};
use crate::{
    http::{json_ok, path_parameter},
    mock::{Clock, MockServer},
};

/// Maximum number of further servers. Each has a store, a socket and tasks.
const MAX_SERVERS: usize = 1_000;

/// Starts a server with this seed, this clock and this scenario, and returns its port too. By default the seed is the
/// next one, and clock and scenario those of the first server. A scenario that is refused is a [`ScenarioError`] in the
/// error.
pub(in crate::mock) type StartServer = Arc<
    dyn Fn(
            Option<u64>,
            Option<Clock>,
            Option<Scenario>,
        ) -> BoxFuture<'static, io::Result<(Arc<MockServer>, u16)>>
        + Send
        + Sync,
>;

/// The further servers by their ports.
pub(super) struct Servers {
    start: StartServer,
    by_port: Mutex<BTreeMap<u16, Arc<MockServer>>>,
}

impl Servers {
    pub(super) fn new(start: StartServer) -> Self {
        Self { start, by_port: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u16, Arc<MockServer>>> {
        self.by_port.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The further server to start.
#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct WantedServer {
    /// The seed of its ids, tracking numbers and keys; the next one after those of earlier servers if it is absent.
    #[cfg_attr(test, schema(minimum = 0))]
    pub(super) seed: Option<u64>,
    /// Its clock: `system`, `frozen=TIME` or `ticking=TIME`; that with which this server was started if it is absent.
    #[cfg_attr(test, schema(example = "frozen=2026-01-05T08:00:00Z"))]
    pub(super) clock: Option<String>,
    /// The calls that are made before it is ready; those with which this server was started if they are absent.
    #[cfg_attr(test, schema(value_type = Option<WantedScenario>))]
    pub(super) scenario: Option<Value>,
}

/// Handles POST servers: starts a further server with a key.
pub(super) async fn start(State(state): StateExtractor, request: Request) -> ControlResult {
    let wanted: WantedServer = read_body(request, "seed, clock and scenario").await?;
    let servers = &state.servers;
    if servers.lock().len() >= MAX_SERVERS {
        let stop = "DELETE /__mock/servers/{port}";
        let message = format!("{MAX_SERVERS} further servers run already: stop one with {stop}");
        let spanish =
            format!("ya hay {MAX_SERVERS} servidores adicionales: detenga uno con {stop}");
        return Err(invalid_body(&message, &spanish).into());
    }
    let clock = wanted.clock.as_deref().map(parse_clock).transpose()?;
    let scenario = wanted.scenario.as_ref().map(Scenario::from_value).transpose();
    let scenario = scenario.map_err(ScenarioError::refusal)?;
    let started = (servers.start)(wanted.seed, clock, scenario).await;
    let (server, port) = started.map_err(refuse_start)?;
    let (url, key) = (server.url().to_owned(), server.key().issue().secret().to_owned());
    servers.lock().insert(port, server);
    Ok(json_ok(&StartedServer { port, url, key }))
}

fn refuse_start(error: io::Error) -> Refusal {
    match error.downcast::<ScenarioError>() {
        Ok(error) => error.refusal(),
        Err(error) => {
            let message = format!("no further server could be started: {error}");
            invalid_body(&message, "no se pudo iniciar otro servidor")
        }
    }
}

/// Handles DELETE servers/{port}: stops a further server, and returns its offences.
pub(super) async fn stop(
    State(state): StateExtractor,
    port: Result<Path<String>, PathRejection>,
) -> ControlResult {
    let port = path_parameter(port).parse::<u16>().ok();
    let server = port.and_then(|port| state.servers.lock().remove(&port));
    let server = server.ok_or_else(|| {
        Refusal::missing(
            "No further server has this port; POST /__mock/servers returned it as port.",
            "Ningún servidor adicional tiene este puerto; POST /__mock/servers lo devolvió como port.",
        )
    })?;
    server.stop();
    Ok(json_ok(&Offences { offences: server.offences() }))
}
