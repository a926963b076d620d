//! `parcelo-server backup`: a consistent copy of the database, even while a server writes.

use std::{
    fs,
    num::NonZeroUsize,
    path::{Path, PathBuf},
};

use clap::Args as ClapArgs;
use parcelo_domain::Millis;
use parcelo_store::StoreError;
use parcelo_system::clock::{Clock, SystemClock};
use serde_json::json;

use super::{
    Failure,
    database::{DatabaseArg, existing_file, parse_file},
    print,
    retention::BackupFolder,
    verify::check,
};

#[derive(Debug, ClapArgs)]
pub(super) struct Backup {
    #[command(flatten)]
    database: DatabaseArg,
    /// The file to write, as FILE or sqlite:FILE; one that exists is left alone.
    #[arg(value_name = "FILE", value_parser = parse_file, required_unless_present = "folder", conflicts_with = "folder")]
    file: Option<PathBuf>,
    /// The folder to write to, under a name with the time, as parcelo-2026-11-27T10-00-00Z.db. The backup is then
    /// verified.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Keep the newest N backups of the folder, and delete older ones once the new one is verified.
    #[arg(long, value_name = "N", requires = "folder", conflicts_with = "file")]
    keep: Option<NonZeroUsize>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(options: &Backup) -> Result<(), Failure> {
    let database = existing_file(&options.database)?;
    let folder = options.folder.as_deref().map(|folder| BackupFolder::new(folder, database));
    let (file, bytes) = if let Some(folder) = &folder {
        back_up_to_folder(database, folder)?
    } else {
        // The command line requires a file unless a folder is given.
        let file = options.file.clone().unwrap_or_default();
        let bytes = parcelo_store::backup(database, &file)?;
        (file, bytes)
    };
    let mut deleted = Vec::new();
    if let Some(folder) = &folder {
        check(&file).map_err(|reason| set_aside(&file, &reason))?;
        if let Some(keep) = options.keep {
            deleted = folder.delete_oldest(&file, keep)?;
        }
    }
    if options.json {
        let view =
            json!({ "file": file.display().to_string(), "bytes": bytes, "deleted": deleted });
        return Ok(print::json(&view)?);
    }
    Ok(print::backup_done(&file.display().to_string(), bytes, &deleted)?)
}

/// Makes a backup under the name of this second, or of the next one whose name is free. Returns the file and its size.
fn back_up_to_folder(
    database: &Path,
    folder: &BackupFolder<'_>,
) -> Result<(PathBuf, u64), Failure> {
    let mut time = SystemClock.now();
    loop {
        let file = folder.new_file(time);
        match parcelo_store::backup(database, &file) {
            Err(StoreError::Exists { .. }) => time = Millis(time.0 + 1_000),
            made => return Ok((file, made?)),
        }
    }
}

/// Renames a backup that failed its check, so that it does not count as one.
fn set_aside(file: &Path, reason: &Failure) -> Failure {
    let damaged = file.with_extension("db.damaged");
    let file = fs::rename(file, &damaged).map_or_else(|_| file.to_owned(), |()| damaged);
    Failure::DamagedBackup { file, reason: reason.to_string() }
}
