//! The address of a database, as `libpq` defines it: the hosts, the password from one of four places, and the TLS
//! checks. Nothing in this module shows a password.

use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};
use url::form_urlencoded;

use super::{
    hosts::{self, HostConfig},
    password::{FoundPassword, PasswordSource, find_passwords, is_password_cut, without_password},
};

/// Maximum time that one address may take to answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum time for an answer, longer than the time limit of a statement (`statement_timeout`, 15 s). A proxy between
/// us and PostgreSQL may have lost PostgreSQL and still acknowledge our bytes, so that neither keepalives nor
/// `tcp_user_timeout` notice.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum time for which sent bytes may stay unacknowledged, because a dead connection would keep its locks.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(15);
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 3;
/// Values of which each parameter of the driver accepts at least one.
const VALUES: [&str; 4] = ["1", "require", "direct", "127.0.0.1"];

/// The checks of the server's certificate, named as in `sslmode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tls {
    /// No TLS.
    Disable,
    /// TLS if the server supports it; nothing is checked.
    Prefer,
    /// TLS; nothing is checked.
    Require,
    /// TLS with a certificate of a known authority.
    VerifyCa,
    /// TLS with a certificate of a known authority that names the host.
    VerifyFull,
}

/// The address of a PostgreSQL database.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    pub(super) config: Config,
    pub(super) tls: Tls,
    /// The file with the authorities' certificates; `None` means the bundled ones of Mozilla.
    pub(super) root_certificates: Option<PathBuf>,
    /// The policy for settings that let a crash lose data.
    pub(super) unsafe_settings: UnsafeSettings,
    /// Maximum time for PostgreSQL's answer to a statement before the connection is given up.
    pub(super) answer_timeout: Duration,
    /// The place where the password was found.
    pub(super) password_source: PasswordSource,
    /// The password file's entry for each host, if the address has no password for all.
    pub(super) passwords: Vec<Option<String>>,
    /// The address as it was typed, without a password.
    pub(super) typed: String,
}

/// The policy for `fsync = off` and `full_page_writes = off`, named as in `unsafe_settings`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnsafeSettings {
    /// A database with these settings is not used.
    Refuse,
    /// They lose nothing, because the provider keeps the log elsewhere than on PostgreSQL's disk.
    Managed,
    /// They are accepted although a crash may lose data: for tests.
    Allow,
}

/// The fault in an address; it does not quote the address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AddressError(String);

impl AddressError {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl Address {
    /// Parses `postgres://user@host:port/name?sslmode=verify-full`. If it has no password, `PGPASSWORD` and the
    /// password file are searched.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let (start, query) = text.split_once('?').unwrap_or((text, ""));
        if is_password_cut((start, query)) {
            return Err(unescaped());
        }
        let parameters = Parameters::parse(query)?;
        let malformed = || AddressError("expected postgres://USER@HOST:PORT/NAME".to_owned());
        let whole = format!("{start}?{}", parameters.of_driver);
        let mut config = Config::from_str(&whole).map_err(|_quotes| malformed())?;
        // An address without a host would only fail later, as an unreachable server. Without a name it would mean the
        // database that is named like the user.
        if config.get_hosts().is_empty() {
            return Err(malformed());
        }
        if config.get_dbname().is_none() {
            return Err(AddressError::new("name the database: postgres://USER@HOST:PORT/NAME"));
        }
        hosts::check(&config).map_err(AddressError::new)?;
        let tls = parameters.tls()?;
        let found = find_passwords(&config, parameters.passfile);
        if let FoundPassword::ForAll(password) = &found {
            config.password(password);
        }
        set_up(&mut config, tls);
        Ok(Self {
            config,
            tls,
            root_certificates: parameters.root,
            unsafe_settings: parameters.unsafe_settings,
            answer_timeout: ANSWER_TIMEOUT,
            password_source: found.source(),
            passwords: found.for_each(),
            typed: without_password(text),
        })
    }

    /// Returns the address as it was typed, without a password, so that it can be typed again.
    pub(crate) fn typed(&self) -> &str {
        &self.typed
    }

    /// Returns a separate configuration for each host.
    pub(super) fn hosts(&self) -> Vec<HostConfig> {
        let mut hosts = hosts::each(&self.config, |one| set_up(one, self.tls));
        for (host, password) in hosts.iter_mut().zip(&self.passwords) {
            if let Some(password) = password {
                host.config.password(password);
            }
        }
        hosts
    }

    /// Returns the address without user and password, for messages.
    pub(super) fn name(&self) -> String {
        let hosts = hosts::names(&self.config).collect::<Vec<_>>().join(",");
        format!("postgres://{hosts}/{}", self.config.get_dbname().unwrap_or_default())
    }
}

/// Accepts the values with which `libpq` looks for a host to write to, because the store always needs such a host, and
/// refuses the values with which `libpq` looks for any other host.
fn check_session_attrs(value: &str) -> Result<(), AddressError> {
    if matches!(value, "any" | "primary" | "read-write") {
        return Ok(());
    }
    Err(AddressError::new(
        "target_session_attrs is primary or read-write: servers and commands write",
    ))
}

