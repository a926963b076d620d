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
    domain::admin::AccountView,
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

async fn create(options: CreateAccount) -> Result<(), Failure> {
    let opened = Opened::new(&options.database)?;
    let (account, _) = opened.issuer().account(options.name, SystemClock.now()).await?;
    if options.json {
        print::json(&AccountView::from(&account))?;
    } else {
        print::accounts(&[account])?;
    }
    Ok(())
}

async fn list(options: ListKeys) -> Result<(), Failure> {
    let accounts = open_existing(&options.database)?.accounts().await?;
    if options.json {
        print::json(&accounts.iter().map(AccountView::from).collect::<Vec<_>>())?;
    } else {
        print::accounts(&accounts)?;
    }
    Ok(())
}
