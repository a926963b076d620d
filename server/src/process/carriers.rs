//! The admin commands for carrier keys: on the database itself, also while a server runs on it.

use parcelo::{Environment, model::time};
use serde_json::{Value, json};

use super::{
    Failure,
    args::{Carriers, CreateCarrierKey, ListKeys, RevokeCarrierKey},
    keys::{open, open_existing},
    print, secrets,
};
use crate::{
    clock::{Clock, SystemClock},
    core::CarrierKeyRecord,
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
        let (id, name) = (&record.id, &record.name);
        let key = key.secret();
        print::json(&json!({ "keyId": id, "key": key, "environment": environment, "name": name }));
    } else {
        print::new_carrier_key(&key, &record);
    }
    Ok(())
}

fn list(options: &ListKeys) -> Result<(), Failure> {
    let records = open_existing(&options.database)?.carrier_keys()?;
    if options.json {
        print::json(&records.iter().map(shown).collect());
    } else {
        print::carrier_keys(&records);
    }
    Ok(())
}

async fn revoke(options: RevokeCarrierKey) -> Result<(), Failure> {
    let store = open_existing(&options.database)?;
    let revoked = store.revoke_carrier_key(&options.id, SystemClock.now()).await?;
    let record = revoked.ok_or(Failure::NoSuchCarrierKey(options.id))?;
    if options.json {
        print::json(&shown(&record));
    } else {
        print::revoked(&record.id, &record.name);
    }
    Ok(())
}

fn shown(record: &CarrierKeyRecord) -> Value {
    json!({
        "keyId": record.id,
        "last4": record.last4,
        "environment": record.environment,
        "name": record.name,
        "createdAt": time::to_text(record.created_at.to_utc()),
        "revokedAt": record.revoked_at.map(|at| time::to_text(at.to_utc())),
    })
}
