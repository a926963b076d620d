//! Arguments of the commands that do not handle parcels: profiles, raw calls, the webhook listener, shell completions
//! and manual pages.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use clap_complete::Shell;

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    Init(Init),
    List,
    Use(Use),
    Path,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Webhook {
    Listen(Listen),
}

/// Address, language and format of the new profile come from the options of every command.
#[derive(Debug, ClapArgs)]
pub(crate) struct Init {
    #[arg(id = "new_profile", value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Use {
    #[arg(id = "other_profile", value_name = "NAME")]
    pub(crate) name: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Api {
    #[arg(value_name = "METHOD")]
    pub(crate) method: String,
    #[arg(value_name = "PATH")]
    pub(crate) path: String,
    #[arg(long, value_name = "FILE|-")]
    pub(crate) data: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Listen {
    #[arg(long, value_name = "PORT", default_value_t = 4242)]
    pub(crate) port: u16,
    #[arg(long, value_name = "SECRET|-", allow_hyphen_values = true)]
    pub(crate) secret: Option<String>,
    #[arg(long, value_name = "URL")]
    pub(crate) forward_to: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Completions {
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Man {
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
    #[arg(id = "man_dir", long = "dir", short = 'd', value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}