/// The parameters of an address, which follow its question mark.
struct Parameters {
    tls: Option<Tls>,
    root: Option<PathBuf>,
    /// `true` if the system's certificate authorities are used.
    is_system: bool,
    passfile: Option<PathBuf>,
    unsafe_settings: UnsafeSettings,
    /// The other parameters, in the form that the driver reads.
    of_driver: String,
}

impl Parameters {
    fn parse(query: &str) -> Result<Self, AddressError> {
        let (mut tls, mut root, mut passfile) = (None, None, None);
        let (mut is_system, mut unsafe_settings) = (false, UnsafeSettings::Refuse);
        let mut rest = form_urlencoded::Serializer::new(String::new());
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "sslmode" => tls = Some(Tls::from_str(&value)?),
                "sslrootcert" if value == "system" => is_system = true,
                "sslrootcert" => root = Some(PathBuf::from(&*value)),
                "passfile" => passfile = Some(PathBuf::from(&*value)),
                "unsafe_settings" => unsafe_settings = UnsafeSettings::from_str(&value)?,
                "target_session_attrs" => check_session_attrs(&value)?,
                "channel_binding" if value == "require" => {
                    return Err(AddressError::new(
                        "channel_binding=require is not supported: leave it out, and let \
                         sslmode=verify-full check who answers",
                    ));
                }
                // The driver accepts a list here, but in front of the name it would read the list as one host.
                "host" => {
                    for host in value.split(',') {
                        rest.append_pair("host", host);
                    }
                }
                _ if is_known(&name, &value) => drop(rest.append_pair(&name, &value)),
                _ if VALUES.iter().any(|value| is_known(&name, value)) => {
                    return Err(AddressError(format!("the parameter {name} has a wrong value")));
                }
                _ if LIBPQ_PARAMETERS.contains(&&*name) => {
                    return Err(AddressError(format!("the parameter {name} is not supported")));
                }
                _ => return Err(unescaped()),
            }
        }
        // tokio-postgres does not decode `+`.
        let of_driver = rest.finish().replace('+', "%20");
        Ok(Self { tls, root, is_system, passfile, unsafe_settings, of_driver })
    }

    /// Returns the TLS checks, chosen as `libpq` does: if an authority is named, the certificate is always verified.
    fn tls(&self) -> Result<Tls, AddressError> {
        match (self.tls, &self.root) {
            (None | Some(Tls::VerifyFull), _) if self.is_system => Ok(Tls::VerifyFull),
            (Some(_), _) if self.is_system => Err(AddressError::new(
                "sslrootcert=system goes with sslmode=verify-full: anyone can have a certificate",
            )),
            // Without a named authority, any public authority's certificate for any host would be accepted.
            (Some(Tls::VerifyCa), None) => Err(AddressError::new(
                "sslmode=verify-ca needs the authority's certificate: name it by sslrootcert=FILE, or \
                 choose sslmode=verify-full",
            )),
            (Some(Tls::Require), Some(_)) => Ok(Tls::VerifyCa),
            (tls, _) => Ok(tls.unwrap_or(Tls::Prefer)),
        }
    }
}

/// Parameters of `libpq` that the driver lacks. A message may name these, but no other name, because any other may be
/// the rest of a password.
const LIBPQ_PARAMETERS: &[&str] = &[
    "client_encoding",
    "fallback_application_name",
    "gssdelegation",
    "gssencmode",
    "gsslib",
    "krbsrvname",
    "replication",
    "require_auth",
    "requirepeer",
    "requiressl",
    "service",
    "ssl_max_protocol_version",
    "ssl_min_protocol_version",
    "sslcert",
    "sslcertmode",
    "sslcompression",
    "sslcrl",
    "sslcrldir",
    "sslkey",
    "sslpassword",
    "sslsni",
];

fn unescaped() -> AddressError {
    let text = "a parameter is unknown, or a password is not escaped: in a password, write %40 for @, %3F for ? and %26 for &";
    AddressError(text.to_owned())
}

/// Returns `true` if the driver accepts a parameter with this value.
fn is_known(name: &str, value: &str) -> bool {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair(name, value);
    Config::from_str(&format!("postgres://host/?{}", query.finish().replace('+', "%20"))).is_ok()
}

