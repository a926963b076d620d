//! Where the database is, as `libpq` has it: the address, the password from one of four places, and what of
//! TLS is checked. A password is shown by nothing in here.

use std::{
    env, fmt, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};
use url::form_urlencoded;

/// How long one address may take to answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Longer than a statement may take (`statement_timeout`, 15 s). What stands between us and PostgreSQL may have
/// lost it and still acknowledge our bytes, so that neither keepalives nor `tcp_user_timeout` notice.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// For how long sent bytes may stay unacknowledged: a connection into nowhere would hold its locks.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(15);
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 3;
/// The fields of a line of a password file.
const PASSFILE_FIELDS: usize = 5;

/// What of the server's certificate is checked, in the words of `sslmode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tls {
    /// No TLS.
    Disable,
    /// TLS where the server has it; nothing is checked.
    Prefer,
    /// TLS; nothing is checked.
    Require,
    /// TLS with a certificate of a known authority.
    VerifyCa,
    /// The same, and it is the host's.
    VerifyFull,
}

/// A database of PostgreSQL.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    pub(super) config: Config,
    pub(super) tls: Tls,
    /// The authorities' certificates; none means those that the operating system's vendors agree on.
    pub(super) root_certificates: Option<PathBuf>,
    /// Whether settings that lose data are accepted: for tests.
    pub(super) may_lose_data: bool,
    /// How long PostgreSQL may take to answer a statement before the connection is given up.
    pub(super) answer_timeout: Duration,
    /// PostgreSQL itself, where `config` leads to a pooler.
    pub(super) direct: Option<Box<Self>>,
}

/// What is wrong with an address; it does not quote it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AddressError(String);

impl Address {
    /// Reads `postgres://user@host:port/name?sslmode=verify-full`. A password that it lacks is looked for
    /// in `PGPASSWORD` and in the password file.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let (start, query) = text.split_once('?').unwrap_or((text, ""));
        let (mut tls, mut root, mut passfile) = (None, None, None);
        let (mut is_system, mut may_lose_data) = (false, false);
        let mut rest = form_urlencoded::Serializer::new(String::new());
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "sslmode" => tls = Some(Tls::from_str(&value)?),
                "sslrootcert" if value == "system" => is_system = true,
                "sslrootcert" => root = Some(PathBuf::from(&*value)),
                "passfile" => passfile = Some(PathBuf::from(&*value)),
                "unsafe_settings" => may_lose_data = value == "allow",
                _ if is_known(&name, &value) => drop(rest.append_pair(&name, &value)),
                _ => return Err(AddressError(format!("the parameter {name} is not supported"))),
            }
        }
        // tokio-postgres reads `+` as it stands.
        let rest = rest.finish().replace('+', "%20");
        let malformed = || AddressError("expected postgres://USER@HOST:PORT/NAME".to_owned());
        let mut config =
            Config::from_str(&format!("{start}?{rest}")).map_err(|_quotes| malformed())?;
        // Without one it would only fail later, as a server that cannot be reached.
        if config.get_hosts().is_empty() {
            return Err(malformed());
        }
        // The rest of a password, which messages would name as the host.
        if config
            .get_hosts()
            .iter()
            .any(|host| matches!(host, Host::Tcp(name) if name.contains('@')))
        {
            return Err(AddressError("in a password, write %40 for @".to_owned()));
        }
        if config.get_password().is_none()
            && let Some(password) = password(&config, passfile)
        {
            config.password(password);
        }
        // What `libpq` does: authorities that are named are to be asked.
        let tls = match (tls, &root) {
            (None | Some(Tls::VerifyFull), _) if is_system => Tls::VerifyFull,
            (Some(_), _) if is_system => {
                let weak = "sslrootcert=system goes with sslmode=verify-full: anyone can have a certificate";
                return Err(AddressError(weak.to_owned()));
            }
            (Some(Tls::Require), Some(_)) => Tls::VerifyCa,
            (tls, _) => tls.unwrap_or(Tls::Prefer),
        };
        set_up(&mut config, tls);
        let (root_certificates, answer_timeout) = (root, ANSWER_TIMEOUT);
        let direct = None;
        Ok(Self { config, tls, root_certificates, may_lose_data, answer_timeout, direct })
    }

    /// A pooler's address, with the one of PostgreSQL itself.
    pub(crate) fn with_direct(self, direct: Self) -> Self {
        Self { direct: Some(Box::new(direct)), ..self }
    }

    /// Where sessions are PostgreSQL's own.
    pub(super) fn direct(&self) -> &Self {
        self.direct.as_deref().unwrap_or(self)
    }

    /// Whether what leads to the database is a pooler.
    pub(super) const fn is_pooled(&self) -> bool {
        self.direct.is_some()
    }

    /// The address without user and password, for messages.
    pub(super) fn name(&self) -> String {
        let hosts = self.config.get_hosts().iter().map(|host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(folder) => folder.display().to_string(),
        });
        let hosts = hosts.collect::<Vec<_>>().join(",");
        let ports = self.config.get_ports().iter().map(ToString::to_string).collect::<Vec<_>>();
        let port = if ports.is_empty() { "5432".to_owned() } else { ports.join(",") };
        format!("postgres://{hosts}:{port}/{}", self.config.get_dbname().unwrap_or_default())
    }
}

/// Whether the driver takes a parameter with this value.
fn is_known(name: &str, value: &str) -> bool {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair(name, value);
    Config::from_str(&format!("postgres://host/?{}", query.finish().replace('+', "%20"))).is_ok()
}

