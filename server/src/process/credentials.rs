//! The admin commands for API keys, carrier keys and admin tokens. They work on the database directly, also while a
//! server uses it.

use parcelo::{
    Environment,
    admin::{CarrierKey, MAX_IP_ADDRESSES},
    model::time,
};

use super::{
    Failure,
    credential_args::{Carriers, CountryOrAll, CreateKey, Keys, Tokens},
    database::{Opened, open},
    print,
    shared_args::ListKeys,
};
use crate::{
    clock::{Clock, Millis, SystemClock},
    domain::{
        Countries,
        audit::Actor,
        credential_views::{RotatedApiKey, ShownScope},
        credentials::{AdminScope, ApiKeyScope, CarrierScope, Credential},
        secrets::HashedKey,
    },
    service::{NewKeyRequest, Rotation},
    store::StoredScope,
};

/// A kind of credential, with the texts of its commands.
trait Kind: StoredScope + ShownScope {
    /// The name of the kind.
    const NAME: &str;
    /// The name of its secrets.
    const SECRET: &str;
    /// The name of its command.
    const COMMAND: &str;
    /// The text for an empty list.
    const NONE: &str;

    /// Returns the columns of a credential's line after its id.
    fn line(record: &Credential<Self>, state: &str, now: Millis) -> String;
}

impl Kind for ApiKeyScope {
    const NAME: &str = "API key";
    const SECRET: &str = "key";
    const COMMAND: &str = "keys";
    const NONE: &str = "No keys yet; create one with `parcelo-server keys create`.";

    fn line(record: &Credential<Self>, state: &str, now: Millis) -> String {
        let Self { tenant, account, countries, .. } = &record.scope;
        let (environment, countries) = (tenant.environment, countries.to_wire().join(","));
        let old = record.old_secret_until(now).map_or_else(String::new, |until| {
            format!("  (old secret works until {})", time::to_text(until.to_utc()))
        });
        format!(
            "{}…{}  {state:<8} {:<11} {countries:<11} {account}  {}{old}",
            environment.key_prefix(),
            record.last4,
            environment.code(),
            record.name
        )
    }
}

impl Kind for CarrierScope {
    const NAME: &str = "carrier key";
    const SECRET: &str = "key";
    const COMMAND: &str = "carriers";
    const NONE: &str = "No carrier keys yet; create one with `parcelo-server carriers create`.";

    fn line(record: &Credential<Self>, state: &str, _: Millis) -> String {
        let environment = record.scope.environment;
        let (prefix, code) = (CarrierKey::prefix(environment), environment.code());
        format!("{prefix}…{}  {state:<8} {code:<11} {}", record.last4, record.name)
    }
}

impl Kind for AdminScope {
    const NAME: &str = "admin token";
    const SECRET: &str = "token";
    const COMMAND: &str = "tokens";
    const NONE: &str = "No admin tokens yet; create one with `parcelo-server tokens create`.";

    fn line(record: &Credential<Self>, state: &str, _: Millis) -> String {
        format!("adm_…{}  {state:<8}{}", record.last4, record.name)
    }
}

pub(super) async fn run_keys(command: Keys) -> Result<(), Failure> {
    match command {
        Keys::Create(options) => create_key(options).await,
        Keys::List(options) => list::<ApiKeyScope>(options).await,
        Keys::Rotate { options, id, overlap } => rotate(options, id, overlap).await,
        Keys::Revoke { options, id } => revoke::<ApiKeyScope>(options, id).await,
    }
}

pub(super) async fn run_carriers(command: Carriers) -> Result<(), Failure> {
    match command {
        Carriers::Create { database, environment, name, json } => {
            let new = (name, Environment::from(environment));
            create::<CarrierScope>(&ListKeys { database, json }, new).await
        }
        Carriers::List(options) => list::<CarrierScope>(options).await,
        Carriers::Revoke { options, id } => revoke::<CarrierScope>(options, id).await,
    }
}

