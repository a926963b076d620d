//! The address of a database, as `libpq` defines it: the hosts, the password and the TLS checks. No message or debug
//! output of this module contains a password.

use std::{error::Error as _, fmt, path::PathBuf, str::FromStr, time::Duration};

use tokio_postgres::{Config, config::SslMode};
use url::form_urlencoded::{self, Serializer};

use super::{
    hosts::{self, HostConfig},
    password::{self, has_unescaped_password, without_password},
};

/// Maximum time for connecting to one IP address of a host.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum time for PostgreSQL's answer to a statement, longer than `statement_timeout` (15 s). A proxy that has lost
/// its connection to PostgreSQL may still acknowledge our bytes, so neither keepalives nor `tcp_user_timeout` detect
/// the loss.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum time for which sent bytes may stay unacknowledged. A dead connection must be detected soon, because it keeps
/// its locks.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(15);
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 3;
/// Parameters of `libpq` that the driver lacks. Messages quote only these names, because any other text may be a part
/// of an unescaped password.
const LIBPQ_PARAMETERS: &str = "client_encoding fallback_application_name gssdelegation gssencmode gsslib krbsrvname \
     replication require_auth requirepeer requiressl service ssl_max_protocol_version ssl_min_protocol_version sslcert \
     sslcertmode sslcompression sslcrl sslcrldir sslkey sslpassword sslsni";

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
    /// The hosts, in the order in which they are tried.
    pub(super) hosts: Vec<HostConfig>,
    pub(super) tls: Tls,
    /// The file with the authorities' certificates; `None` means the bundled ones of Mozilla.
    pub(super) root_certificates: Option<PathBuf>,
    /// The policy for settings that let a crash lose data.
    pub(super) unsafe_settings: UnsafeSettings,
    /// Maximum time for PostgreSQL's answer to a statement before the connection is given up.
    pub(super) answer_timeout: Duration,
    /// The address without user and password, for messages.
    pub(super) name: String,
    /// The address as it was typed, without a password.
    pub(super) typed: String,
}

/// The policy for `fsync = off` and `full_page_writes = off`, named as in `unsafe_settings`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnsafeSettings {
    /// A database with these settings is refused.
    Refuse,
    /// These settings are accepted: a crash loses nothing, because the provider does not keep the log on PostgreSQL's
    /// disk.
    Managed,
    /// These settings are accepted although a crash may lose data: for tests.
    Allow,
}

/// An error in an address. Its message does not quote the address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AddressError(String);

impl AddressError {
    fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }

    fn malformed() -> Self {
        Self::new("expected postgres://USER@HOST:PORT/NAME")
    }

    fn unescaped() -> Self {
        Self::new(
            "a parameter is unknown, or a password is not escaped: in a password, write %40 for @, %3F for ? and %26 \
             for &",
        )
    }
}

