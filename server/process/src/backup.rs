//! `parcelo-server backup`: a consistent copy of the database, even while a server writes.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use serde_json::json;

use super::{
    Failure,
    database::{Database, DatabaseArg, existing_file, parse_database},
    print,
};

#[derive(Debug, ClapArgs)]
pub(super) struct Backup {
    #[command(flatten)]
    database: DatabaseArg,
    /// The file to write, as FILE or sqlite:FILE; one that exists is left alone.
    #[arg(value_name = "FILE", value_parser = parse_file)]
    file: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Parses a file name, which may have the form of `--database`.
pub(super) fn parse_file(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() {
        return Err("expected a file name".to_owned());
    }
    if !text.starts_with("sqlite:") {
        return Ok(text.into());
    }
    match parse_database(text)? {
        Database::File(file) => Ok(file),
        Database::Memory => Err("expected a file, not a database in memory".to_owned()),
        #[cfg(feature = "postgres")]
        Database::Postgres(_) => Err("expected a file".to_owned()),
    }
}

pub(super) fn run(options: &Backup) -> Result<(), Failure> {
    let bytes = parcelo_store::backup(existing_file(&options.database)?, &options.file)?;
    let file = options.file.display().to_string();
    if options.json {
        return Ok(print::json(&json!({ "file": file, "bytes": bytes }))?);
    }
    Ok(print::backup_done(&file, bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_file_or_a_database_address() {
        let table = [
            ("copy.db", "copy.db"),
            ("sqlite:copy.db", "copy.db"),
            ("sqlite:///var/copy.db", "/var/copy.db"),
            ("./sqlite:copy.db", "./sqlite:copy.db"),
        ];
        for (text, file) in table {
            assert_eq!(parse_file(text), Ok(file.into()), "{text}");
        }
        for bad in ["", "sqlite:", "sqlite::memory:"] {
            assert!(parse_file(bad).is_err(), "{bad}");
        }
    }
}
