//! `parcelo-server verify`: checks a backup before it is needed.

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use parcelo_store::FileReport;
use serde_json::{Map, json};

use super::{Failure, database::parse_file, print};

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
        print::raw(describe(&file, &report).as_bytes())?;
    }
    require_sound(&options.file, &report)
}

/// Returns the contents of a checked file, a line for each table. Its faults are printed as the failure.
fn describe(file: &str, report: &FileReport) -> String {
    let FileReport { bytes, tables, checked_records, faults } = report;
    let mut lines =
        vec![format!("{file}: {bytes} bytes, {checked_records} idempotency records looked up")];
    let filled = tables.iter().filter(|(_, rows)| *rows > 0);
    lines.extend(filled.map(|(table, rows)| format!("{table:<23} {rows}")));
    lines.extend(report.set_aside().map(|(table, rows)| {
        format!(
            "{table}: a start found this list of idempotency keys damaged, set it aside (rows: {rows}) and wrote it again. \
             Nothing is lost, but check the disk of the database."
        )
    }));
    if faults.is_empty() {
        lines.push("No fault was found.".to_owned());
    }
    lines.join("\n") + "\n"
}

/// Checks a backup for another command, without output.
pub(super) fn check(file: &Path) -> Result<(), Failure> {
    require_sound(file, &parcelo_store::verify(file)?)
}

fn require_sound(file: &Path, report: &FileReport) -> Result<(), Failure> {
    if report.faults.is_empty() {
        return Ok(());
    }
    Err(Failure::DamagedFile { file: file.to_owned(), faults: report.faults.join("; ") })
}