impl Address {
    /// Parses `postgres://user@host:port/name?sslmode=verify-full`. If it has no password, `PGPASSWORD` and the
    /// password file are searched.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let (base, query) = text.split_once('?').unwrap_or((text, ""));
        let (scheme, authority_and_path) =
            base.split_once("://").ok_or_else(AddressError::malformed)?;
        if has_unescaped_password(authority_and_path, query) {
            return Err(AddressError::unescaped());
        }
        let parameters = Parameters::parse(query)?;
        let (userinfo, hosts_and_name) =
            authority_and_path.split_at(authority_and_path.find('@').map_or(0, |at| at + 1));
        let (host_list, name) = hosts_and_name.split_once('/').unwrap_or((hosts_and_name, ""));
        // The driver cannot remove a host from a configuration, so the common part is read without the hosts.
        let mut common =
            parse_with_driver(&format!("{scheme}://{userinfo}/{name}?{}", parameters.common))?;
        let hosts_config =
            parse_with_driver(&format!("{scheme}://{host_list}/?{}", parameters.hosts))?;
        // Without a host, the address would fail only later, as an unreachable server. Without a name, the driver would
        // use the database that is named like the user.
        if hosts_config.get_hosts().is_empty() {
            return Err(AddressError::malformed());
        }
        let Some(name) = common.get_dbname().map(str::to_owned) else {
            return Err(AddressError::new("name the database: postgres://USER@HOST:PORT/NAME"));
        };
        let tls = parameters.tls()?;
        apply_defaults(&mut common, tls);
        let passwords = password::find(&mut common, parameters.passfile);
        let hosts =
            hosts::configure_each(&common, &hosts_config, &passwords).map_err(AddressError::new)?;
        let names: Vec<_> = hosts.iter().map(|host| &*host.name).collect();
        Ok(Self {
            name: format!("postgres://{}/{name}", names.join(",")),
            hosts,
            tls,
            root_certificates: parameters
                .sslrootcert
                .filter(|sslrootcert| sslrootcert != SYSTEM)
                .map(PathBuf::from),
            unsafe_settings: parameters.unsafe_settings,
            answer_timeout: ANSWER_TIMEOUT,
            typed: without_password([scheme, userinfo, hosts_and_name, query]),
        })
    }

    /// Returns the address without user and password, for messages.
    pub(super) fn name(&self) -> String {
        self.name.clone()
    }

    /// Returns the address as it was typed, without a password, so that it can be typed again.
    pub fn typed(&self) -> &str {
        &self.typed
    }
}

/// The value of `sslrootcert` that means the authorities that browsers trust.
const SYSTEM: &str = "system";

/// The parameters of an address, from its query string.
struct Parameters {
    tls: Option<Tls>,
    sslrootcert: Option<String>,
    passfile: Option<PathBuf>,
    unsafe_settings: UnsafeSettings,
    /// The parameters `host`, `port` and `hostaddr`, in the form that the driver reads.
    hosts: String,
    /// All other parameters, in the same form.
    common: String,
}

impl Parameters {
    fn parse(query: &str) -> Result<Self, AddressError> {
        let (mut tls, mut sslrootcert, mut passfile) = (None, None, None);
        let mut unsafe_settings = UnsafeSettings::Refuse;
        let (mut hosts, mut common) =
            (Serializer::new(String::new()), Serializer::new(String::new()));
        let refuse = |reason: &str| Err(AddressError::new(reason));
        // `libpq` reads `+` literally, but the form decoder would read it as a space.
        for (name, value) in form_urlencoded::parse(query.replace('+', "%2B").as_bytes()) {
            match (&*name, &*value) {
                ("sslmode", word) => tls = Some(Tls::from_str(word)?),
                ("sslrootcert", file) => sslrootcert = Some(file.to_owned()),
                ("passfile", file) => passfile = Some(PathBuf::from(file)),
                ("unsafe_settings", word) => unsafe_settings = UnsafeSettings::from_str(word)?,
                // The store itself always looks for the host that accepts writes.
                ("target_session_attrs", "any" | "primary" | "read-write") => {}
                ("target_session_attrs", _) => {
                    return refuse(
                        "target_session_attrs is primary or read-write: servers and commands write",
                    );
                }
                ("load_balance_hosts", value) if value != "disable" => {
                    return refuse("load_balance_hosts is not supported: one host takes writes");
                }
                ("channel_binding", "require") => {
                    return refuse(
                        "channel_binding=require is not supported: leave it out, and let \
                         sslmode=verify-full check who answers",
                    );
                }
                // In a URL, the driver reads a list of hosts as one host.
                ("host", list) => {
                    hosts.extend_pairs(list.split(',').map(|host| ("host", host)));
                }
                ("port" | "hostaddr", list) => drop(hosts.append_pair(&name, list)),
                (name, _) if LIBPQ_PARAMETERS.split(' ').any(|parameter| parameter == name) => {
                    return refuse(&format!("the parameter {name} is not supported"));
                }
                (name, value) => drop(common.append_pair(name, value)),
            }
        }
        // tokio-postgres does not decode `+`.
        let [hosts, common] =
            [hosts, common].map(|mut serializer| serializer.finish().replace('+', "%20"));
        Ok(Self { tls, sslrootcert, passfile, unsafe_settings, hosts, common })
    }