fn set_up(config: &mut Config, tls: Tls) {
    let is_local = config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)));
    config.ssl_mode(match tls {
        // A Unix socket has no TLS: `libpq` does not ask for it there either.
        _ if is_local => SslMode::Disable,
        Tls::Disable => SslMode::Disable,
        Tls::Prefer => SslMode::Prefer,
        Tls::Require | Tls::VerifyCa | Tls::VerifyFull => SslMode::Require,
    });
    if config.get_application_name().is_none() {
        config.application_name("parcelo-server");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    config
        .tcp_user_timeout(TCP_USER_TIMEOUT)
        .keepalives(true)
        .keepalives_idle(KEEPALIVE_IDLE)
        .keepalives_interval(KEEPALIVE_INTERVAL)
        .keepalives_retries(KEEPALIVE_RETRIES);
}

impl FromStr for Tls {
    type Err = AddressError;

    fn from_str(word: &str) -> Result<Self, AddressError> {
        Ok(match word {
            "disable" => Self::Disable,
            // `allow` begins without TLS, and we would rather begin with it.
            "allow" | "prefer" => Self::Prefer,
            "require" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" => Self::VerifyFull,
            _ => {
                return Err(AddressError(
                    "sslmode is disable, allow, prefer, require, verify-ca or verify-full"
                        .to_owned(),
                ));
            }
        })
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({})", self.name())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

fn password(config: &Config, passfile: Option<PathBuf>) -> Option<String> {
    if let Ok(password) = env::var("PGPASSWORD") {
        return Some(password);
    }
    let passfile = passfile
        .or_else(|| env::var_os("PGPASSFILE").map(PathBuf::from))
        .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".pgpass")))?;
    // One that others can read is not used, as `libpq` has it.
    if fs::metadata(&passfile).ok()?.permissions().mode() & 0o077 != 0 {
        tracing::warn!("the password file can be read by others, and is not used");
        return None;
    }
    password_in(&fs::read_to_string(passfile).ok()?, config)
}

/// The password of the first line that fits: `host:port:database:user:password`.
fn password_in(lines: &str, config: &Config) -> Option<String> {
    let host = config.get_hosts().first().map_or("localhost", |host| match host {
        Host::Tcp(name) => name.as_str(),
        Host::Unix(_) => "localhost",
    });
    let port = config.get_ports().first().copied().unwrap_or(5432).to_string();
    let user = config.get_user().unwrap_or_default();
    let wanted = [host, port.as_str(), config.get_dbname().unwrap_or(user), user];
    lines.lines().filter(|line| !line.starts_with('#')).map(fields).find_map(|mut fields| {
        let password = fields.pop().filter(|_| fields.len() + 1 == PASSFILE_FIELDS)?;
        let fits = fields.iter().zip(wanted).all(|(field, wanted)| field == "*" || field == wanted);
        fits.then_some(password)
    })
}

/// The fields of a line, in which `\:` and `\\` stand for themselves.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_user_and_password() {
        let address = Address::parse("postgres://shop:s3cret@db.example:6432/parcelo").unwrap();
        for shown in [format!("{address:?}"), address.to_string()] {
            assert!(shown.contains("postgres://db.example:6432/parcelo"), "{shown}");
            assert!(!shown.contains("s3cret") && !shown.contains("shop"), "{shown}");
        }
        let wrong = Address::parse("postgres://shop:s3cret@db.example:x/parcelo").unwrap_err();
        assert!(!wrong.to_string().contains("s3cret"));
        let unescaped = Address::parse("postgres://shop:s3c@ret@db.example/parcelo").unwrap_err();
        assert!(unescaped.to_string().contains("%40"), "{unescaped}");
    }

    #[test]
    fn an_address_without_a_host_is_refused_before_anything_is_tried() {
        for text in ["postgres://", "postgres:///parcelo", "postgres://shop@/parcelo"] {
            let refused = Address::parse(text).unwrap_err().to_string();
            assert!(refused.contains("USER@HOST"), "{text}: {refused}");
        }
    }

    #[test]
    fn what_is_checked_of_a_certificate_is_what_libpq_checks() {
        let table = [
            ("", Tls::Prefer),
            ("sslmode=disable", Tls::Disable),
            ("sslmode=allow", Tls::Prefer),
            ("sslmode=require", Tls::Require),
            ("sslmode=require&sslrootcert=/ca.pem", Tls::VerifyCa),
            ("sslmode=verify-full&application_name=x", Tls::VerifyFull),
        ];
        for (query, tls) in table {
            let address = Address::parse(&format!("postgres://u@h/d?{query}")).unwrap();
            assert_eq!(address.tls, tls, "{query}");
        }
        assert!(Address::parse("postgres://u@h/d?sslmode=full").is_err());
        let system =
            |query: &str| Address::parse(&format!("postgres://u@h/d?sslrootcert=system{query}"));
        assert_eq!(system("").unwrap().tls, Tls::VerifyFull);
        assert_eq!(system("&sslmode=verify-full").unwrap().tls, Tls::VerifyFull);
        assert!(system("&sslmode=require").unwrap_err().to_string().contains("verify-full"));
        let own = Address::parse("postgres://u@h/d?sslcert=/own.pem").unwrap_err();
        assert!(own.to_string().contains("sslcert"), "{own}");
        let local = Address::parse("postgres:///d?host=/run/pg&sslmode=require").unwrap();
        assert_eq!(local.config.get_ssl_mode(), SslMode::Disable);
    }

    #[test]
    fn a_password_file_is_read_as_libpq_reads_it() {
        let file = "# a comment\nother:*:*:*:no\ndb:5432:parcelo:shop:a\\:b\\\\c\n*:*:*:*:last";
        let in_file = |url: &str| password_in(file, &Config::from_str(url).unwrap());
        assert_eq!(in_file("postgres://shop@db/parcelo").as_deref(), Some("a:b\\c"));
        assert_eq!(in_file("postgres://shop@db:5433/parcelo").as_deref(), Some("last"));
    }
}
