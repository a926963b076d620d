//! The admin commands for API keys: on the database itself, also while a server runs on it.

use parcelo::admin::MAX_IP_ADDRESSES;

use super::{
    Failure,
    args::{CountryOrAll, CreateKey, Keys, RevokeKey, RotateKey},
    credentials,
    database::{open, open_existing},
    print, secrets,
};
use crate::{
    clock::{Clock, SystemClock},
    domain::{
        Countries,
        admin::{NewApiKey, RotatedApiKey},
        credentials::ApiKeyScope,
    },
    ids::Ids,
    service::{CredentialIssuer, NewKeyRequest, Rotation},
};

pub(super) async fn run(command: Keys) -> Result<(), Failure> {
    match command {
        Keys::Create(options) => create(options).await,
        Keys::List(options) => credentials::list::<ApiKeyScope>(options).await,
        Keys::Rotate(options) => rotate(options).await,
        Keys::Revoke(RevokeKey { options, id }) => {
            credentials::revoke::<ApiKeyScope>(options, id).await
        }
    }
}

async fn create(options: CreateKey) -> Result<(), Failure> {
    let given = options.ip_list.len();
    if given > MAX_IP_ADDRESSES {
        return Err(Failure::TooManyAddresses { most: MAX_IP_ADDRESSES, given });
    }
    let countries = countries(&options.countries)?;
    let ids = Ids::random();
    let store = open(&options.database, &ids).await?;
    let request = NewKeyRequest {
        account: options.account,
        environment: options.environment.into(),
        name: options.name,
        countries,
        ip_list: options.ip_list,
        rate_limit: None,
    };
    let secrets = secrets(&store)?;
    let issuer = CredentialIssuer { store: &store, secrets: &secrets, ids: &ids };
    let (key, record) = issuer.issue_api_key(request, SystemClock.now()).await?;
    if options.json {
        print::secret_json(&NewApiKey::new(&key, &record))?;
    } else {
        print::new_secret(key.secret(), "key", (&record.id, &record.name))?;
    }
    Ok(())
}

async fn rotate(options: RotateKey) -> Result<(), Failure> {
    let RotateKey { which: RevokeKey { options, id }, overlap } = options;
    let store = open_existing(&options.database).await?;
    let (secrets, ids, now) = (secrets(&store)?, Ids::random(), SystemClock.now());
    let issuer = CredentialIssuer { store: &store, secrets: &secrets, ids: &ids };
    let (key, record) = match issuer.rotate(&id, overlap, now).await? {
        Rotation::Done(key, record) => (key, record),
        Rotation::Revoked => return Err(Failure::RevokedKey(id)),
        Rotation::Unknown => return Err(Failure::NoSuchKey(id)),
    };
    if options.json {
        print::secret_json(&RotatedApiKey::new(&key, &record, now))?;
    } else {
        print::rotated_key(&key, &record, now)?;
    }
    Ok(())
}

/// Each country once, or all of them: `*` beside others is a mistake, and it is unclear which was meant.
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
