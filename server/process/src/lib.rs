//! The service as a process: its commands, its listeners, and what only operators see: dashboard, admin API, metrics.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(test)]
#[path = "../../tests/waiting/mod.rs"]
mod waiting;

mod accounts;
mod admin;
mod args;
mod audit;
mod backup;
mod completions;
mod config;
mod config_file;
#[cfg(feature = "postgres")]
mod copy;
mod credential_args;
mod credentials;
mod dashboard;
mod database;
#[doc(hidden)]
pub mod json_lines;
mod legacy;
mod log;
mod mail_args;
mod mails;
mod metrics;
mod mock;
mod mock_args;
mod password;
#[doc(hidden)]
pub mod passwords;
mod print;
mod ready_file;
mod restore;
mod retention;
#[doc(hidden)]
pub mod routes;
mod serve;
mod serve_args;
mod serve_sockets;
mod settings;
mod shared_args;
mod shell;
mod shutdown;
mod sign_in;
mod smtp;
mod supervisor;
#[cfg(test)]
mod tests;
mod upkeep;
mod vacuum;
mod verify;
mod webhook_args;
mod webhooks;

use std::{io, net::SocketAddr, path::PathBuf, process::ExitCode};

pub use args::Args;
use args::Command;
use clap::CommandFactory;
pub use mail_args::MailArgsError;
use parcelo_domain::{Secrets, shop::ShopError, webhooks::InvalidWebhookUrl};
use parcelo_service::service::EndpointError;
use parcelo_store::{ReadOnlyReason, Store, StoreError};

/// The environment variable of the secret. There is no flag for it, because other users can see arguments.
const SECRET_VARIABLE: &str = "PARCELO_SECRET";

/// A reason why the process ends with a failure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The server cannot listen on an address.
    #[error("cannot listen on {address}: {source}; is another server using it?")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The underlying error.
        source: io::Error,
    },
    /// The file of `--scenario` cannot be used.
    #[error("cannot use the scenario {}: {reason}", path.display())]
    Scenario {
        /// The file.
        path: PathBuf,
        /// The reason, with its place in the file and what to do.
        reason: String,
    },
    /// A socket that systemd passed cannot be used.
    #[error("cannot use the socket {name:?} that systemd passed: {reason}")]
    PassedSocket {
        /// Its name.
        name: String,
        /// The reason, and what to do.
        reason: String,
    },
    /// The command of `--exec` cannot be started.
    #[error("cannot start the command of --exec: {0}")]
    Exec(io::Error),
    /// The command of `--exec` failed; its exit code is the process's.
    #[error("the command of --exec exited with code {0}")]
    ExecFailed(u8),
    /// The ready file cannot be written.
    #[error("cannot write the ready file {}: {source}", path.display())]
    ReadyFile {
        /// The file.
        path: PathBuf,
        /// The underlying error.
        source: io::Error,
    },
    /// The file of `--secrets-file` cannot be written.
    #[error("cannot write the secrets file {}: {source}", path.display())]
    SecretsFile {
        /// The file.
        path: PathBuf,
        /// The underlying error.
        source: io::Error,
    },
    /// Standard output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    /// The database was lost while serving.
    #[error("{}", lost_database_advice(*.0))]
    DatabaseLost(ReadOnlyReason),
    /// `PARCELO_SECRET` is malformed.
    #[error(
        "PARCELO_SECRET must be 64 hexadecimal digits: 32 random bytes, the same at every start"
    )]
    Secret,
    /// The database does not exist, or has no schema yet.
    #[error(
        "the database {0} does not exist or is empty; set --database to the server's. `parcelo-server serve` makes it at its first start"
    )]
    NoDatabase(String),
    /// The database is in memory, where another process cannot see it.
    #[error(
        "this command needs a database file, not one in memory; set --database to the server's file"
    )]
    MemoryOnly,
    /// A backup that was checked is damaged.
    #[error(
        "{} is damaged ({faults}): do not restore it; check its disk, and verify another backup",
        file.display()
    )]
    DamagedFile {
        /// The backup.
        file: PathBuf,
        /// Its first faults.
        faults: String,
    },
    /// A new backup failed its check.
    #[error(
        "the new backup failed its check and is now {}; no older one was deleted: {reason}",
        file.display()
    )]
    DamagedBackup {
        /// The backup, under the name that it was given.
        file: PathBuf,
        /// The result of the check.
        reason: String,
    },
    /// The backup was made, but older ones cannot be deleted.
    #[error("the backup was made, but older ones cannot be deleted ({}: {source}): delete them", path.display())]
    OldBackups {
        /// An older backup, or the folder.
        path: PathBuf,
        /// The underlying error.
        source: io::Error,
    },
    /// The database to copy does not exist.
    #[error("the database {0} does not exist; name a stopped server's, or a backup, with --from")]
    NoSource(String),
    /// The source or target of a copy is in memory.
    #[error(
        "a database in memory can be neither the source nor the target of a copy; name another with --from or --to"
    )]
    CopyOfMemory,
    /// The account does not exist.
    #[error(
        "no account is named {0}; `parcelo-server accounts list` shows them, and `parcelo-server accounts create` makes one"
    )]
    NoAccount(String),
    /// Source and target of a copy have the same engine.
    #[error(
        "`copy` goes from a file to PostgreSQL, or back: within one engine use `parcelo-server backup`, or pg_dump"
    )]
    SameEngine,
    /// A key's list of addresses is too long.
    #[error("a key can have at most {max} addresses or networks; {given} were given")]
    TooManyAddresses {
        /// The maximum number.
        max: usize,
        /// The number given.
        given: usize,
    },
    /// A key was requested for all countries and for some.
    #[error("--countries '*' means every country: use it alone, or list the countries")]
    AllAndSomeCountries,
    /// The key is revoked for good.
    #[error("the API key {0} is revoked and cannot get a new secret; create a new key")]
    RevokedKey(String),
    /// No credential of a kind has this id.
    #[error("no {kind} has the id {id}; `parcelo-server {command} list` shows them")]
    NoSuchCredential {
        /// The kind of credential.
        kind: &'static str,
        /// The id that was given.
        id: String,
        /// The command for this kind.
        command: &'static str,
    },
    /// The password is missing or too easy to guess.
    #[error("a password must be one line of 12 to 200 characters, and not just spaces")]
    WeakPassword,
    /// The password cannot be read.
    #[error("cannot read the password: {0}")]
    NoPassword(io::Error),
    /// The password was typed differently the second time.
    #[error("the passwords do not match; nothing was changed")]
    PasswordsDiffer,
    /// The password cannot be hashed.
    #[error("cannot hash the password; is the machine out of memory?")]
    Password,
    /// The flags for e-mails are wrong.
    #[error(transparent)]
    Mail(#[from] MailArgsError),
    /// A shop's name or contact is not accepted.
    #[error("{}", .0.text(parcelo_types::Language::En))]
    Shop(ShopError),
    /// A webhook of the sandbox must not call this machine.
    #[error(
        "{0} To call this machine in the sandbox, add --sandbox-webhooks-allow-loopback to this command and to `parcelo-server serve`"
    )]
    WebhookToThisMachine(InvalidWebhookUrl),
    /// The webhook cannot be set up or used.
    #[error(transparent)]
    Webhook(#[from] EndpointError),
}

