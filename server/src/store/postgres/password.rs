//! The password of a database's address: the four places where it may be, and the address without its password.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use tokio_postgres::{Config, config::Host};
use url::form_urlencoded;

use super::hosts;

/// Number of fields in a line of a password file.
const PASSFILE_FIELDS: usize = 5;

/// The place where a password was found: the first of the four places that has a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PasswordSource {
    Address,
    Environment,
    File,
    Nowhere,
}

/// The passwords that were found for the hosts of an address.
pub(super) enum FoundPassword {
    /// The address has a password.
    InAddress,
    /// One password for all hosts, from the environment.
    ForAll(String),
    /// The password file's entry for each host.
    ForEach(Vec<Option<String>>),
}

impl FoundPassword {
    pub(super) fn source(&self) -> PasswordSource {
        match self {
            Self::InAddress => PasswordSource::Address,
            Self::ForAll(_) => PasswordSource::Environment,
            Self::ForEach(found) if found.iter().any(Option::is_some) => PasswordSource::File,
            Self::ForEach(_) => PasswordSource::Nowhere,
        }
    }

    pub(super) fn for_each(self) -> Vec<Option<String>> {
        match self {
            Self::InAddress | Self::ForAll(_) => Vec::new(),
            Self::ForEach(found) => found,
        }
    }
}

/// Looks up the password that an address lacks.
pub(super) fn find_passwords(config: &Config, passfile: Option<PathBuf>) -> FoundPassword {
    if config.get_password().is_some() {
        return FoundPassword::InAddress;
    }
    if let Ok(password) = env::var("PGPASSWORD") {
        return FoundPassword::ForAll(password);
    }
    let lines = read_passfile(passfile).unwrap_or_default();
    FoundPassword::ForEach(passwords_in(&lines, config))
}

fn read_passfile(passfile: Option<PathBuf>) -> Option<String> {
    let passfile = passfile
        .or_else(|| env::var_os("PGPASSFILE").map(PathBuf::from))
        .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".pgpass")))?;
    // A file that others can read is not used, as in `libpq`.
    if fs::metadata(&passfile).ok()?.permissions().mode() & 0o077 != 0 {
        tracing::warn!("the password file can be read by others, and is not used");
        return None;
    }
    fs::read_to_string(passfile).ok()
}

/// Returns the password of each host, from the first line that matches it, as `libpq` does. A line is
/// `host:port:database:user:password`.
pub(super) fn passwords_in(lines: &str, config: &Config) -> Vec<Option<String>> {
    let user = config.get_user().unwrap_or_default();
    let name = config.get_dbname().unwrap_or(user);
    let hosts = (0..).zip(config.get_hosts());
    let find = |(place, host): (usize, &Host)| {
        let host = match host {
            Host::Tcp(name) => name.as_str(),
            Host::Unix(_) => "localhost",
        };
        password_of([host, &hosts::port(config, place).to_string(), name, user], lines)
    };
    hosts.map(find).collect()
}

fn password_of(wanted: [&str; PASSFILE_FIELDS - 1], lines: &str) -> Option<String> {
    lines.lines().filter(|line| !line.starts_with('#')).map(fields).find_map(|mut fields| {
        let password = fields.pop().filter(|_| fields.len() + 1 == PASSFILE_FIELDS)?;
        let fits = fields.iter().zip(wanted).all(|(field, wanted)| field == "*" || field == wanted);
        fits.then_some(password)
    })
}

/// Splits a line into its fields. In a field, `\:` means `:` and `\\` means `\`.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut is_escaped) = (vec![String::new()], false);
    for character in line.chars() {
        match character {
            '\\' if !is_escaped => is_escaped = true,
            ':' if !is_escaped => fields.push(String::new()),
            _ => {
                is_escaped = false;
                if let Some(last) = fields.last_mut() {
                    last.push(character);
                }
            }
        }
    }
    fields
}

/// Returns an address as it was typed, but without the password.
pub(super) fn without_password(text: &str) -> String {
    let (start, query) = text.split_once('?').unwrap_or((text, ""));
    let parts = start.split_once("://").and_then(|(scheme, rest)| {
        let (user, rest) = rest.rsplit_once('@')?;
        Some((scheme, user.split_once(':').map_or(user, |(user, _)| user), rest))
    });
    let start = parts.map_or_else(
        || start.to_owned(),
        |(scheme, user, rest)| format!("{scheme}://{user}@{rest}"),
    );
    let is_password =
        |pair: &&str| form_urlencoded::parse(pair.as_bytes()).any(|(name, _)| name == "password");
    let query: Vec<_> = query.split('&').filter(|pair| !is_password(pair)).collect();
    let query = query.join("&");
    if query.is_empty() { start } else { format!("{start}?{query}") }
}

/// Returns `true` if a password that was typed without escapes ends too early. Its rest would be read as the host, the
/// database's name or a parameter, and messages show those.
pub(super) fn is_password_cut((start, query): (&str, &str)) -> bool {
    let authority = start.split_once("://").map_or(start, |(_, rest)| rest);
    let is_cut_by_query =
        !authority.contains('@') && authority.contains(':') && query.contains('@');
    authority.matches('@').count() > 1 || is_cut_by_query
}
