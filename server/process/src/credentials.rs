//! The admin commands for API keys, carrier keys and admin tokens. They open the database directly, even while a server
//! uses it.

use parcelo_domain::{
    Countries, Millis,
    audit::Actor,
    credential_views::{RotatedApiKey, ViewableScope},
    credentials::{AdminScope, ApiKeyScope, CarrierScope, Credential},
    key_uses::{LastUseDays, date_text},
    secrets::HashedKey,
};
use parcelo_service::service::{NewKeyRequest, RotationOutcome};
use parcelo_store::{Store, StoredScope};
use parcelo_system::clock::{Clock, SystemClock};
use parcelo_types::{Environment, internal::time};
use parcelo_wire::{CarrierKey, MAX_IP_ADDRESSES};

use super::{
    Failure,
    credential_args::{Carriers, CountryOrAll, CreateKey, Keys, Tokens},
    database::{AdminDatabase, open},
    print,
    shared_args::CommonArgs,
};

/// A kind of credential, with the texts of its commands.
trait CredentialKind: StoredScope + ViewableScope {
    /// The name of the kind.
    const NAME: &str;
    /// The name of its secrets.
    const SECRET_NAME: &str;
    /// The name of its command.
    const COMMAND: &str;
    /// The text for an empty list.
    const EMPTY_TEXT: &str;
    /// `true` if the day of its last use is recorded.
    const HAS_LAST_USE: bool = false;

    /// Returns the columns of a credential's line after its id.
    fn format_line(
        record: &Credential<Self>,
        state: &str,
        uses: &LastUseDays,
        now: Millis,
    ) -> String;
}

impl CredentialKind for ApiKeyScope {
    const NAME: &str = "API key";
    const SECRET_NAME: &str = "key";
    const COMMAND: &str = "keys";
    const EMPTY_TEXT: &str = "No keys yet; create one with `parcelo-server keys create`.";
    const HAS_LAST_USE: bool = true;

    fn format_line(
        record: &Credential<Self>,
        state: &str,
        uses: &LastUseDays,
        now: Millis,
    ) -> String {
        let last_use = uses
            .get(&record.row)
            .map_or_else(|| "never used".to_owned(), |day| format!("used {}", date_text(*day)));
        let Self { tenant, account, countries, .. } = &record.scope;
        let (environment, countries) = (tenant.environment, countries.to_wire().join(","));
        let old = record.old_secret_until(now).map_or_else(String::new, |until| {
            format!("  (old secret works until {})", time::to_text(until.to_utc()))
        });
        format!(
            "{}…{}  {state:<8} {:<11} {countries:<11} {last_use:<15} {account}  {}{old}",
            environment.key_prefix(),
            record.last4,
            environment.code(),
            record.name
        )
    }
}

impl CredentialKind for CarrierScope {
    const NAME: &str = "carrier key";
    const SECRET_NAME: &str = "key";
    const COMMAND: &str = "carriers";
    const EMPTY_TEXT: &str =
        "No carrier keys yet; create one with `parcelo-server carriers create`.";

    fn format_line(record: &Credential<Self>, state: &str, _: &LastUseDays, _: Millis) -> String {
        let environment = record.scope.environment;
        let (prefix, code) = (CarrierKey::prefix(environment), environment.code());
        format!("{prefix}…{}  {state:<8} {code:<11} {}", record.last4, record.name)
    }
}

impl CredentialKind for AdminScope {
    const NAME: &str = "admin token";
    const SECRET_NAME: &str = "token";
    const COMMAND: &str = "tokens";
    const EMPTY_TEXT: &str = "No admin tokens yet; create one with `parcelo-server tokens create`.";

    fn format_line(record: &Credential<Self>, state: &str, _: &LastUseDays, _: Millis) -> String {
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
            create::<CarrierScope>(&CommonArgs { database, json }, new).await
        }
        Carriers::List(options) => list::<CarrierScope>(options).await,
        Carriers::Revoke { options, id } => revoke::<CarrierScope>(options, id).await,
    }
}

pub(super) async fn run_tokens(command: Tokens) -> Result<(), Failure> {
    match command {
        Tokens::Create { database, name, json } => {
            create::<AdminScope>(&CommonArgs { database, json }, (name, AdminScope)).await
        }
        Tokens::List(options) => list::<AdminScope>(options).await,
        Tokens::Revoke { options, id } => revoke::<AdminScope>(options, id).await,
    }
}

async fn create<K: CredentialKind>(
    options: &CommonArgs,
    (name, new): (String, K::New),
) -> Result<(), Failure> {
    let admin = AdminDatabase::new(&options.database).await?;
    let (secret, record) = admin.issuer().issue::<K>(name, new, SystemClock.now()).await?;
    print_new_credential(options, &secret, &record)
}

