//! The command line. Every flag of `serve` can also be set by an environment variable or in a file; the flag has
//! priority, then the variable.

use std::{ffi::OsString, path::PathBuf};

use clap::{CommandFactory, Error, FromArgMatches, Parser, Subcommand};

#[cfg(feature = "postgres")]
use super::copy::Copy;
use super::{
    accounts::Accounts,
    audit::Audit,
    backup::Backup,
    completions::{Completions, Man},
    config::Config,
    config_file::ConfigFile,
    credential_args::{Carriers, Keys, Tokens},
    mock_args::Mock,
    restore::Restore,
    serve_args::Serve,
    settings::{ParsedCommand, Setting},
    shared_args::CommonArgs,
    vacuum::Vacuum,
    verify::Verify,
    webhook_args::Webhooks,
};

/// The Parcelo server: creates parcel orders with labels and tracks them.
#[derive(Debug, Parser)]
#[command(name = "parcelo-server", version, propagate_version = true)]
pub struct Args {
    /// A TOML file of settings, named as the flags of `serve`: listen = "0.0.0.0:8080". Flags and
    /// environment variables override it.
    #[arg(long, global = true, env = "PARCELO_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    pub(super) command: Command,
    /// The flags that differ from their defaults, for the log.
    #[arg(skip)]
    pub(super) non_default_flags: String,
    /// The settings of the command, for `config show`.
    #[arg(skip)]
    pub(super) settings: Vec<Setting>,
}

impl Args {
    /// Parses the arguments of the process. Invalid arguments end the process with an explanation.
    pub fn read() -> Self {
        Self::read_from(std::env::args_os())
    }

