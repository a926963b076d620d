//! The admin commands for admin tokens: on the database itself, also while a server runs.

use clap::{Args as ClapArgs, Subcommand};

use super::{
    Failure, credentials,
    database::{DatabaseArg, open},
    print, secrets,
    shared_args::{ListKeys, name},
};
use crate::{
    clock::{Clock, SystemClock},
    domain::{admin::NewTokenView, credentials::AdminScope},
    ids::Ids,
    service::CredentialIssuer,
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
    options: ListKeys,
    /// The token's id, adt_…
    #[arg(value_name = "TOKENID")]
    id: String,
}

pub(super) async fn run(command: Tokens) -> Result<(), Failure> {
    match command {
        Tokens::Create(options) => create(options).await,
        Tokens::List(options) => credentials::list::<AdminScope>(options).await,
        Tokens::Revoke(RevokeToken { options, id }) => {
            credentials::revoke::<AdminScope>(options, id).await
        }
    }
}

async fn create(options: CreateToken) -> Result<(), Failure> {
    let ids = Ids::random();
    let store = open(&options.database, &ids).await?;
    let secrets = secrets(&store)?;
    let issuer = CredentialIssuer { store: &store, secrets: &secrets, ids: &ids };
    let (token, record) = issuer.issue_admin_token(options.name, SystemClock.now()).await?;
    if options.json {
        print::secret_json(&NewTokenView::new(&token, &record))?;
    } else {
        print::new_secret(token.secret(), "token", (&record.id, &record.name))?;
    }
    Ok(())
}
