//! Which database a command works on, and opening it beside a server that runs on it.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use clap::{Arg, Args as ClapArgs, Command, builder::TypedValueParser, error::ErrorKind};

use super::{Failure, secrets};
#[cfg(feature = "postgres")]
use crate::store::{Address, StoreError};
use crate::{domain::Secrets, ids::Ids, service::CredentialIssuer, store::Store};

#[derive(Debug, Clone, ClapArgs)]
pub(super) struct DatabaseArg {
    /// The database: `sqlite:FILE`, `sqlite::memory:` for a temporary one, or
    /// `postgres://USER@HOST:PORT/NAME` for several servers. The password comes from PGPASSWORD or
    /// a password file.
    #[arg(long, env = "PARCELO_DATABASE", default_value = "sqlite:parcelo.db", value_name = "URL", hide_env_values = true, value_parser = Unquoted(parse_database))]
    pub(super) database: Database,
    /// PostgreSQL itself, where `--database` leads to a pooler such as PgBouncer in transaction mode: it
    /// takes what is written, and the pooler what is read.
    #[cfg(feature = "postgres")]
    #[arg(long, env = "PARCELO_DATABASE_DIRECT", value_name = "URL", hide_env_values = true, value_parser = Unquoted(parse_direct))]
    pub(super) database_direct: Option<Address>,
}

#[cfg(feature = "postgres")]
impl DatabaseArg {
    /// The database at an address, with its way around a pooler.
    pub(super) fn address(&self, address: &Address) -> Address {
        match &self.database_direct {
            Some(direct) => address.clone().with_direct(direct.clone()),
            None => address.clone(),
        }
    }
}

/// A parser whose error does not quote the value, in which a password may stand.
#[derive(Debug, Clone)]
pub(super) struct Unquoted<T>(pub(super) fn(&str) -> Result<T, String>);

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Unquoted<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        let text = value.to_str().ok_or_else(|| "expected UTF-8".to_owned());
        text.and_then(self.0).map_err(|reason| {
            let name = argument.map(ToString::to_string).unwrap_or_default();
            let text = format!("invalid value for '{name}': {reason}\n");
            clap::Error::raw(ErrorKind::ValueValidation, text).with_cmd(command)
        })
    }
}

#[cfg(feature = "postgres")]
fn parse_direct(text: &str) -> Result<Address, String> {
    Address::parse(text).map_err(|error| error.to_string())
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
        return parse_direct(text).map(Box::new).map(Database::Postgres);
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
            Ok(Store::connect_for_admin(database.address(address), ids.array()).await?)
        }
    }
}

/// A database that is there: looking into one must not make it.
pub(super) async fn open_existing(database: &DatabaseArg) -> Result<Store, Failure> {
    match &database.database {
        Database::File(path) if !path.exists() => Err(Failure::NoDatabase(path.clone())),
        _ => open(database, &Ids::random()).await,
    }
}

/// The file of a database that is there, for what works on files only.
pub(super) fn existing_file(database: &DatabaseArg) -> Result<&Path, Failure> {
    match &database.database {
        Database::Memory => Err(Failure::MemoryOnly),
        Database::File(path) if !path.exists() => Err(Failure::NoDatabase(path.clone())),
        Database::File(path) => Ok(path),
        #[cfg(feature = "postgres")]
        Database::Postgres(address) => {
            Err(StoreError::OnlyFiles { database: address.to_string() }.into())
        }
    }
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
