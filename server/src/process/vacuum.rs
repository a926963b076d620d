//! `parcelo-server vacuum`: rewrites the database file, so that it holds nothing that was deleted.

use clap::Args as ClapArgs;
use serde_json::json;

use super::{
    Failure,
    database::{Database, DatabaseArg},
    print,
};
#[cfg(feature = "postgres")]
use crate::store::StoreError;
use crate::{ids::Ids, store::Store};

#[derive(Debug, ClapArgs)]
pub(super) struct Vacuum {
    #[command(flatten)]
    database: DatabaseArg,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(options: &Vacuum) -> Result<(), Failure> {
    let file = match &options.database.database {
        Database::Memory => return Err(Failure::MemoryOnly),
        Database::File(file) if !file.exists() => return Err(Failure::NoDatabase(file.clone())),
        Database::File(file) => file,
        #[cfg(feature = "postgres")]
        Database::Postgres(address) => {
            return Err(StoreError::OnlyFiles { database: address.to_string() }.into());
        }
    };
    let name = file.display().to_string();
    let held = Store::to_vacuum(file, Ids::random().array())?;
    if !options.json {
        print::vacuuming(&name)?;
    }
    let done = held.run()?;
    if options.json {
        print::json(
            &json!({ "file": name, "bytesBefore": done.before, "bytesAfter": done.after }),
        )?;
    } else {
        print::vacuumed(&name, done)?;
    }
    Ok(())
}
