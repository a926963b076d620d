//! The admin commands for carrier keys: on the database itself, also while a server runs on it.

use clap::{Args as ClapArgs, Subcommand};
use parcelo::Environment;

use super::{
    Failure, credentials,
    database::{DatabaseArg, open},
    print, secrets,
    shared_args::{EnvironmentArg, ListKeys, name},
};
use crate::{
    clock::{Clock, SystemClock},
    domain::{admin::NewCarrierKeyView, credentials::CarrierScope},
    ids::Ids,
    service::CredentialIssuer,
};

#[derive(Debug, Subcommand)]
pub(super) enum Carriers {
    /// Create a key; it is shown only once.
    Create(CreateCarrierKey),
    /// List the keys, without their secrets.
    List(ListKeys),
    /// Revoke a key; a running server refuses it at once.
    Revoke(RevokeCarrierKey),
}

#[derive(Debug, ClapArgs)]
pub(super) struct CreateCarrierKey {
    #[command(flatten)]
    database: DatabaseArg,
    /// The environment whose parcels the carrier reports on.
    #[arg(long, value_name = "ENVIRONMENT")]
    environment: EnvironmentArg,
    /// The carrier's name, 1-100 characters; a name that exists gets a further key.
    #[arg(long, value_parser = name)]
    name: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct RevokeCarrierKey {
    #[command(flatten)]
    options: ListKeys,
    /// The key's id, car_…
    #[arg(value_name = "ID")]
    id: String,
}

pub(super) async fn run(command: Carriers) -> Result<(), Failure> {
    match command {
        Carriers::Create(options) => create(options).await,
        Carriers::List(options) => credentials::list::<CarrierScope>(options).await,
        Carriers::Revoke(RevokeCarrierKey { options, id }) => {
            credentials::revoke::<CarrierScope>(options, id).await
        }
    }
}

async fn create(options: CreateCarrierKey) -> Result<(), Failure> {
    let ids = Ids::random();
    let store = open(&options.database, &ids).await?;
    let secrets = secrets(&store)?;
    let issuer = CredentialIssuer { store: &store, secrets: &secrets, ids: &ids };
    let (environment, now) = (Environment::from(options.environment), SystemClock.now());
    let (key, record) = issuer.issue_carrier_key(environment, options.name, now).await?;
    if options.json {
        print::secret_json(&NewCarrierKeyView::new(&key, &record))?;
    } else {
        print::new_secret(key.secret(), "key", (&record.id, &record.name))?;
    }
    Ok(())
}
