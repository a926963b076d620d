//! Names become addresses, and only those that may be reached are handed on: what was looked at is
//! what is connected to, whatever the name says a moment later.

use std::{io, net::SocketAddr};

use futures_util::{FutureExt, future::BoxFuture};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::domain::webhooks::AllowedHosts;

/// Finds the addresses of a name.
type LookUp = fn(Name) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>>;

/// Looks names up for webhooks of one reach.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resolver {
    reach: AllowedHosts,
    look_up: LookUp,
}

/// The name leads nowhere that may be reached.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the name has no address that webhooks are sent to")]
pub(super) struct NotAllowed;

impl Resolver {
    /// One that asks the machine.
    pub(super) fn new(reach: AllowedHosts) -> Self {
        Self::asking(reach, |name| {
            async move { Ok(tokio::net::lookup_host((name.as_str(), 0)).await?.collect()) }.boxed()
        })
    }

    pub(super) fn asking(reach: AllowedHosts, look_up: LookUp) -> Self {
        Self { reach, look_up }
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let Self { reach, look_up } = *self;
        Box::pin(async move {
            let found = allowed(look_up(name).await?, reach)?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// The addresses that may be reached.
fn allowed(mut found: Vec<SocketAddr>, reach: AllowedHosts) -> Result<Vec<SocketAddr>, NotAllowed> {
    found.retain(|address| reach.allows(address.ip()));
    if found.is_empty() { Err(NotAllowed) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_mixes_public_and_private_addresses_leads_to_the_public_ones() {
        let at = |text: &str| SocketAddr::new(text.parse().unwrap(), 0);
        let mixed = ["10.0.0.7", "8.8.8.8", "127.0.0.1", "::1"].map(at).to_vec();
        assert_eq!(allowed(mixed.clone(), AllowedHosts::Public).unwrap(), [at("8.8.8.8")]);
        let here = [at("8.8.8.8"), at("127.0.0.1"), at("::1")];
        assert_eq!(allowed(mixed, AllowedHosts::Here).unwrap(), here);
        assert!(allowed(vec![at("169.254.169.254")], AllowedHosts::Public).is_err());
    }

    #[tokio::test]
    async fn a_name_of_this_machine_is_refused_in_production() {
        let name = || "localhost".parse().unwrap();
        let refused = Resolver::new(AllowedHosts::Public).resolve(name()).await.err().unwrap();
        assert!(refused.is::<NotAllowed>(), "{refused}");
        assert!(Resolver::new(AllowedHosts::Here).resolve(name()).await.is_ok());
    }
}
