//! The hosts of an address. They are tried in order, and the first that accepts writes is used. The driver can do that
//! too, but it waits without limit for a host that accepts a connection and stays silent, as a frozen primary does
//! before a failover, and its errors do not name the host.

use std::time::Duration;

use tokio_postgres::{
    Config,
    config::{Host, LoadBalanceHosts},
};

/// Maximum time for connecting to a host if there are other hosts to try.
const HOST_TIMEOUT: Duration = Duration::from_secs(5);
const DEFAULT_PORT: u16 = 5432;

/// One host of an address.
#[derive(Clone)]
pub(super) struct HostConfig {
    /// Its name in messages.
    pub(super) name: String,
    pub(super) config: Config,
}

/// Refuses lists of different lengths, and a random order of the hosts, because only one host accepts writes and trying
/// the others would be in vain.
pub(super) fn check(config: &Config) -> Result<(), &'static str> {
    let (hosts, ports) = (config.get_hosts().len(), config.get_ports().len());
    let addresses = config.get_hostaddrs().len();
    if ports > 1 && ports != hosts {
        return Err("name one port for all hosts, or one for each");
    }
    if addresses > 0 && addresses != hosts {
        return Err("name as many in hostaddr as in host");
    }
    if config.get_load_balance_hosts() != LoadBalanceHosts::Disable {
        return Err("load_balance_hosts is not supported: one host takes writes");
    }
    Ok(())
}

/// Returns the hosts' names for messages.
pub(super) fn names(config: &Config) -> impl Iterator<Item = String> {
    (0..).zip(config.get_hosts()).map(|(place, host)| {
        let port = port(config, place);
        match host {
            Host::Tcp(name) if name.contains(':') => format!("[{name}]:{port}"),
            Host::Tcp(name) => format!("{name}:{port}"),
            Host::Unix(folder) => format!("{}:{port}", folder.display()),
        }
    })
}

/// Returns the port of the host at a position.
pub(super) fn port(config: &Config, place: usize) -> u16 {
    let ports = config.get_ports();
    ports.get(place).or_else(|| ports.first()).copied().unwrap_or(DEFAULT_PORT)
}

/// Returns a separate address for each host, with the settings that `set_up` makes.
pub(super) fn each(config: &Config, set_up: impl Fn(&mut Config)) -> Vec<HostConfig> {
    let hosts = (0..).zip(config.get_hosts()).zip(names(config));
    let hosts = hosts.map(|((place, host), name)| {
        let mut one = without_hosts(config);
        match host {
            Host::Tcp(name) => one.host(name),
            Host::Unix(folder) => one.host_path(folder),
        };
        one.port(port(config, place));
        if let Some(address) = config.get_hostaddrs().get(place) {
            one.hostaddr(*address);
        }
        set_up(&mut one);
        HostConfig { name, config: one }
    });
    hosts.collect()
}

/// Returns a new configuration without the hosts, because the driver cannot remove hosts from a configuration.
fn without_hosts(config: &Config) -> Config {
    let mut one = Config::new();
    if let Some(user) = config.get_user() {
        one.user(user);
    }
    if let Some(password) = config.get_password() {
        one.password(password);
    }
    if let Some(name) = config.get_dbname() {
        one.dbname(name);
    }
    if let Some(options) = config.get_options() {
        one.options(options);
    }
    if let Some(name) = config.get_application_name() {
        one.application_name(name);
    }
    if let Some(limit) = config.get_connect_timeout() {
        one.connect_timeout(*limit);
    }
    one.ssl_negotiation(config.get_ssl_negotiation());
    one.channel_binding(config.get_channel_binding());
    one
}

/// Returns the maximum time for each host; no host may take longer than `max`.
pub(super) fn time_for_each(hosts: usize, max: Duration) -> Duration {
    if hosts > 1 { max.min(HOST_TIMEOUT) } else { max }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::postgres::Address;

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
            let hosts = address.hosts();
            let of_one: Vec<_> = hosts.iter().flat_map(|host| names(&host.config)).collect();
            assert_eq!(of_one.join(" "), expected, "{text}");
            assert!(
                hosts.iter().all(|host| names(&host.config).next().as_ref() == Some(&host.name))
            );
            let name = format!("postgres://{}/d", expected.replace(' ', ","));
            assert_eq!(address.to_string(), name);
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
    fn the_address_of_one_host_is_the_whole_one_but_for_the_others() {
        let text = "postgres://shop:s3cret@db1:6000,db2/d?hostaddr=127.0.0.1,127.0.0.2&options=-c%20x%3Dy\
             &application_name=n&connect_timeout=7&sslmode=require&channel_binding=disable";
        let address = Address::parse(text).unwrap();
        let second = Address::parse(
            "postgres://shop:s3cret@db2/d?hostaddr=127.0.0.2&options=-c%20x%3Dy\
             &application_name=n&connect_timeout=7&sslmode=require&channel_binding=disable",
        );
        assert_eq!(address.hosts()[1].config, second.unwrap().config);
    }
}