/// Runs the command. The future is boxed, because it is large: it holds a whole server.
pub async fn run(args: Args) -> Result<(), Failure> {
    Box::pin(run_command(args)).await
}

async fn run_command(args: Args) -> Result<(), Failure> {
    match args.command {
        Command::Serve(options) => serve::serve(options, &args.non_default_flags).await,
        Command::Config(command) => config::run(&command, &args.settings),
        Command::Mock(options) => mock::run(*options).await,
        Command::Audit(options) => audit::list(options).await,
        Command::Keys(command) => credentials::run_keys(command).await,
        Command::Carriers(command) => credentials::run_carriers(command).await,
        Command::Webhooks(command) => webhooks::run(command).await,
        Command::Tokens(command) => credentials::run_tokens(command).await,
        Command::Accounts(command) => accounts::run(command).await,
        Command::Backup(options) => backup::run(&options),
        Command::Restore(options) => restore::run(&options),
        #[cfg(feature = "postgres")]
        Command::Copy(options) => copy::run(options).await,
        Command::Vacuum(options) => vacuum::run(&options),
        Command::Verify(options) => verify::run(&options),
        Command::Legacy(options) => legacy::list(options).await,
        Command::Completions(options) => completions::print_script(&options, &mut Args::command()),
        Command::Man(options) => completions::write_pages(&options, Args::command()),
    }
}

/// Returns the advice to an operator who lost the database.
const fn lost_database_advice(cause: ReadOnlyReason) -> &'static str {
    match cause {
        ReadOnlyReason::Closed | ReadOnlyReason::Disk => {
            "the database can no longer be written. Everything acknowledged is in it; check the disk and start again"
        }
        ReadOnlyReason::Full => {
            "the database can no longer be written, because its disk is full. Everything acknowledged is in it; free space and start again"
        }
        ReadOnlyReason::Replaced => {
            "the database file was deleted or replaced while the server ran. Put it back with its -wal file, or restore a backup, and start again"
        }
        ReadOnlyReason::Unreadable => {
            "the database can no longer be read. Check the disk, restore a backup if need be, and start again"
        }
    }
}

/// Returns the secrets that hash keys and sign links: from `PARCELO_SECRET`, else the database's.
fn secrets(store: &Store) -> Result<Secrets, Failure> {
    let Some(text) = std::env::var_os(SECRET_VARIABLE) else {
        return Ok(Secrets::derive(&store.secret()));
    };
    let text = text.into_string().map_err(|_| Failure::Secret)?;
    let mut secret = [0; 32];
    if text.len() != secret.len() * 2 {
        return Err(Failure::Secret);
    }
    for (byte, digits) in secret.iter_mut().zip(text.as_bytes().chunks(2)) {
        let digits = std::str::from_utf8(digits).map_err(|_| Failure::Secret)?;
        *byte = u8::from_str_radix(digits, 16).map_err(|_| Failure::Secret)?;
    }
    Ok(Secrets::derive(&secret))
}

/// Prints the failure and returns the exit code.
pub fn fail(failure: &Failure) -> ExitCode {
    print::failure(failure);
    match failure {
        Failure::ExecFailed(code) => ExitCode::from(*code),
        _ => ExitCode::FAILURE,
    }
}
