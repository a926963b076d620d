//! The database that a command works on, which it can open while a server uses it.

use std::{
    ffi::OsStr,
    fmt,
    path::{Path, PathBuf},
};

use clap::{Arg, Args as ClapArgs, Command, builder::TypedValueParser, error::ErrorKind};
use parcelo_domain::{AccountRowId, Secrets, audit::Actor};
use parcelo_service::service::CredentialIssuer;
use parcelo_system::{
    clock::{Clock, SystemClock},
    ids::Ids,
};
use url::Url;

use super::{Failure, secrets};
use crate::shell;
use parcelo_store::Store;
#[cfg(feature = "postgres")]
use parcelo_store::{Address, StoreError};

#[derive(Debug, Clone, ClapArgs)]
pub(super) struct DatabaseArg {
    /// The database: `sqlite:FILE`, `sqlite::memory:` for a temporary one, or
    /// `postgres://USER@HOST:PORT/NAME` for several servers. The password comes from PGPASSWORD or
    /// a password file.
    #[arg(long, env = "PARCELO_DATABASE", default_value = "sqlite:parcelo.db", value_name = "URL", hide_env_values = true, value_parser = RedactingParser(parse_database))]
    pub(super) database: Database,
}

impl DatabaseArg {
    /// Returns the options with which another command finds the same database in any folder, quoted for a shell, or
    /// `None` for a database in memory. A password must be supplied again.
    pub(super) fn to_options(&self) -> Option<String> {
        match &self.database {
            Database::Memory => None,
            Database::File(file) => {
                let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
                Some(format!("--database {}", shell::quoted(&format!("sqlite:{}", file.display()))))
            }
            #[cfg(feature = "postgres")]
            Database::Postgres(address) => {
                Some(format!("--database {}", shell::quoted(address.typed())))
            }
        }
    }
}

/// A parser whose error does not quote the value, which may hold a password.
#[derive(Debug, Clone)]
pub(super) struct RedactingParser<T>(pub(super) fn(&str) -> Result<T, String>);

impl<T: Clone + Send + Sync + 'static> TypedValueParser for RedactingParser<T> {
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

/// The database that keeps the data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Database {
    Memory,
    File(PathBuf),
    #[cfg(feature = "postgres")]
    Postgres(Box<Address>),
}

/// Shows the address without its password.
impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("sqlite::memory:"),
            Self::File(path) => write!(f, "sqlite:{}", path.display()),
            #[cfg(feature = "postgres")]
            Self::Postgres(address) => write!(f, "{address}"),
        }
    }
}

pub(super) fn parse_database(text: &str) -> Result<Database, String> {
    #[cfg(feature = "postgres")]
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        let address = Address::parse(text).map_err(|error| error.to_string())?;
        return Ok(Database::Postgres(Box::new(address)));
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

/// Returns the value of a flag without the password that an address may hold.
pub(super) fn without_password(value: &str) -> String {
    #[cfg(feature = "postgres")]
    if let Ok(Database::Postgres(address)) = parse_database(value) {
        return address.typed().to_owned();
    }
    match Url::parse(value) {
        Ok(mut url) if url.password().is_some() => {
            // It can have no password only where it has none now.
            let _ = url.set_password(None);
            url.into()
        }
        Ok(_) | Err(_) => value.to_owned(),
    }
}

/// Opens an existing database. Only a server creates one; otherwise a command with a wrong `--database` would succeed
/// without any effect on the server.
pub(super) async fn open(database: &DatabaseArg) -> Result<Store, Failure> {
    let new_secret = Ids::random().array();
    match &database.database {
        Database::Memory => Err(Failure::MemoryOnly),
        Database::File(path) if !path.exists() => Err(no_file(path)),
        Database::File(path) => Ok(Store::open_for_admin(path, new_secret)?),
        #[cfg(feature = "postgres")]
        Database::Postgres(address) => {
            if !Store::exists((**address).clone()).await? {
                return Err(Failure::NoDatabase(address.to_string()));
            }
            Ok(Store::connect_for_admin((**address).clone(), new_secret).await?)
        }
    }
}

/// Returns the account with a name.
pub(super) async fn find_account(store: &Store, name: &str) -> Result<AccountRowId, Failure> {
    store.account_named(name).await?.ok_or_else(|| Failure::NoAccount(name.to_owned()))
}

/// Returns the file of an existing database, for commands that work on files only.
pub(super) fn existing_file(database: &DatabaseArg) -> Result<&Path, Failure> {
    let path = database_file(database)?;
    if path.exists() { Ok(path) } else { Err(no_file(path)) }
}

/// Returns the file of a database, which may not exist yet, for commands that work on files only.
pub(super) fn database_file(database: &DatabaseArg) -> Result<&Path, Failure> {
    match &database.database {
        Database::Memory => Err(Failure::MemoryOnly),
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

/// An open database, with everything that is needed to issue credentials.
pub(super) struct AdminDatabase {
    store: Store,
    secrets: Secrets,
    ids: Ids,
}

impl AdminDatabase {
    pub(super) async fn new(database: &DatabaseArg) -> Result<Self, Failure> {
        let store = open(database).await?;
        Ok(Self { secrets: secrets(&store)?, store, ids: Ids::random() })
    }

    pub(super) fn issuer(&self) -> CredentialIssuer<'_> {
        let by = Actor::Command.at(SystemClock.now());
        CredentialIssuer { store: &self.store, secrets: &self.secrets, ids: &self.ids, by }
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

    #[test]
    fn a_backup_is_a_file_or_a_database_address() {
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

    #[test]
    fn options_of_another_command_find_the_same_database() {
        let options = |text| DatabaseArg { database: parse_database(text).unwrap() }.to_options();
        let folder = std::env::current_dir().unwrap();
        let here =
            format!("--database {}", shell::quoted(&format!("sqlite:{}/p.db", folder.display())));
        let table = [
            ("sqlite:p.db", Some(here.as_str())),
            ("sqlite:///my data/p's.db", Some(r"--database 'sqlite:/my data/p'\''s.db'")),
            ("sqlite::memory:", None),
            #[cfg(feature = "postgres")]
            (
                "postgres://shop:s3cret@db/parcelo?sslmode=require",
                Some("--database 'postgres://shop@db/parcelo?sslmode=require'"),
            ),
        ];
        for (text, expected) in table {
            assert_eq!(options(text).as_deref(), expected);
        }
    }
}
