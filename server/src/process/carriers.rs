//! The admin commands for carrier keys: on the database itself, also while a server runs on it.

use parcelo::Environment;

use super::{
    Failure,
    args::{Carriers, CreateCarrierKey, ListKeys, RevokeCarrierKey},
    keys::{open, open_existing},
    print, secrets,
};
use crate::{
    clock::{Clock, SystemClock},
    core::admin::{CarrierKeyView, NewCarrierKeyView},
    ids::Ids,
    service::KeyIssuer,
};

pub(super) async fn run(command: Carriers) -> Result<(), Failure> {
    match command {
        Carriers::Create(options) => create(options).await,
        Carriers::List(options) => list(&options),
        Carriers::Revoke(options) => revoke(options).await,
    }
}

async fn create(options: CreateCarrierKey) -> Result<(), Failure> {
    let ids = Ids::random();
    let store = open(&options.database, &ids)?;
    let secrets = secrets(&store)?;
    let issuer = KeyIssuer { store: &store, secrets: &secrets, ids: &ids };
    let (environment, now) = (Environment::from(options.environment), SystemClock.now());
    let (key, record) = issuer.issue_for_carrier(environment, options.name, now).await?;
    if options.json {
        print::secret_json(&NewCarrierKeyView::of(&key, &record))?;
    } else {
        print::new_carrier_key(&key, &record)?;
    }
    Ok(())
}

fn list(options: &ListKeys) -> Result<(), Failure> {
    let records = open_existing(&options.database)?.carrier_keys()?;
    if options.json {
        print::json(&records.iter().map(CarrierKeyView::from).collect::<Vec<_>>())?;
    } else {
        print::carrier_keys(&records)?;
    }
    Ok(())
}

async fn revoke(options: RevokeCarrierKey) -> Result<(), Failure> {
    let store = open_existing(&options.database)?;
    let revoked = store.revoke_carrier_key(&options.id, SystemClock.now()).await?;
    let record = revoked.ok_or(Failure::NoSuchCarrierKey(options.id))?;
    if options.json {
        print::json(&CarrierKeyView::from(&record))?;
    } else {
        print::revoked(&record.id, &record.name)?;
    }
    Ok(())
}
