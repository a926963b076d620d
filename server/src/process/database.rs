//! Which database a command works on, and opening it beside a server that runs on it.

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;

use super::{Failure, secrets};
#[cfg(feature = "postgres")]
use crate::store::{Address, StoreError};
use crate::{domain::Secrets, ids::Ids, service::CredentialIssuer, store::Store};

#[derive(Debug, Clone, ClapArgs)]
pub(super) struct DatabaseArg {
    /// The database: `sqlite:FILE`, `sqlite::memory:` for a temporary one, or
    /// `postgres://USER@HOST:PORT/NAME` for several servers. The password comes from PGPASSWORD or
    /// a password file.
    #[arg(long, env = "PARCELO_DATABASE", default_value = "sqlite:parcelo.db", value_name = "URL", value_parser = parse_database)]
    pub(super) database: Database,
}

/// Where data is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Database {
    Memory,
    File(PathBuf),
    #[cfg(feature = "postgres")]
    Postgres(Box<Address>),
}

pub(super) fn parse_database(text: &str) -> Result<Database, String> {
    #[cfg(feature = "postgres")]
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        return Address::parse(text)
            .map(Box::new)
            .map(Database::Postgres)
            .map_err(|error| error.to_string());
    }
    match text.strip_prefix("sqlite:") {
        Some(":memory:") => Ok(Database::Memory),
        Some(file) if !matches!(file, "" | "//") => {
            Ok(Database::File(file.strip_prefix("//").unwrap_or(file).into()))
        }
        Some(_) | None => {
            Err("expected sqlite:FILE, sqlite::memory: or postgres://USER@HOST:PORT/NAME"
                .to_owned())
        }
    }
}

/// Opens the database, and makes it where it is not there yet.
pub(super) async fn open(database: &DatabaseArg, ids: &Ids) -> Result<Store, Failure> {
    match &database.database {
        Database::Memory => Err(Failure::MemoryOnly),
        Database::File(path) => Ok(Store::open_for_admin(path, ids.array())?),
        #[cfg(feature = "postgres")]
        Database::Postgres(address) => {
            Ok(Store::connect_for_admin(*address.clone(), ids.array()).await?)
        }
    }
}

/// A database that is there: looking into one must not make it.
pub(super) async fn open_existing(database: &DatabaseArg) -> Result<Store, Failure> {
    match &database.database {
        Database::File(path) if !path.exists() => Err(no_file(path)),
        #[cfg(feature = "postgres")]
        Database::Postgres(address) if !Store::exists(*address.clone()).await? => {
            Err(Failure::NoDatabase(address.to_string()))
        }
        _ => open(database, &Ids::random()).await,
    }
}

/// The file of a database that is there, for what works on files only.
pub(super) fn existing_file(database: &DatabaseArg) -> Result<&Path, Failure> {
    match &database.database {
        Database::Memory => Err(Failure::MemoryOnly),
        Database::File(path) if !path.exists() => Err(no_file(path)),
        Database::File(path) => Ok(path),
        #[cfg(feature = "postgres")]
        Database::Postgres(address) => {
            Err(StoreError::OnlyFiles { database: address.to_string() }.into())
        }
    }
}

fn no_file(path: &Path) -> Failure {
    Failure::NoDatabase(path.display().to_string())
}

/// A database with what credentials are made of.
pub(super) struct Opened {
    store: Store,
    secrets: Secrets,
    ids: Ids,
}

impl Opened {
    /// The database, made where it is not there yet.
    pub(super) async fn new(database: &DatabaseArg) -> Result<Self, Failure> {
        let ids = Ids::random();
        let store = open(database, &ids).await?;
        Ok(Self { secrets: secrets(&store)?, store, ids })
    }

    /// A database that is there.
    pub(super) async fn existing(database: &DatabaseArg) -> Result<Self, Failure> {
        let store = open_existing(database).await?;
        Ok(Self { secrets: secrets(&store)?, store, ids: Ids::random() })
    }

    pub(super) fn issuer(&self) -> CredentialIssuer<'_> {
        CredentialIssuer { store: &self.store, secrets: &self.secrets, ids: &self.ids }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_a_file_or_memory() {
        assert_eq!(parse_database("sqlite:parcelo.db"), Ok(Database::File("parcelo.db".into())));
        assert_eq!(parse_database("sqlite:///var/p.db"), Ok(Database::File("/var/p.db".into())));
        assert_eq!(parse_database("sqlite::memory:"), Ok(Database::Memory));
        assert_eq!(parse_database("sqlite:////var/p.db"), Ok(Database::File("//var/p.db".into())));
        assert!(parse_database("sqlite://").is_err());
        assert!(parse_database("mysql://x").is_err() && parse_database("sqlite:").is_err());
    }
}