pub(super) async fn run_tokens(command: Tokens) -> Result<(), Failure> {
    match command {
        Tokens::Create { database, name, json } => {
            create::<AdminScope>(&ListKeys { database, json }, (name, AdminScope)).await
        }
        Tokens::List(options) => list::<AdminScope>(options).await,
        Tokens::Revoke { options, id } => revoke::<AdminScope>(options, id).await,
    }
}

async fn create<K: Kind>(options: &ListKeys, (name, new): (String, K::New)) -> Result<(), Failure> {
    let opened = Opened::new(&options.database).await?;
    let (secret, record) = opened.issuer().issue::<K>(name, new, SystemClock.now()).await?;
    show_new(options, &secret, &record)
}

async fn create_key(options: CreateKey) -> Result<(), Failure> {
    let given = options.ip_list.len();
    if given > MAX_IP_ADDRESSES {
        return Err(Failure::TooManyAddresses { max: MAX_IP_ADDRESSES, given });
    }
    let request = NewKeyRequest {
        countries: countries(&options.countries)?,
        account: options.account,
        environment: options.environment.into(),
        name: options.name,
        ip_list: options.ip_list,
        rate_limit: None,
    };
    let options = ListKeys { database: options.database, json: options.json };
    let opened = Opened::new(&options.database).await?;
    let (issuer, now) = (opened.issuer(), SystemClock.now());
    let (account, is_new) = issuer.account(request.account.clone(), now).await?;
    if is_new {
        print::new_account(&account.name);
    }
    let (key, record) = issuer.issue_api_key(request, now).await?;
    show_new::<ApiKeyScope>(&options, &key, &record)
}

fn show_new<K: Kind>(
    options: &ListKeys,
    secret: &K::Secret,
    record: &Credential<K>,
) -> Result<(), Failure> {
    if options.json {
        print::secret_json(&K::created(secret, record))?;
    } else {
        print::new_secret(secret.text(), K::SECRET, (&record.id, &record.name))?;
    }
    Ok(())
}

/// Lists the credentials of a kind, without their secrets.
async fn list<K: Kind>(options: ListKeys) -> Result<(), Failure> {
    let records = open(&options.database).await?.credentials::<K>().await?;
    let now = SystemClock.now();
    let row = |record: &Credential<K>| {
        let state = if record.revoked_at.is_some() { "revoked" } else { "active" };
        let line = format!("{}  {}", record.id, K::line(record, state, now));
        (K::view(record, now), line)
    };
    Ok(print::all(&options, K::NONE, records.iter().map(row))?)
}

async fn rotate(options: ListKeys, id: String, overlap: u32) -> Result<(), Failure> {
    let (opened, now) = (Opened::new(&options.database).await?, SystemClock.now());
    let (key, record) = match opened.issuer().rotate(&id, overlap, None, now).await? {
        Rotation::Done(key, record) => (key, record),
        Rotation::Revoked | Rotation::Superseded => return Err(Failure::RevokedKey(id)),
        Rotation::Unknown => return Err(unknown::<ApiKeyScope>(id)),
    };
    if options.json {
        print::secret_json(&RotatedApiKey::new(&key, &record, now))?;
    } else {
        print::rotated_key(&key, &record, now)?;
    }
    Ok(())
}

/// Revokes the credential with an id.
async fn revoke<K: Kind>(options: ListKeys, id: String) -> Result<(), Failure> {
    let (store, now) = (open(&options.database).await?, SystemClock.now());
    let revoked = store.revoke_credential::<K>(&id, now, &Actor::Command.at(now)).await?;
    let record = revoked.ok_or_else(|| unknown::<K>(id))?;
    let line = format!("{} \"{}\" is revoked.", record.id, record.name);
    Ok(print::one(&options, &K::view(&record, now), &line)?)
}

fn unknown<K: Kind>(id: String) -> Failure {
    Failure::NoSuchCredential { kind: K::NAME, id, command: K::COMMAND }
}

/// Returns each country once, or all countries. Refuses `*` beside others, since it is unclear which was meant.
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
