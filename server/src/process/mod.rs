//! The server as a process: its arguments, its listeners, its admin commands, its words.

mod args;
mod keys;
mod print;
mod serve;

use std::{io, net::SocketAddr, path::PathBuf, process::ExitCode};

pub use args::Args;
use args::Command;

use crate::store::StoreError;

/// Why the process ends with a failure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An address cannot be listened on.
    #[error("{address} cannot be listened on ({source}): is another server running there?")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The ready file cannot be written.
    #[error("the ready file {} cannot be written: {source}", path.display())]
    ReadyFile {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The output cannot be written.
    #[error("the output cannot be written: {0}")]
    Output(#[from] io::Error),
    /// The database was lost while serving.
    #[error(
        "the database can no longer be written; nothing unacknowledged was kept. Check the disk and start again"
    )]
    DatabaseLost,
    /// No key has this id.
    #[error("no API key has the id {0}; `parcelo-server keys list` shows them")]
    NoSuchKey(String),
}

/// Does what the arguments say.
pub async fn run(args: Args) -> Result<(), Failure> {
    match args.command {
        Command::Serve(options) => serve::serve(options).await,
        Command::Keys(command) => keys::run(command).await,
    }
}

/// Tells people what went wrong.
pub fn fail(failure: &Failure) -> ExitCode {
    print::failure(failure);
    ExitCode::FAILURE
}
