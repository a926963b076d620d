//! What the admin commands for API keys, carrier keys and admin tokens have in common: showing a new
//! secret, listing, revoking.

use parcelo::{admin::CarrierKey, model::time};
use serde::Serialize;

use super::{Failure, database::open_existing, print, shared_args::ListKeys};
use crate::{
    clock::{Clock, Millis, SystemClock},
    domain::{
        admin::{ApiKeyView, CarrierKeyView, TokenView},
        credentials::{AdminScope, ApiKeyScope, CarrierScope, Credential},
    },
    store::StoredScope,
};

/// A kind of credential as its commands show it.
pub(super) trait Kind: StoredScope {
    /// Its JSON.
    type View: Serialize;
    /// What is printed when there is none of it.
    const NONE: &str;

    /// It as JSON.
    fn view(record: &Credential<Self>, now: Millis) -> Self::View;
    /// It between its id and its name, on one line.
    fn line(record: &Credential<Self>, state: &str, now: Millis) -> String;
    /// The error when none has the id.
    fn unknown(id: String) -> Failure;
}

impl Kind for ApiKeyScope {
    type View = ApiKeyView;
    const NONE: &str = "No keys yet; create one with `parcelo-server keys create`.";

    fn view(record: &Credential<Self>, now: Millis) -> ApiKeyView {
        ApiKeyView::new(record, now)
    }

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

    fn unknown(id: String) -> Failure {
        Failure::NoSuchKey(id)
    }
}

impl Kind for CarrierScope {
    type View = CarrierKeyView;
    const NONE: &str = "No carrier keys yet; create one with `parcelo-server carriers create`.";

    fn view(record: &Credential<Self>, _: Millis) -> CarrierKeyView {
        record.into()
    }

    fn line(record: &Credential<Self>, state: &str, _: Millis) -> String {
        let environment = record.scope.environment;
        let (prefix, code) = (CarrierKey::prefix(environment), environment.code());
        format!("{prefix}…{}  {state:<8} {code:<11} {}", record.last4, record.name)
    }

    fn unknown(id: String) -> Failure {
        Failure::NoSuchCarrierKey(id)
    }
}

impl Kind for AdminScope {
    type View = TokenView;
    const NONE: &str = "No admin tokens yet; create one with `parcelo-server tokens create`.";

    fn view(record: &Credential<Self>, _: Millis) -> TokenView {
        record.into()
    }

    fn line(record: &Credential<Self>, state: &str, _: Millis) -> String {
        format!("adm_…{}  {state:<8}{}", record.last4, record.name)
    }

    fn unknown(id: String) -> Failure {
        Failure::NoSuchToken(id)
    }
}

/// Lists a kind without its secrets.
pub(super) async fn list<K: Kind>(options: ListKeys) -> Result<(), Failure> {
    let records = open_existing(&options.database).await?.credentials::<K>().await?;
    let now = SystemClock.now();
    if options.json {
        print::json(&records.iter().map(|record| K::view(record, now)).collect::<Vec<_>>())?;
    } else {
        let line = |record: &Credential<K>| {
            let state = if record.revoked_at.is_some() { "revoked" } else { "active" };
            format!("{}  {}", record.id, K::line(record, state, now))
        };
        print::list(K::NONE, records.iter().map(line))?;
    }
    Ok(())
}

/// Revokes the one with an id.
pub(super) async fn revoke<K: Kind>(options: ListKeys, id: String) -> Result<(), Failure> {
    let (store, now) = (open_existing(&options.database).await?, SystemClock.now());
    let record = store.revoke_credential::<K>(&id, now).await?.ok_or_else(|| K::unknown(id))?;
    if options.json {
        print::json(&K::view(&record, now))?;
    } else {
        print::revoked(&record.id, &record.name)?;
    }
    Ok(())
}