async fn create_key(options: CreateKey) -> Result<(), Failure> {
    let count = options.ip_list.len();
    if count > MAX_IP_ADDRESSES {
        return Err(Failure::TooManyAddresses { max: MAX_IP_ADDRESSES, given: count });
    }
    let request = NewKeyRequest {
        countries: to_countries(&options.countries)?,
        account: options.account,
        environment: options.environment.into(),
        name: options.name,
        ip_list: options.ip_list,
        rate_limit: None,
    };
    let options = CommonArgs { database: options.database, json: options.json };
    let admin = AdminDatabase::new(&options.database).await?;
    let (issuer, now) = (admin.issuer(), SystemClock.now());
    let (account, is_new) = issuer.find_or_create_account(request.account.clone(), now).await?;
    if is_new {
        print::new_account(&account.name);
    }
    let (key, record) = issuer.issue_api_key(request, now).await?;
    print_new_credential::<ApiKeyScope>(&options, &key, &record)
}

fn print_new_credential<K: CredentialKind>(
    options: &CommonArgs,
    secret: &K::Secret,
    record: &Credential<K>,
) -> Result<(), Failure> {
    if options.json {
        return Ok(print::secret_json(&K::created(secret, record))?);
    }
    Ok(print::new_secret(secret.text(), K::SECRET_NAME, (&record.id, &record.name))?)
}

/// Lists the credentials of a kind, without their secrets.
async fn list<K: CredentialKind>(options: CommonArgs) -> Result<(), Failure> {
    let store = open(&options.database).await?;
    let (records, uses) = (store.credentials::<K>().await?, last_uses::<K>(&store).await?);
    let now = SystemClock.now();
    let row = |record: &Credential<K>| {
        let state = if record.revoked_at.is_some() { "revoked" } else { "active" };
        let line = format!("{}  {}", record.id, K::format_line(record, state, &uses, now));
        (K::view(record, &uses, now), line)
    };
    Ok(print::list(&options, K::EMPTY_TEXT, records.iter().map(row))?)
}

async fn rotate(options: CommonArgs, id: String, overlap: u32) -> Result<(), Failure> {
    let (admin, now) = (AdminDatabase::new(&options.database).await?, SystemClock.now());
    let (key, record) = match admin.issuer().rotate(&id, overlap, None, now).await? {
        RotationOutcome::Done(key, record) => (key, record),
        RotationOutcome::Revoked | RotationOutcome::Superseded => {
            return Err(Failure::RevokedKey(id));
        }
        RotationOutcome::Unknown => return Err(unknown_id::<ApiKeyScope>(id)),
    };
    if options.json {
        return Ok(print::secret_json(&RotatedApiKey::new(&key, &record, now))?);
    }
    Ok(print::rotated_key(&key, &record, now)?)
}

/// Revokes the credential with an id.
async fn revoke<K: CredentialKind>(options: CommonArgs, id: String) -> Result<(), Failure> {
    let (store, now) = (open(&options.database).await?, SystemClock.now());
    let revoked = store.revoke_credential::<K>(&id, now, &Actor::Command.at(now)).await?;
    let record = revoked.ok_or_else(|| unknown_id::<K>(id))?;
    let line = format!("{} \"{}\" is revoked.", record.id, record.name);
    let uses = last_uses::<K>(&store).await?;
    Ok(print::item(&options, &K::view(&record, &uses, now), &line)?)
}

/// Returns the days of last uses that are recorded for a kind of credential. A running server writes those of the last
/// minute later.
async fn last_uses<K: CredentialKind>(store: &Store) -> Result<LastUseDays, Failure> {
    Ok(if K::HAS_LAST_USE { store.key_uses(None).await? } else { LastUseDays::new() })
}

fn unknown_id<K: CredentialKind>(id: String) -> Failure {
    Failure::NoSuchCredential { kind: K::NAME, id, command: K::COMMAND }
}

/// Returns each country once, or all countries. Refuses `*` together with others, since it is unclear which was meant.
fn to_countries(entries: &[CountryOrAll]) -> Result<Countries, Failure> {
    let mut listed = Vec::new();
    for entry in entries {
        if let CountryOrAll::One(country) = entry
            && !listed.contains(country)
        {
            listed.push(*country);
        }
    }
    match (listed.is_empty(), entries.contains(&CountryOrAll::All)) {
        (true, _) => Ok(Countries::All),
        (false, false) => Ok(Countries::Only(listed)),
        (false, true) => Err(Failure::AllAndSomeCountries),
    }
}
