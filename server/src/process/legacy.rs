//! The admin command that shows who still uses the legacy API.

use serde_json::json;

use super::{Failure, database::open_existing, print, shared_args::ListKeys};

pub(super) async fn list(options: ListKeys) -> Result<(), Failure> {
    let uses = open_existing(&options.database).await?.legacy_uses().await?;
    if options.json {
        let shown = uses.iter().map(|one| {
            json!({ "keyId": one.key_id, "name": one.name, "day": one.day.to_string(), "requests": one.requests })
        });
        print::json(&shown.collect::<Vec<_>>())?;
    } else {
        print::legacy_uses(&uses)?;
    }
    Ok(())
}
