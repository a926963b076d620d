//! A call in a trace: each attempt has its own `traceparent` header (W3C Trace Context), so that the gateway and the
//! service can relate their logs to the attempt.
//!
//! `PARCELO_API_KEY=… PARCELO_BASE_URL=… cargo run --example trace_context`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use std::{error::Error, process::ExitCode};

use http::HeaderValue;
use parcelo::ClientBuilder;
use tracing::Span;

#[tokio::main]
async fn main() -> ExitCode {
    let Err(error) = run().await else { return ExitCode::SUCCESS };
    eprintln!("{error}");
    ExitCode::FAILURE
}

async fn run() -> Result<(), Box<dyn Error>> {
    // The registry gives each span an id. Add a layer that exports the spans.
    tracing::subscriber::set_global_default(tracing_subscriber::registry())?;
    // Here one run is one trace. A server would use the trace id of the request that it handles, for instance
    // from `Span::current().context()` of tracing-opentelemetry.
    let trace = fastrand::u128(1..);
    let client = ClientBuilder::from_env()?
        .header_with("traceparent", move || traceparent(trace, &Span::current()))?
        .build()?;
    let health = client.health().await?;
    println!("{trace:032x}: {} attempts, {}", health.meta().attempts, health.key_name);
    Ok(())
}

/// Returns version, trace id, parent id, and the flag "sampled". It is called inside an attempt's span, which is the
/// parent. Without a subscriber there is no span, and so no header.
fn traceparent(trace: u128, span: &Span) -> Option<HeaderValue> {
    let parent = span.id()?.into_u64();
    HeaderValue::try_from(format!("00-{trace:032x}-{parent:016x}-01")).ok()
}
