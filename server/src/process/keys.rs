//! The admin commands for API keys: on the database itself, also while a server runs on it.

use parcelo::admin::MAX_IP_ADDRESSES;

use super::{
    Failure,
    args::{CountryOrAll, CreateKey, Database, DatabaseArg, Keys, ListKeys, RevokeKey, RotateKey},
    print, secrets,
};
use crate::{
    clock::{Clock, SystemClock},
    domain::{
        Countries,
        admin::{ApiKeyView, NewApiKey, RotatedApiKey},
    },
    ids::Ids,
    service::{KeyIssuer, NewKeyRequest, Rotation},
    store::Store,
};

pub(super) async fn run(command: Keys) -> Result<(), Failure> {
    match command {
        Keys::Create(options) => create(options).await,
        Keys::List(options) => list(&options),
        Keys::Rotate(options) => rotate(options).await,
        Keys::Revoke(options) => revoke(options).await,
    }
}

async fn create(options: CreateKey) -> Result<(), Failure> {
    let given = options.ip_list.len();
    if given > MAX_IP_ADDRESSES {
        return Err(Failure::TooManyAddresses { most: MAX_IP_ADDRESSES, given });
    }
    let countries = countries(&options.countries)?;
    let ids = Ids::random();
    let store = open(&options.database, &ids)?;
    let request = NewKeyRequest {
        account: options.account,
        environment: options.environment.into(),
        name: options.name,
        countries,
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
    let (records, now) = (open_existing(&options.database)?.keys()?, SystemClock.now());
    if options.json {
        print::json(&records.iter().map(|key| ApiKeyView::of(key, now)).collect::<Vec<_>>())?;
    } else {
        print::keys(&records, now)?;
    }
    Ok(())
}

async fn rotate(options: RotateKey) -> Result<(), Failure> {
    let RotateKey { which: RevokeKey { database, id, json }, overlap } = options;
    let store = open_existing(&database)?;
    let (secrets, ids, now) = (secrets(&store)?, Ids::random(), SystemClock.now());
    let issuer = KeyIssuer { store: &store, secrets: &secrets, ids: &ids };
    let (key, record) = match issuer.rotate(&id, overlap, now).await? {
        Rotation::Done(key, record) => (key, record),
        Rotation::Revoked => return Err(Failure::RevokedKey(id)),
        Rotation::Unknown => return Err(Failure::NoSuchKey(id)),
    };
    if json {
        print::secret_json(&RotatedApiKey::of(&key, &record, now))?;
    } else {
        print::rotated_key(&key, &record, now)?;
    }
    Ok(())
}

async fn revoke(options: RevokeKey) -> Result<(), Failure> {
    let store = open_existing(&options.database)?;
    let revoked = store.revoke_key(&options.id, SystemClock.now()).await?;
    let record = revoked.ok_or(Failure::NoSuchKey(options.id))?;
    if options.json {
        print::json(&ApiKeyView::of(&record, SystemClock.now()))?;
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

/// Each country once, or all of them: `*` beside others is a mistake, and which one nobody can say.
fn countries(given: &[CountryOrAll]) -> Result<Countries, Failure> {
    let mut some = Vec::new();
    for entry in given {
        match entry {
            CountryOrAll::One(country) if some.contains(country) => {}
            CountryOrAll::One(country) => some.push(*country),
            CountryOrAll::All => {}
        }
    }
    match (some.is_empty(), given.contains(&CountryOrAll::All)) {
        (true, _) => Ok(Countries::All),
        (false, false) => Ok(Countries::Only(some)),
        (false, true) => Err(Failure::AllAndSomeCountries),
    }
}