/// Sets the options that must not keep their defaults.
fn set_up(config: &mut Config, tls: Tls) {
    let is_local = config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)));
    config.ssl_mode(match tls {
        // TLS is not used on a Unix socket, and `libpq` does not ask for it there either.
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
            // `allow` would begin without TLS; beginning with TLS is safer.
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

impl FromStr for UnsafeSettings {
    type Err = AddressError;

    fn from_str(word: &str) -> Result<Self, AddressError> {
        match word {
            "refuse" => Ok(Self::Refuse),
            "managed" => Ok(Self::Managed),
            "allow" => Ok(Self::Allow),
            _ => Err(AddressError::new("unsafe_settings is refuse, managed or allow")),
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    use crate::store::postgres::password::passwords_in;

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
    fn no_part_of_a_password_typed_without_escapes_is_shown() {
        let table = [
            "postgres://shop:a@s3cret/b@db.example/parcelo",
            "postgres://shop:a?s3cret@db.example/parcelo",
            "postgres://shop:a@b?s3cret=c@db.example/parcelo",
            "postgres://shop:5432?user=s3cret@db.example/parcelo",
            "postgres://shop@db.example/parcelo?password=a&s3cret",
        ];
        for text in table {
            let refused = Address::parse(text).unwrap_err().to_string();
            assert!(refused.contains("in a password, write %"), "{text}: {refused}");
            assert!(!refused.contains("s3cret"), "{text}: {refused}");
        }
    }

    #[test]
    fn an_address_is_typed_again_without_its_password() {
        for (text, expected) in [
            (
                "postgres://shop:s3cret@db/parcelo?sslmode=require",
                "postgres://shop@db/parcelo?sslmode=require",
            ),
            ("postgres://shop@db/parcelo?password=s3cret", "postgres://shop@db/parcelo"),
            (
                "postgres://shop@/parcelo?host=/run/pg&pass%77ord=s3cret&port=1",
                "postgres://shop@/parcelo?host=/run/pg&port=1",
            ),
            ("postgres://shop:a%40b@db1,db2/parcelo", "postgres://shop@db1,db2/parcelo"),
        ] {
            assert_eq!(Address::parse(text).unwrap().typed(), expected);
        }
    }

    #[test]
    fn unsupported_parameters_of_libpq_are_named_in_the_refusal() {
        for value in ["any", "primary", "read-write"] {
            Address::parse(&format!("postgres://u@a,b/d?target_session_attrs={value}")).unwrap();
        }
        for (query, advice) in [
            ("target_session_attrs=standby", "primary or read-write"),
            ("target_session_attrs=prefer-standby", "primary or read-write"),
            ("target_session_attrs=read-only", "primary or read-write"),
            ("connect_timeout=soon", "connect_timeout has a wrong value"),
            ("channel_binding=never", "channel_binding has a wrong value"),
            ("channel_binding=require", "let sslmode=verify-full check"),
            ("gssencmode=disable", "gssencmode is not supported"),
            ("unsafe_settings=yes", "refuse, managed or allow"),
        ] {
            let refused = Address::parse(&format!("postgres://u@h/d?{query}")).unwrap_err();
            assert!(refused.to_string().contains(advice), "{query}: {refused}");
        }
    }

    #[test]
    fn an_address_without_a_host_or_a_name_is_refused_at_once() {
        for (text, advice) in [
            ("postgres://", "expected postgres://USER@HOST"),
            ("postgres:///parcelo", "expected postgres://USER@HOST"),
            ("postgres://shop@/parcelo", "expected postgres://USER@HOST"),
            ("postgres://shop@db", "name the database: postgres://USER@HOST:PORT/NAME"),
            ("postgres://shop@db/", "name the database: postgres://USER@HOST:PORT/NAME"),
        ] {
            let refused = Address::parse(text).unwrap_err().to_string();
            assert!(refused.contains(advice), "{text}: {refused}");
        }
    }

    #[test]
    fn a_certificate_is_checked_as_libpq_does() {
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
        let any = Address::parse("postgres://u@h/d?sslmode=verify-ca").unwrap_err().to_string();
        assert!(any.contains("name it by sslrootcert=FILE"), "{any}");
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
        let in_file = |url: &str| passwords_in(file, &Config::from_str(url).unwrap());
        let found = |password: &str| vec![Some(password.to_owned())];
        assert_eq!(in_file("postgres://shop@db/parcelo"), found("a:b\\c"));
        assert_eq!(in_file("postgres://shop@db:5433/parcelo"), found("last"));
    }

    #[test]
    fn each_host_is_given_the_password_of_its_own_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("passwords");
        std::fs::write(&file, "db1:5432:*:shop:one\ndb2:6543:*:shop:two\n[::1]:*:*:*:no\n")
            .unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let passwords = |hosts: &str| {
            let text = format!("postgres://{hosts}/parcelo?passfile={}", file.display());
            let address = Address::parse(&text).unwrap();
            let password = |config: &Config| {
                config.get_password().map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
            };
            let all: Vec<_> = address.hosts().iter().map(|host| password(&host.config)).collect();
            (all, address.password_source)
        };
        let some = |password: &str| Some(password.to_owned());
        let (all, source) = passwords("shop@db1,db2:6543,db3");
        assert_eq!((all, source), (vec![some("one"), some("two"), None], PasswordSource::File));
        let (all, source) = passwords("shop@db3");
        assert_eq!((all, source), (vec![None], PasswordSource::Nowhere));
        let (all, source) = passwords("shop:own@db1,db3");
        assert_eq!((all, source), (vec![some("own"), some("own")], PasswordSource::Address));
    }
}
