//! Finds the password for an address, and removes it from the address as it was typed.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use tokio_postgres::{Config, config::Host};
use url::form_urlencoded;

/// The source of a password: the first of the address, `PGPASSWORD` and the password file that has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PasswordSource {
    Address,
    Environment,
    File,
    Nowhere,
}

/// The password for all hosts, or the password file in which each host has its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Passwords {
    source: PasswordSource,
    passfile: Option<PathBuf>,
}

/// Looks up the password of an address, and sets it in `common` if it is the same for all hosts.
pub(super) fn find(common: &mut Config, passfile: Option<PathBuf>) -> Passwords {
    let from_source = |source| Passwords { source, passfile: None };
    if common.get_password().is_some() {
        return from_source(PasswordSource::Address);
    }
    if let Ok(password) = env::var("PGPASSWORD") {
        common.password(password);
        return from_source(PasswordSource::Environment);
    }
    let passfile = passfile
        .or_else(|| env::var_os("PGPASSFILE").map(PathBuf::from))
        .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".pgpass")));
    Passwords { source: PasswordSource::Nowhere, passfile }
}

impl Passwords {
    /// Adds the password of a host from the first line of the password file that matches it, as `libpq` does. A line is
    /// `host:port:database:user:password`. Returns the source of the host's password. The file is read for each
    /// connection, so that a changed password needs no restart.
    pub(super) fn add_to(&self, host: &mut Config) -> PasswordSource {
        let lines = self.read_passfile().unwrap_or_default();
        let name = match host.get_hosts() {
            [Host::Tcp(name)] => name.as_str(),
            _ => "localhost",
        };
        let port = host.get_ports().first().map(ToString::to_string).unwrap_or_default();
        let user = host.get_user().unwrap_or_default();
        let expected = [name, &port, host.get_dbname().unwrap_or(user), user];
        let lines = lines.lines().filter(|line| !line.starts_with('#'));
        let password = lines.map(split_fields).find_map(|mut fields| {
            let password = fields.pop().filter(|_| fields.len() == expected.len())?;
            let matches = |(field, expected): (&String, _)| field == "*" || field == expected;
            fields.iter().zip(expected).all(matches).then_some(password)
        });
        let Some(password) = password else { return self.source };
        host.password(password);
        PasswordSource::File
    }

    fn read_passfile(&self) -> Option<String> {
        let passfile = self.passfile.as_deref()?;
        // A file that others can read is not used, as in `libpq`.
        if fs::metadata(passfile).ok()?.permissions().mode() & 0o077 != 0 {
            tracing::warn!("the password file can be read by others, and is not used");
            return None;
        }
        fs::read_to_string(passfile).ok()
    }
}

/// Splits a line into its fields. In a field, `\:` means `:` and `\\` means `\`.
fn split_fields(line: &str) -> Vec<String> {
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

/// Joins the parts of an address as they were typed, leaving out the password.
pub(super) fn without_password([scheme, userinfo, hosts_and_name, query]: [&str; 4]) -> String {
    let user = userinfo.split_once(':').map_or(userinfo.to_owned(), |(user, _)| format!("{user}@"));
    let is_password =
        |pair: &&str| form_urlencoded::parse(pair.as_bytes()).any(|(name, _)| name == "password");
    let query: Vec<_> = query.split('&').filter(|pair| !is_password(pair)).collect();
    let query = query.join("&");
    let question_mark = if query.is_empty() { "" } else { "?" };
    format!("{scheme}://{user}{hosts_and_name}{question_mark}{query}")
}

/// Returns `true` if a password contains an unescaped `@` or `?`. What follows it would be read as the host, the
/// database's name or a parameter, which messages may show.
pub(super) fn has_unescaped_password(authority_and_path: &str, query: &str) -> bool {
    let has_question_mark = !authority_and_path.contains('@')
        && authority_and_path.contains(':')
        && query.contains('@');
    authority_and_path.matches('@').count() > 1 || has_question_mark
}
