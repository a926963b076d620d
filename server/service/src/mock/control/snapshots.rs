//! Snapshots of the server's state as files.

use axum::{
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use parcelo_domain::Refusal;

use super::{ControlResult, StateExtractor, refusals::invalid_body, responses::ClockShown};
use crate::{
    http::{BodyError, json_ok, read_body},
    mock::{Snapshot, SnapshotError},
};

/// Maximum size of a snapshot that is restored: 256 MiB, far above the data of a suite.
const MAX_SNAPSHOT_BYTES: usize = 256 * 1024 * 1024;

/// Handles GET snapshot: executes all due work, and returns the state as a file.
pub(super) async fn save(State(state): StateExtractor) -> Response {
    state.server.snapshot().await.to_bytes().into_response()
}

/// Handles PUT snapshot: restores the state in a file, of this server or of one with the same seed.
pub(super) async fn restore(State(state): StateExtractor, request: Request) -> ControlResult {
    let bytes = read_body(request.into_body(), MAX_SNAPSHOT_BYTES).await;
    let bytes = bytes.map_err(|error| match error {
        // The 413 of other bodies names their limit, which is a thousandth of this one.
        BodyError::TooLarge => invalid_body(
            "a snapshot has at most 256 MiB: restore a smaller one",
            "una instantánea tiene 256 MiB como máximo: restaure una más pequeña",
        ),
        BodyError::Incomplete => error.into(),
    })?;
    let snapshot = Snapshot::from_bytes(&bytes).map_err(|error| refuse(&error))?;
    state.server.try_restore(&snapshot).await.map_err(|error| refuse(&error))?;
    Ok(json_ok(&ClockShown::new(&state.server, &[])))
}

fn refuse(error: &SnapshotError) -> Refusal {
    let spanish = "la instantánea no se puede restaurar: guárdela de nuevo con esta versión, de un servidor con la \
                   misma semilla y del mismo entorno";
    invalid_body(&error.to_string(), spanish)
}
