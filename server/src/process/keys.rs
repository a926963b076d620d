//! The admin commands for API keys: on the database itself, also while a server runs on it.

use parcelo::rules::MOST_ADDRESSES;

use super::{
    Failure,
    args::{CountryOrAll, CreateKey, Database, DatabaseArg, Keys, ListKeys, RevokeKey},
    print, secrets,
};
use crate::{
    clock::{Clock, SystemClock},
    core::{
        Countries,
        admin::{ApiKeyView, NewApiKey},
    },
    ids::Ids,
    service::{KeyIssuer, NewKeyRequest},
    store::Store,
};

pub(super) async fn run(command: Keys) -> Result<(), Failure> {
    match command {
        Keys::Create(options) => create(options).await,
        Keys::List(options) => list(&options),
        Keys::Revoke(options) => revoke(options).await,
    }
}

async fn create(options: CreateKey) -> Result<(), Failure> {
    let given = options.ip_list.len();
    if given > MOST_ADDRESSES {
        return Err(Failure::TooManyAddresses { most: MOST_ADDRESSES, given });
    }
    let ids = Ids::random();
    let store = open(&options.database, &ids)?;
    let request = NewKeyRequest {
        account: options.account,
        environment: options.environment.into(),
        name: options.name,
        countries: countries(&options.countries),
        ip_list: options.ip_list,
        rate_limit: None,
    };
    let secrets = secrets(&store)?;
    let issuer = KeyIssuer { store: &store, secrets: &secrets, ids: &ids };
    let (key, record) = issuer.issue(request, SystemClock.now()).await?;
    if options.json {
        print::secret_json(&NewApiKey::of(&key, &record))?;
    } else {
        print::new_key(&key, &record)?;
    }
    Ok(())
}

fn list(options: &ListKeys) -> Result<(), Failure> {
    let records = open_existing(&options.database)?.keys()?;
    if options.json {
        print::json(&records.iter().map(ApiKeyView::from).collect::<Vec<_>>())?;
    } else {
        print::keys(&records)?;
    }
    Ok(())
}

async fn revoke(options: RevokeKey) -> Result<(), Failure> {
    let store = open_existing(&options.database)?;
    let revoked = store.revoke_key(&options.id, SystemClock.now()).await?;
    let record = revoked.ok_or(Failure::NoSuchKey(options.id))?;
    if options.json {
        print::json(&ApiKeyView::from(&record))?;
    } else {
        print::revoked(&record.id, &record.name)?;
    }
    Ok(())
}

pub(super) fn open(database: &DatabaseArg, ids: &Ids) -> Result<Store, Failure> {
    match &database.database {
        Database::Memory => Err(Failure::MemoryOnly),
        Database::File(path) => Ok(Store::open_for_admin(path, ids.array())?),
    }
}

/// A database that is there: looking into one must not make it.
pub(super) fn open_existing(database: &DatabaseArg) -> Result<Store, Failure> {
    match &database.database {
        Database::File(path) if !path.exists() => Err(Failure::NoDatabase(path.clone())),
        Database::File(_) | Database::Memory => open(database, &Ids::random()),
    }
}

fn countries(given: &[CountryOrAll]) -> Countries {
    let mut some = Vec::new();
    for entry in given {
        match entry {
            CountryOrAll::All => return Countries::All,
            CountryOrAll::One(country) if some.contains(country) => {}
            CountryOrAll::One(country) => some.push(*country),
        }
    }
    Countries::Only(some)
}