    /// Returns the TLS checks, chosen as `libpq` does: if an authority is named, the certificate is always verified.
    fn tls(&self) -> Result<Tls, AddressError> {
        match (self.tls, self.sslrootcert.as_deref()) {
            (None | Some(Tls::VerifyFull), Some(SYSTEM)) => Ok(Tls::VerifyFull),
            (Some(_), Some(SYSTEM)) => Err(AddressError::new(
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

/// Parses a part of an address with the driver. The driver's errors are replaced, because they may quote a part of a
/// password. Only the name of a parameter that the driver knows is kept.
fn parse_with_driver(text: &str) -> Result<Config, AddressError> {
    Config::from_str(text).map_err(|error| {
        let reason = error.source().map(ToString::to_string).unwrap_or_default();
        match reason.split_once(" `") {
            Some(("unknown option", _)) => AddressError::unescaped(),
            Some(("invalid value for option", "host`" | "port`")) => AddressError::malformed(),
            Some(("invalid value for option", name)) => {
                let name = name.trim_end_matches('`');
                AddressError::new(format!("the parameter {name} has a wrong value"))
            }
            _ => AddressError::malformed(),
        }
    })
}

/// Sets the options that must not keep their defaults.
fn apply_defaults(config: &mut Config, tls: Tls) {
    if config.get_application_name().is_none() {
        config.application_name("parcelo-server");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    config
        .ssl_mode(match tls {
            Tls::Disable => SslMode::Disable,
            Tls::Prefer => SslMode::Prefer,
            Tls::Require | Tls::VerifyCa | Tls::VerifyFull => SslMode::Require,
        })
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
            // `libpq` tries `allow` without TLS first; trying TLS first is safer.
            "allow" | "prefer" => Self::Prefer,
            "require" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" => Self::VerifyFull,
            _ => {
                return Err(AddressError::new(
                    "sslmode is disable, allow, prefer, require, verify-ca or verify-full",
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
        write!(f, "Address({self})")
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

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
    fn the_typed_address_omits_the_password() {
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
    fn a_plus_in_a_parameter_is_read_literally() {
        let address = Address::parse("postgres://u@h/d?password=a+b%20c").unwrap();
        assert_eq!(address.hosts[0].config.get_password(), Some(b"a+b c".as_slice()));
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
    fn certificates_are_checked_as_in_libpq() {
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
        assert_eq!(local.hosts[0].config.get_ssl_mode(), SslMode::Disable);
    }

    #[test]
    fn each_host_gets_the_password_of_its_line_as_in_libpq() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("passwords");
        let lines = "# a comment\nother:*:*:*:no\ndb1:5432:*:shop:one\ndb2:6543:parcelo:shop:a\\:b\\\\c\n\
             [::1]:*:*:*:no\n*:7000:*:*:last";
        std::fs::write(&file, lines).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        for (hosts, expected) in [
            ("shop@db1,db2:6543,db3:7000", "File:one File:a:b\\c File:last"),
            ("shop@db1,db3", "File:one Nowhere:"),
            ("shop:own@db1,db3", "Address:own Address:own"),
        ] {
            let text = format!("postgres://{hosts}/parcelo?passfile={}", file.display());
            let address = Address::parse(&text).unwrap();
            let passwords = address.hosts.iter().map(|host| {
                let (config, source) = host.with_password();
                let password = config.get_password().unwrap_or_default();
                format!("{source:?}:{}", String::from_utf8_lossy(password))
            });
            assert_eq!(passwords.collect::<Vec<_>>().join(" "), expected, "{hosts}");
        }
        let text = format!("postgres://shop@db1/parcelo?passfile={}", file.display());
        let address = Address::parse(&text).unwrap();
        std::fs::write(&file, "db1:*:*:*:changed").unwrap();
        let (config, _) = address.hosts[0].with_password();
        assert_eq!(config.get_password(), Some(b"changed".as_slice()), "no restart is needed");
    }
}
