//! `parcelo-server vacuum`: rewrites the database file without any deleted data.

use clap::Args as ClapArgs;
use parcelo_store::Store;
use parcelo_system::ids::Ids;
use serde_json::json;

use super::{
    Failure,
    database::{DatabaseArg, existing_file},
    print,
};

#[derive(Debug, ClapArgs)]
pub(super) struct Vacuum {
    #[command(flatten)]
    database: DatabaseArg,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(options: &Vacuum) -> Result<(), Failure> {
    let file = existing_file(&options.database)?;
    let name = file.display().to_string();
    let vacuum = Store::lock_for_vacuum(file, Ids::random().array())?;
    if !options.json {
        print::vacuum_started(&name)?;
    }
    let sizes = vacuum.run()?;
    if !options.json {
        return Ok(print::vacuum_done(&name, sizes)?);
    }
    let view = json!({ "file": name, "bytesBefore": sizes.before, "bytesAfter": sizes.after });
    Ok(print::json(&view)?)
}
