//! A layer around the client's transport: it adds a header to each attempt, prints its status, and in read-only mode
//! refuses every request that would change something.
//!
//! `PARCELO_API_KEY=… PARCELO_BASE_URL=… cargo run --example transport_layer -- NUMBER [--read-only]`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use std::{env, error::Error, process::ExitCode};

use parcelo::{
    ClientBuilder, IdempotencyKey, TrackingNumber, VoidRequest,
    bytes::Bytes,
    http::{HeaderValue, Method, Request},
    transport::{Phase, ResponseFuture, Transport, TransportError},
};

#[derive(Debug)]
struct Guard<T> {
    inner: T,
    read_only: bool,
}

impl<T: Transport> Transport for Guard<T> {
    fn send(&self, mut request: Request<Bytes>) -> ResponseFuture<'_> {
        Box::pin(async move {
            if self.read_only && request.method() != Method::GET {
                return Err(TransportError::new(Phase::Refused, "read-only mode"));
            }
            request.headers_mut().insert("x-warehouse", HeaderValue::from_static("quito-2"));
            let method = request.method().clone();
            let response = self.inner.send(request).await;
            response.inspect(|response| println!("{method}: {}", response.status()))
        })
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let Err(error) = run().await else { return ExitCode::SUCCESS };
    eprintln!("{error}");
    ExitCode::FAILURE
}

async fn run() -> Result<(), Box<dyn Error>> {
    let number = env::args().nth(1).ok_or("usage: transport_layer NUMBER [--read-only]")?;
    let number = TrackingNumber::parse(&number)?;
    let read_only = env::args().any(|argument| argument == "--read-only");
    let client = ClientBuilder::from_env()?.layer(move |inner| Guard { inner, read_only });
    let client = client.build()?;
    println!("{number} is {}", client.tracking().get(&number).await?.status);
    let key = IdempotencyKey::derive("my-shop void", number.as_str());
    client.orders().void(&VoidRequest::new(key, [&number])).await?;
    println!("{number} is voided");
    Ok(())
}
