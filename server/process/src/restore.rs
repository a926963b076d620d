//! `parcelo-server restore`: puts a backup in the place of the database file.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use parcelo_system::clock::{Clock, SystemClock};
use serde_json::json;

use super::{
    Failure,
    database::{DatabaseArg, database_file, parse_file},
    print,
    retention::time_in_name,
    verify::check,
};

#[derive(Debug, ClapArgs)]
pub(super) struct Restore {
    #[command(flatten)]
    database: DatabaseArg,
    /// The backup, as FILE or sqlite:FILE; it is verified, and left as it is.
    #[arg(value_name = "BACKUP", value_parser = parse_file)]
    backup: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(options: &Restore) -> Result<(), Failure> {
    let file = database_file(&options.database)?;
    check(&options.backup)?;
    let suffix = format!(".before-restore-{}", time_in_name(SystemClock.now()));
    let report = parcelo_store::restore(&options.backup, file, &suffix)?;
    let file = file.display().to_string();
    let moved: Vec<_> = report.moved_aside.iter().map(|file| file.display().to_string()).collect();
    if options.json {
        let view = json!({ "file": file, "bytes": report.bytes, "movedAside": moved });
        return Ok(print::json(&view)?);
    }
    Ok(print::restore_done(&file, report.bytes, &moved)?)
}
