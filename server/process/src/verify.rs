//! `parcelo-server verify`: checks a backup before it is needed.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use serde_json::{Map, json};

use super::{Failure, backup::parse_file, print};

#[derive(Debug, ClapArgs)]
pub(super) struct Verify {
    /// The backup to check, as FILE or sqlite:FILE; it is only read.
    #[arg(value_name = "FILE", value_parser = parse_file)]
    file: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(options: &Verify) -> Result<(), Failure> {
    let report = parcelo_store::verify(&options.file)?;
    let file = options.file.display().to_string();
    if options.json {
        let rows: Map<_, _> =
            report.tables.iter().map(|(name, rows)| (name.clone(), json!(rows))).collect();
        print::json(&json!({
            "file": file,
            "bytes": report.bytes,
            "rows": rows,
            "checkedRecords": report.checked_records,
            "faults": report.faults,
        }))?;
    } else {
        print::verified(&file, &report)?;
    }
    if report.faults.is_empty() {
        return Ok(());
    }
    Err(Failure::DamagedFile { file: options.file.clone(), faults: report.faults.join("; ") })
}
