//! `parcelo-server backup`: a copy of the database as it is at one moment, also while a server writes.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use serde_json::json;

use super::{Failure, args::DatabaseArg, keys::open_existing, print};

#[derive(Debug, ClapArgs)]
pub(super) struct Backup {
    #[command(flatten)]
    database: DatabaseArg,
    /// The file to write; one that exists is left alone.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(options: &Backup) -> Result<(), Failure> {
    let bytes = open_existing(&options.database)?.backup(&options.file)?;
    let file = options.file.display().to_string();
    if options.json {
        print::json(&json!({ "file": file, "bytes": bytes }))?;
    } else {
        print::backed_up(&file, bytes)?;
    }
    Ok(())
}
