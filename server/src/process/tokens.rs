//! The admin commands for admin tokens: on the database itself, also while a server runs.

use clap::{Args as ClapArgs, Subcommand};

use super::{
    Failure,
    database::{DatabaseArg, open, open_existing},
    print, secrets,
    shared_args::{ListKeys, name},
};
use crate::{
    clock::{Clock, SystemClock},
    domain::admin::{NewTokenView, TokenView},
    ids::Ids,
    service::KeyIssuer,
};

#[derive(Debug, Subcommand)]
pub(super) enum Tokens {
    /// Create a token for the admin API; it is shown only once.
    Create(CreateToken),
    /// List the tokens, without their secrets.
    List(ListKeys),
    /// Revoke a token; a running server refuses it at once.
    Revoke(RevokeToken),
}

#[derive(Debug, ClapArgs)]
pub(super) struct CreateToken {
    #[command(flatten)]
    database: DatabaseArg,
    /// A name for people, 1-100 characters.
    #[arg(long, value_parser = name)]
    name: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct RevokeToken {
    #[command(flatten)]
    database: DatabaseArg,
    /// The token's id, adt_…
    #[arg(value_name = "TOKENID")]
    id: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(command: Tokens) -> Result<(), Failure> {
    match command {
        Tokens::Create(options) => create(options).await,
        Tokens::List(options) => list(&options),
        Tokens::Revoke(options) => revoke(options).await,
    }
}

async fn create(options: CreateToken) -> Result<(), Failure> {
    let ids = Ids::random();
    let store = open(&options.database, &ids)?;
    let secrets = secrets(&store)?;
    let issuer = KeyIssuer { store: &store, secrets: &secrets, ids: &ids };
    let (token, record) = issuer.issue_token(options.name, SystemClock.now()).await?;
    if options.json {
        print::secret_json(&NewTokenView::of(&token, &record))?;
    } else {
        print::new_token(&token, &record)?;
    }
    Ok(())
}

fn list(options: &ListKeys) -> Result<(), Failure> {
    let records = open_existing(&options.database)?.tokens()?;
    if options.json {
        print::json(&records.iter().map(TokenView::from).collect::<Vec<_>>())?;
    } else {
        print::tokens(&records)?;
    }
    Ok(())
}

async fn revoke(options: RevokeToken) -> Result<(), Failure> {
    let store = open_existing(&options.database)?;
    let revoked = store.revoke_token(&options.id, SystemClock.now()).await?;
    let record = revoked.ok_or(Failure::NoSuchToken(options.id))?;
    if options.json {
        print::json(&TokenView::from(&record))?;
    } else {
        print::revoked(&record.id, &record.name)?;
    }
    Ok(())
}
