//! The settings of the command that runs: the value of each, and where it was set.

use std::ffi::OsStr;

use clap::{Arg, ArgMatches, Command, parser::ValueSource};
use serde::Serialize;

use super::{config_file::ConfigFile, database::without_password};

/// A setting for people and programs.
#[derive(Debug, Serialize)]
pub(super) struct Setting {
    /// The flag, and the key in a configuration file.
    pub(super) name: String,
    /// The value, without the password of an address; `None` if it has none.
    pub(super) value: Option<String>,
    /// The place where it was set: a flag, a variable, a file, or the default.
    pub(super) source: String,
}

/// A command line that was parsed with the settings of a file.
pub(super) struct ParsedCommand<'a> {
    command: &'a Command,
    matches: &'a ArgMatches,
    file: &'a ConfigFile,
}

impl<'a> ParsedCommand<'a> {
    /// Returns the command that was chosen of all subcommands. `command` has its own defaults, not those of the file.
    pub(super) fn new(
        mut command: &'a Command,
        mut matches: &'a ArgMatches,
        file: &'a ConfigFile,
    ) -> Self {
        while let Some((name, inner)) = matches.subcommand() {
            let Some(subcommand) = command.find_subcommand(name) else { break };
            (command, matches) = (subcommand, inner);
        }
        Self { command, matches, file }
    }

    /// Returns the flags that can also be set by a variable or a file.
    pub(super) fn settings(&self) -> Vec<Setting> {
        let flags = self.command.get_arguments().filter(|flag| flag.get_env().is_some());
        let settings = flags.filter_map(|flag| {
            let values = self.matches.get_raw(flag.get_id().as_str());
            Some(Setting {
                name: flag.get_long()?.to_owned(),
                value: values.map(|values| without_password(&joined(values))),
                source: self.source(flag).unwrap_or_else(|| "default".to_owned()),
            })
        });
        settings.collect()
    }

    /// Returns the flags that differ from their defaults, as on a command line, however they were set. Addresses of
    /// databases are left out, because they may hold a password.
    pub(super) fn non_default_flags(&self) -> String {
        let flags = self.command.get_arguments().filter_map(|flag| self.non_default_flag(flag));
        flags.collect::<Vec<_>>().join(" ")
    }

    fn non_default_flag(&self, flag: &Arg) -> Option<String> {
        if self.source(flag).is_none() || flag.is_hide_env_values_set() {
            return None;
        }
        let name = flag.get_long()?;
        let values: Vec<&OsStr> = self.matches.get_raw(flag.get_id().as_str())?.collect();
        if values == flag.get_default_values() {
            return None;
        }
        Some(format!("--{name}={}", joined(values)))
    }

    /// Returns the place where a flag was set, or `None` if it has its default.
    fn source(&self, flag: &Arg) -> Option<String> {
        match self.matches.value_source(flag.get_id().as_str())? {
            ValueSource::CommandLine => Some("flag".to_owned()),
            ValueSource::EnvVariable => Some(flag.get_env()?.to_string_lossy().into_owned()),
            _ => {
                let path = self.file.path_if_set(flag)?.display();
                Some(format!("{path}:{}", flag.get_long()?))
            }
        }
    }
}

fn joined<'a>(values: impl IntoIterator<Item = &'a OsStr>) -> String {
    let values: Vec<_> = values.into_iter().map(OsStr::to_string_lossy).collect();
    values.join(",")
}
