//! A call in a trace: each of its attempts goes out with a `traceparent` header (W3C Trace Context) of its
//! own, by which gateway and service can tie what they log to the attempt.
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
    // It gives each span an id. Yours hands the spans on to what collects them.
    tracing::subscriber::set_global_default(tracing_subscriber::registry())?;
    // One run is one trace. A program that serves requests takes the id of the request's trace instead, for
    // instance from `Span::current().context()` of tracing-opentelemetry.
    let trace = fastrand::u128(1..);
    let client = ClientBuilder::from_env()?
        .header_with("traceparent", move || traceparent(trace, &Span::current()))?
        .build()?;
    let health = client.health().await?;
    println!("{trace:032x}: {} attempts, {}", health.meta().attempts, health.key_name);
    Ok(())
}

/// Version, trace, parent and "sampled". Called inside an attempt's span, so the parent is that attempt; if
/// nobody collects spans there is none, and no header.
fn traceparent(trace: u128, span: &Span) -> Option<HeaderValue> {
    let parent = span.id()?.into_u64();
    HeaderValue::try_from(format!("00-{trace:032x}-{parent:016x}-01")).ok()
}
