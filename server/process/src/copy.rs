//! `parcelo-server copy`: copies a database of one engine to the other.

use clap::Args as ClapArgs;
use parcelo_store::{CopiedTable, transfer};
use serde_json::json;

use super::{
    Failure,
    database::{Database, RedactingParser, parse_database},
    print,
};

#[derive(Debug, ClapArgs)]
pub(super) struct Copy {
    /// The database to copy: a stopped server's, or a backup. It is left as it is.
    #[arg(long, value_name = "URL", value_parser = RedactingParser(parse_database))]
    from: Database,
    /// The new one: a file that does not exist yet, or an empty database of PostgreSQL.
    #[arg(long, value_name = "URL", value_parser = RedactingParser(parse_database))]
    to: Database,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(options: Copy) -> Result<(), Failure> {
    let mut progress = |table: &str, rows: u64| print::copy_progress(table, rows);
    let copied = match (options.from, options.to) {
        (Database::File(file), Database::Postgres(_)) if !file.exists() => {
            return Err(Failure::NoSource(file.display().to_string()));
        }
        (Database::File(file), Database::Postgres(address)) => {
            let copied = transfer::from_file(&file, (*address).clone(), &mut progress).await?;
            if let Err(error) = transfer::analyse(*address).await {
                print::analyse_warning(&error);
            }
            copied
        }
        (Database::Postgres(address), Database::File(file)) => {
            transfer::to_file(*address, &file, &mut progress).await?
        }
        (Database::Memory, _) | (_, Database::Memory) => return Err(Failure::CopyOfMemory),
        (Database::File(_), Database::File(_)) | (Database::Postgres(_), Database::Postgres(_)) => {
            return Err(Failure::SameEngine);
        }
    };
    if options.json {
        return Ok(print::json(&copied.iter().map(view).collect::<Vec<_>>())?);
    }
    Ok(print::copy_done(&copied)?)
}

fn view(table: &CopiedTable) -> serde_json::Value {
    let CopiedTable { name, source, target } = table;
    let sum = |checksum: u64| format!("{checksum:016x}");
    json!({
        "table": name,
        "rows": target.rows,
        "sourceChecksum": sum(source.checksum),
        "targetChecksum": sum(target.checksum),
    })
}
