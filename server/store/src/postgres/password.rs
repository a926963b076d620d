//! The password of a database's address: the four places where it may be, and the address without its password.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use tokio_postgres::{Config, config::Host};
use url::form_urlencoded;

/// The place where a password was found: the first of the four places that has a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PasswordSource {
    Address,
    Environment,
    File,
    Nowhere,
}

/// The password for all hosts, and the lines of the password file if no password is set.
pub(super) struct Passwords {
    source: PasswordSource,
    lines: String,
}

/// Looks up the password that an address lacks.
pub(super) fn find(common: &mut Config, passfile: Option<PathBuf>) -> Passwords {
    let found = |source| Passwords { source, lines: String::new() };
    if common.get_password().is_some() {
        return found(PasswordSource::Address);
    }
    if let Ok(password) = env::var("PGPASSWORD") {
        common.password(password);
        return found(PasswordSource::Environment);
    }
    let lines = read_passfile(passfile).unwrap_or_default();
    Passwords { source: PasswordSource::Nowhere, lines }
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

impl Passwords {
    /// Adds the password of a host from the first line of the password file that matches it, as `libpq` does. A line is
    /// `host:port:database:user:password`. Returns the source of the host's password.
    pub(super) fn add_to(&self, host: &mut Config) -> PasswordSource {
        let name = match host.get_hosts() {
            [Host::Tcp(name)] => name.as_str(),
            _ => "localhost",
        };
        let port = host.get_ports().first().map(ToString::to_string).unwrap_or_default();
        let user = host.get_user().unwrap_or_default();
        let wanted = [name, &port, host.get_dbname().unwrap_or(user), user];
        let lines = self.lines.lines().filter(|line| !line.starts_with('#'));
        let found = lines.map(fields).find_map(|mut fields| {
            let password = fields.pop().filter(|_| fields.len() == wanted.len())?;
            let fits = |(field, wanted): (&String, _)| field == "*" || field == wanted;
            fields.iter().zip(wanted).all(fits).then_some(password)
        });
        let Some(password) = found else { return self.source };
        host.password(password);
        PasswordSource::File
    }
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

/// Joins the parts of an address as they were typed, leaving out the password.
pub(super) fn without_password([scheme, user, place, query]: [&str; 4]) -> String {
    let user = user.split_once(':').map_or(user.to_owned(), |(user, _)| format!("{user}@"));
    let is_password =
        |pair: &&str| form_urlencoded::parse(pair.as_bytes()).any(|(name, _)| name == "password");
    let query: Vec<_> = query.split('&').filter(|pair| !is_password(pair)).collect();
    let query = query.join("&");
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{scheme}://{user}{place}{mark}{query}")
}

/// Returns `true` if a password that was typed without escapes ends too early. Its rest would be read as the host, the
/// database's name or a parameter, and messages show those.
pub(super) fn is_password_cut(place: &str, query: &str) -> bool {
    let is_cut_by_query = !place.contains('@') && place.contains(':') && query.contains('@');
    place.matches('@').count() > 1 || is_cut_by_query
}
