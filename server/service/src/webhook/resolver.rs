//! Resolves names to addresses, and returns only those that are allowed. The connection goes to an address that was
//! checked, even if the name changes afterwards.

use std::{io, net::SocketAddr};

use futures_util::{FutureExt, future::BoxFuture};
use parcelo_domain::webhooks::AllowedHosts;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// A function that looks up the addresses of a name.
type AddressLookup = fn(Name) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>>;

/// A DNS resolver that returns allowed addresses only.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resolver {
    hosts: AllowedHosts,
    lookup: AddressLookup,
}

/// The error for a name without an allowed address.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the name has no address that webhooks are sent to")]
pub(super) struct HostNotAllowed;

impl Resolver {
    /// Creates a resolver that uses the system's name resolution.
    pub(super) fn new(hosts: AllowedHosts) -> Self {
        Self::with_lookup(hosts, |name| {
            async move { Ok(tokio::net::lookup_host((name.as_str(), 0)).await?.collect()) }.boxed()
        })
    }

    pub(super) fn with_lookup(hosts: AllowedHosts, lookup: AddressLookup) -> Self {
        Self { hosts, lookup }
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let Self { hosts, lookup } = *self;
        Box::pin(async move {
            let addresses = retain_allowed(lookup(name).await?, hosts)?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// Returns the addresses that are allowed, or an error if there are none.
fn retain_allowed(
    mut addresses: Vec<SocketAddr>,
    hosts: AllowedHosts,
) -> Result<Vec<SocketAddr>, HostNotAllowed> {
    addresses.retain(|address| hosts.allows(address.ip()));
    if addresses.is_empty() { Err(HostNotAllowed) } else { Ok(addresses) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_mixed_addresses_leads_to_the_public_ones() {
        let at = |text: &str| SocketAddr::new(text.parse().unwrap(), 0);
        let mixed = ["10.0.0.7", "8.8.8.8", "127.0.0.1", "::1"].map(at).to_vec();
        assert_eq!(retain_allowed(mixed.clone(), AllowedHosts::Public).unwrap(), [at("8.8.8.8")]);
        let public_and_loopback = [at("8.8.8.8"), at("127.0.0.1"), at("::1")];
        assert_eq!(
            retain_allowed(mixed, AllowedHosts::PublicAndLoopback).unwrap(),
            public_and_loopback
        );
        assert!(retain_allowed(vec![at("169.254.169.254")], AllowedHosts::Public).is_err());
    }

    #[tokio::test]
    async fn localhost_is_refused_in_production() {
        let name = || "localhost".parse().unwrap();
        let refused = Resolver::new(AllowedHosts::Public).resolve(name()).await.err().unwrap();
        assert!(refused.is::<HostNotAllowed>(), "{refused}");
        assert!(Resolver::new(AllowedHosts::PublicAndLoopback).resolve(name()).await.is_ok());
    }
}
