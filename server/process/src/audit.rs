//! `parcelo-server audit`: the log of changes of keys, secrets, passwords and settings, and of sign-ins.

use clap::Args as ClapArgs;
use parcelo_domain::{Millis, audit::AuditEntry};
use parcelo_store::AuditFilter;
use parcelo_types::{Language, internal::time};
use serde_json::json;

use super::{
    Failure,
    database::{DatabaseArg, find_account, open},
    print,
    shared_args::{CommonArgs, parse_day, parse_name},
};

#[derive(Debug, ClapArgs)]
pub(super) struct Audit {
    #[command(flatten)]
    database: DatabaseArg,
    /// Only entries of this account.
    #[arg(long, value_parser = parse_name)]
    account: Option<String>,
    /// Only entries on or after this day in UTC, such as 2026-11-23.
    #[arg(long, value_name = "DATE", value_parser = parse_day)]
    since: Option<Millis>,
    /// Maximum number of entries.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn list(options: Audit) -> Result<(), Failure> {
    let Audit { database, account, since, limit, json } = options;
    let store = open(&database).await?;
    let filter = match account {
        None => AuditFilter::All,
        Some(name) => AuditFilter::Account(find_account(&store, &name).await?),
    };
    let entries = store.audit_log(filter, since.unwrap_or(Millis(0)), limit).await?;
    let empty_text = "The audit log has no such entries.";
    Ok(print::list(&CommonArgs { database, json }, empty_text, entries.iter().map(row))?)
}

fn row(entry: &AuditEntry) -> (serde_json::Value, String) {
    let AuditEntry { at, account, actor, action, subject } = entry;
    let at = time::to_text(at.to_utc());
    let who = actor.text(Language::En);
    let line = format!(
        "{at}  {:<22}  {subject:<30}  {}  by {who}",
        action.code(),
        account.as_deref().unwrap_or("-")
    );
    let view = json!({
        "at": at,
        "action": action.code(),
        "subject": (!subject.is_empty()).then_some(subject),
        "account": account,
        "actor": actor.code(),
    });
    (view, line)
}
