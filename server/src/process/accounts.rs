//! The admin commands for accounts: on the database itself, also while a server runs on it.

use clap::{Args as ClapArgs, Subcommand};

use super::{
    Failure,
    database::{DatabaseArg, Opened, open_existing},
    password, print,
    shared_args::{ListKeys, name},
};
use crate::{
    clock::{Clock, SystemClock},
    domain::{AccountRecord, admin::AccountView},
};

#[derive(Debug, Subcommand)]
pub(super) enum Accounts {
    /// Create an account; an existing one stays as it is.
    Create(CreateAccount),
    /// List the accounts.
    List(ListKeys),
    /// Set the password with which an account signs in to the dashboard; its sessions end.
    Password(password::SetPassword),
}

#[derive(Debug, ClapArgs)]
pub(super) struct CreateAccount {
    #[command(flatten)]
    database: DatabaseArg,
    /// Its name, 1-100 characters.
    #[arg(value_parser = name)]
    name: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(command: Accounts) -> Result<(), Failure> {
    match command {
        Accounts::Create(options) => create(options).await,
        Accounts::List(options) => list(options).await,
        Accounts::Password(options) => password::set(options).await,
    }
}

async fn create(CreateAccount { database, name, json }: CreateAccount) -> Result<(), Failure> {
    let opened = Opened::new(&database).await?;
    let (account, _) = opened.issuer().account(name, SystemClock.now()).await?;
    let (view, line) = row(&account);
    Ok(print::one(&ListKeys { database, json }, &view, &line)?)
}

async fn list(options: ListKeys) -> Result<(), Failure> {
    let accounts = open_existing(&options.database).await?.accounts().await?;
    let none = "No accounts yet; create one with `parcelo-server accounts create NAME`.";
    Ok(print::all(&options, none, accounts.iter().map(row))?)
}

fn row(account: &AccountRecord) -> (AccountView, String) {
    (account.into(), format!("{}  {}", account.id, account.name))
}
