//! The `parcelo-server` command.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    let args = parcelo_server::process::Args::read();
    match parcelo_server::process::run(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => parcelo_server::process::fail(&error),
    }
}
