//! The hosts of an address. They are tried in order, and the first that accepts writes is used. The driver has the same
//! feature, but it waits without a limit for a host that accepts a connection and then does not respond, as a frozen
//! primary does before a failover. Its errors also do not name the host.

use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};

use super::password::{PasswordSource, Passwords};

const DEFAULT_PORT: u16 = 5432;

/// One host of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostConfig {
    /// Its name in messages.
    pub(super) name: String,
    /// Its configuration, without a password from the password file.
    pub(super) config: Config,
    passwords: Passwords,
}

impl HostConfig {
    /// Returns the configuration with the present password, and the source of the password.
    pub(super) fn with_password(&self) -> (Config, PasswordSource) {
        let mut config = self.config.clone();
        let source = self.passwords.add_to(&mut config);
        (config, source)
    }
}

/// Returns a configuration for each host of `hosts_config`, with the settings of `common`. Refuses lists of hosts,
/// ports and addresses whose lengths do not match.
pub(super) fn configure_each(
    common: &Config,
    hosts_config: &Config,
    passwords: &Passwords,
) -> Result<Vec<HostConfig>, &'static str> {
    let (hosts, ports) = (hosts_config.get_hosts(), hosts_config.get_ports());
    let addresses = hosts_config.get_hostaddrs();
    if ports.len() > 1 && ports.len() != hosts.len() {
        return Err("name one port for all hosts, or one for each");
    }
    if !addresses.is_empty() && addresses.len() != hosts.len() {
        return Err("name as many in hostaddr as in host");
    }
    let configs = (0..).zip(hosts).map(|(index, host)| {
        let port = ports.get(index).or_else(|| ports.first()).copied().unwrap_or(DEFAULT_PORT);
        let mut config = common.clone();
        let name = match host {
            Host::Tcp(name) if name.contains(':') => format!("[{name}]"),
            Host::Tcp(name) => name.clone(),
            Host::Unix(folder) => folder.display().to_string(),
        };
        match host {
            Host::Tcp(name) => config.host(name),
            // `libpq` does not use TLS on a Unix socket either.
            Host::Unix(folder) => config.host_path(folder).ssl_mode(SslMode::Disable),
        };
        config.port(port);
        if let Some(address) = addresses.get(index) {
            config.hostaddr(*address);
        }
        HostConfig { name: format!("{name}:{port}"), config, passwords: passwords.clone() }
    });
    Ok(configs.collect())
}

#[cfg(test)]
mod tests {
    use crate::postgres::Address;

    #[test]
    fn each_host_is_named_with_its_port() {
        let table = [
            ("postgres://u@db1,db2/d", "db1:5432 db2:5432"),
            ("postgres://u@db1:6000,db2:6001/d", "db1:6000 db2:6001"),
            ("postgres://u@db1:6000,db2/d", "db1:6000 db2:5432"),
            ("postgres://u@/d?host=db1,/run/pg&port=6000", "db1:6000 /run/pg:6000"),
            ("postgres://u@/d?host=db1,db2&port=6000,6001", "db1:6000 db2:6001"),
            ("postgres://u@[::1]:6000/d", "[::1]:6000"),
        ];
        for (text, expected) in table {
            let address = Address::parse(text).unwrap();
            let names: Vec<_> = address.hosts.iter().map(|host| &*host.name).collect();
            assert_eq!(names.join(" "), expected, "{text}");
            assert_eq!(address.to_string(), format!("postgres://{}/d", expected.replace(' ', ",")));
        }
        for (wrong, advice) in [
            ("postgres://u@/d?host=db1,db2,db3&port=6000,6001", "one for each"),
            ("postgres://u@db1,db2/d?hostaddr=127.0.0.1", "hostaddr"),
            ("postgres://u@db1,db2/d?load_balance_hosts=random", "one host takes writes"),
        ] {
            let refused = Address::parse(wrong).unwrap_err().to_string();
            assert!(refused.contains(advice), "{wrong}: {refused}");
        }
    }

    #[test]
    fn each_host_gets_the_settings_of_the_whole_address() {
        let text = "postgres://shop:s3cret@db1:6000,db2/d?hostaddr=127.0.0.1,127.0.0.2&options=-c%20x%3Dy\
             &application_name=n&connect_timeout=7&sslmode=require&channel_binding=disable";
        let address = Address::parse(text).unwrap();
        let second = Address::parse(
            "postgres://shop:s3cret@db2/d?hostaddr=127.0.0.2&options=-c%20x%3Dy\
             &application_name=n&connect_timeout=7&sslmode=require&channel_binding=disable",
        );
        assert_eq!(address.hosts[1], second.unwrap().hosts[0]);
    }
}
