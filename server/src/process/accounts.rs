//! The admin commands for accounts: on the database itself, also while a server runs on it.

use clap::Subcommand;

use super::{Failure, password};

#[derive(Debug, Subcommand)]
pub(super) enum Accounts {
    /// Set the password with which an account signs in to the dashboard; its sessions end.
    Password(password::SetPassword),
}

pub(super) async fn run(command: Accounts) -> Result<(), Failure> {
    match command {
        Accounts::Password(options) => password::set(options).await,
    }
}
