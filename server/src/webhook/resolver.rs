//! Names become addresses, and only those that may be reached are handed on: what was looked at is
//! what is connected to, whatever the name says a moment later.

use std::net::SocketAddr;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::core::webhooks::Reach;

/// Looks names up for webhooks of one reach.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resolver(pub(super) Reach);

/// The name leads nowhere that may be reached.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the name has no address that webhooks are sent to")]
pub(super) struct NotAllowed;

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.0;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(allowed(found.collect(), reach).map(|found| Box::new(found.into_iter()) as Addrs)?)
        })
    }
}

/// The addresses that may be reached.
fn allowed(mut found: Vec<SocketAddr>, reach: Reach) -> Result<Vec<SocketAddr>, NotAllowed> {
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
        assert_eq!(allowed(mixed.clone(), Reach::Public).unwrap(), [at("8.8.8.8")]);
        let here = [at("8.8.8.8"), at("127.0.0.1"), at("::1")];
        assert_eq!(allowed(mixed, Reach::Here).unwrap(), here);
        assert!(allowed(vec![at("169.254.169.254")], Reach::Public).is_err());
    }

    #[tokio::test]
    async fn a_name_of_this_machine_is_refused_in_production() {
        let name = || "localhost".parse().unwrap();
        let refused = Resolver(Reach::Public).resolve(name()).await.err().unwrap();
        assert!(refused.is::<NotAllowed>(), "{refused}");
        assert!(Resolver(Reach::Here).resolve(name()).await.is_ok());
    }
}