    /// Parses these arguments; the first is the command's name. Invalid arguments end the process with an explanation.
    pub fn read_from(arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Self {
        let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
        Self::parse_arguments(&arguments).unwrap_or_else(|error| error.exit())
    }

    /// Parses the arguments twice: for the name of the file, and with its settings.
    fn parse_arguments(arguments: &[OsString]) -> Result<Self, Error> {
        let command = Self::command();
        let matches = command.clone().try_get_matches_from(arguments)?;
        let file = match Self::from_arg_matches(&matches)?.config {
            Some(path) => ConfigFile::read(&path)?,
            None => ConfigFile::default(),
        };
        let matches = file.apply(command.clone()).try_get_matches_from(arguments)?;
        let parsed = ParsedCommand::new(&command, &matches, &file);
        let (non_default_flags, settings) = (parsed.non_default_flags(), parsed.settings());
        Ok(Self { non_default_flags, settings, ..Self::from_arg_matches(&matches)? })
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Serve the production API, the sandbox API and the operators' listener.
    Serve(Box<Serve>),
    /// Show what a server would be started with.
    #[command(subcommand)]
    Config(Config),
    /// Create, list, rotate and revoke API keys; works while a server runs on the same database.
    #[command(subcommand)]
    Keys(Keys),
    /// Create, list and revoke carrier keys; works while a server runs on the same database.
    #[command(subcommand)]
    Carriers(Carriers),
    /// Set up, test and inspect webhooks; works while a server runs on the same database.
    #[command(subcommand)]
    Webhooks(Webhooks),
    /// Serve the sandbox in memory for test suites in any language, with clock and fault controls
    /// under /__mock/.
    Mock(Box<Mock>),
    /// Create, list and revoke tokens for the admin API; works while a server runs on the same database.
    #[command(subcommand)]
    Tokens(Tokens),
    /// Create and list accounts, and set their dashboard passwords; works while a server runs on the same database.
    #[command(subcommand)]
    Accounts(Accounts),
    /// Copy the database as it is at this moment to a file, or to a folder of the newest backups; works while a
    /// server runs on it.
    Backup(Backup),
    /// Put a backup in the place of the database file, which is kept under another name. Stop the server
    /// first.
    Restore(Restore),
    /// Check that a backup is whole and can be restored.
    Verify(Verify),
    /// Copy a database to the other engine, from a file to PostgreSQL or back, and compare the two. Stop the
    /// servers first.
    #[cfg(feature = "postgres")]
    Copy(Copy),
    /// Rewrite the database file without any trace of deleted data; for files from before 0.2. Stop the
    /// server first.
    Vacuum(Vacuum),
    /// Show who changed keys, secrets, passwords and settings, newest first; works while a server runs on the same
    /// database.
    Audit(Audit),
    /// Show which keys still use the legacy API, by day.
    Legacy(CommonArgs),
    /// Print the completions of a shell.
    Completions(Completions),
    /// Write the manual pages of all commands to a folder.
    #[command(hide = true)]
    Man(Man),
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use clap::{Arg, CommandFactory};

    use super::*;

    #[test]
    fn the_command_line_definition_is_valid() {
        Args::command().debug_assert();
    }

    /// The words in names of environment variables whose values must not be logged.
    const SECRET_WORDS: [&str; 5] = ["SECRET", "PASSWORD", "DATABASE", "KEY", "TOKEN"];
    /// The variables that name files, which may be shown.
    const FILES: [&str; 1] = ["PARCELO_SECRETS_FILE"];

    fn for_each_flag(command: &clap::Command, check: &mut impl FnMut(&Arg)) {
        command.get_arguments().for_each(&mut *check);
        command.get_subcommands().for_each(|command| for_each_flag(command, check));
    }

    #[test]
    fn flags_that_may_hold_secrets_hide_their_values() {
        let mut hidden = Vec::new();
        for_each_flag(&Args::command(), &mut |flag| {
            let Some(name) = flag.get_env().and_then(OsStr::to_str) else { return };
            if SECRET_WORDS.iter().any(|word| name.contains(word)) && !FILES.contains(&name) {
                assert!(
                    flag.is_hide_env_values_set(),
                    "{name} would be logged and shown by --help"
                );
                hidden.push(name.to_owned());
            }
        });
        assert!(hidden.iter().any(|name| name == "PARCELO_DATABASE"), "{hidden:?}");
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn the_log_of_a_start_shows_no_database_address() {
        let typed = ["parcelo-server", "serve", "--database", "postgres://shop:s3cret@db/parcelo"];
        let typed: Vec<_> = typed.into_iter().chain(["--drain", "7"]).map(OsString::from).collect();
        assert_eq!(Args::parse_arguments(&typed).unwrap().non_default_flags, "--drain=7");
    }

    #[test]
    fn every_list_accepts_spaces_after_commas() {
        let serve = |flag, list| {
            let args = Args::try_parse_from(["parcelo-server", "serve", flag, list]);
            let Command::Serve(serve) = args.unwrap().command else { panic!("{flag}") };
            serve
        };
        assert_eq!(serve("--countries", "EC, MX ,CO").countries.len(), 3);
        assert_eq!(serve("--environments", "production, sandbox").environments.len(), 2);
        let proxies = "10.0.0.0/8, 2001:db8::1";
        assert_eq!(serve("--trusted-proxies", proxies).trusted_proxies.len(), 2);
        let key = ["parcelo-server", "keys", "create", "--environment", "sandbox", "--name", "x"];
        let lists = ["--countries", "EC, MX", "--ip", "10.0.0.1, 10.0.0.2", "--ip", "::1"];
        let args = Args::try_parse_from(key.into_iter().chain(lists)).unwrap();
        let Command::Keys(Keys::Create(key)) = args.command else { panic!("keys create") };
        assert_eq!((key.countries.len(), key.ip_list.len()), (2, 3));
        let hook = ["parcelo-server", "webhooks", "set", "--environment", "sandbox", "--url", "x"];
        let kinds = ["--events", "parcel.created, parcel.voided"];
        assert!(Args::try_parse_from(hook.into_iter().chain(kinds)).is_ok());
        for empty in ["", "EC,", "EC,,MX", " "] {
            let args = Args::try_parse_from(["parcelo-server", "serve", "--countries", empty]);
            assert!(args.is_err(), "{empty:?}");
        }
    }
}
