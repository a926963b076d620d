//! The admin command that shows which keys still use the legacy API.

use parcelo_domain::legacy::DailyUsage;
use serde_json::json;

use super::{Failure, database::open, print, shared_args::CommonArgs};

pub(super) async fn list(options: CommonArgs) -> Result<(), Failure> {
    let uses = open(&options.database).await?.legacy_uses().await?;
    let row = |DailyUsage { key_id, name, day, requests }: &DailyUsage| {
        let day = day.to_string();
        let view = json!({ "keyId": key_id, "name": name, "day": day, "requests": requests });
        (view, format!("{day}  {requests:>8}  {key_id}  {name}"))
    };
    Ok(print::list(&options, "No key has used the legacy API.", uses.iter().map(row))?)
}
