//! The command line: every flag is also an environment variable; a flag wins.

use clap::{Parser, Subcommand};

#[cfg(feature = "postgres")]
use super::copy::Copy;
use super::{
    accounts::Accounts,
    backup::Backup,
    credential_args::{Carriers, Keys, Tokens},
    mock_args::Mock,
    serve_args::Serve,
    shared_args::ListKeys,
    vacuum::Vacuum,
    webhook_args::Webhooks,
};

/// The Parcelo server: creates parcel orders with labels and tracks them.
#[derive(Debug, Parser)]
#[command(name = "parcelo-server", version, propagate_version = true)]
pub struct Args {
    #[command(subcommand)]
    pub(super) command: Command,
}

impl Args {
    /// Reads the process's arguments; wrong ones end the process with an explanation.
    pub fn read() -> Self {
        Self::parse()
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Serve the production API, the sandbox API and the operators' listener.
    Serve(Box<Serve>),
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
    /// Copy the database as it is at this moment; works while a server runs on it.
    Backup(Backup),
    /// Copy a database to the other engine, from a file to PostgreSQL or back, and compare the two. Stop the
    /// servers first.
    #[cfg(feature = "postgres")]
    Copy(Copy),
    /// Rewrite the database file without any trace of deleted data; for files from before 0.2. Stop the
    /// server first.
    Vacuum(Vacuum),
    /// Show which keys still use the legacy API, by day.
    Legacy(ListKeys),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn every_list_may_have_blanks_behind_its_commas() {
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
