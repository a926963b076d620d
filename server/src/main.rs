//! The `parcelo-server` command.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// A create asks for memory some 270 times; this allocator takes a fifth of its CPU time less than the
/// system's. Here and not in the library: the programs that embed the mock server choose their own.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    let args = parcelo_server::process::Args::read();
    match parcelo_server::process::run(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => parcelo_server::process::fail(&error),
    }
}
