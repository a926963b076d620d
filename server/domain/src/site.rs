//! The service's public addresses, as they appear in responses and on labels.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use parcelo_types::{Environment, LabelFormat, TrackingNumber};
use ulid::Ulid;
use url::{Host, Url};

use super::secrets::Secrets;

/// The public addresses of one environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The environment.
    pub environment: Environment,
    /// The API's URL without a trailing slash; `None` if the environment is not served here and the operator did not
    /// configure its URL.
    pub base_url: Option<String>,
    /// The label files' URL without a trailing slash; it may have a path.
    pub labels_base_url: String,
}

/// Returns the URL of a socket for callers on the same machine. The unspecified address of a socket that listens
/// everywhere is replaced, because it cannot be called.
pub fn local_url(mut address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    format!("http://{address}")
}

impl Site {
    /// Creates the addresses of an environment whose label files are under the API's URL.
    pub fn new(environment: Environment, base_url: &str) -> Self {
        let labels_base_url = format!("{base_url}/files");
        Self { environment, base_url: Some(base_url.to_owned()), labels_base_url }
    }

    /// Returns the API's URL for links, or an empty text if it is unknown, so that links are relative.
    pub fn base_url(&self) -> &str {
        self.base_url.as_deref().unwrap_or_default()
    }

    /// Returns `true` if the URL points to the caller's own machine, so that a QR code with it does not lead to the
    /// service.
    pub fn is_local(&self) -> bool {
        let url = Url::parse(self.base_url()).ok();
        match url.as_ref().and_then(Url::host) {
            Some(Host::Ipv4(address)) => address.is_loopback() || address.is_unspecified(),
            Some(Host::Ipv6(address)) => address.is_loopback() || address.is_unspecified(),
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            None => false,
        }
    }

    /// Returns the same site with another base URL.
    #[must_use]
    pub fn with_base_url(&self, base_url: &str) -> Self {
        let path = self.labels_base_url.strip_prefix(self.base_url());
        let labels_base_url =
            path.map_or_else(|| self.labels_base_url.clone(), |path| format!("{base_url}{path}"));
        Self { environment: self.environment, base_url: Some(base_url.to_owned()), labels_base_url }
    }

    /// Returns the URL of a parcel's public tracking page, which its QR code contains.
    pub fn tracking_url(&self, number: &TrackingNumber) -> String {
        format!("{}/track/{number}", self.base_url())
    }

    /// Returns the capability link to a parcel's label: anyone who has it can read the file.
    pub fn label_url(&self, secrets: &Secrets, number: &TrackingNumber, id: Ulid) -> String {
        self.label_file_url(secrets, number, id, LabelFormat::Pdf)
    }

    /// Returns the capability link to a parcel's label in a format.
    pub fn label_file_url(
        &self,
        secrets: &Secrets,
        number: &TrackingNumber,
        id: Ulid,
        format: LabelFormat,
    ) -> String {
        let signature = secrets.link_signature(self.environment, number, id);
        format!("{}/{number}.{}?sig={signature}", self.labels_base_url, format.extension())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(base_url: &str) -> Site {
        Site::new(Environment::Production, base_url)
    }

    #[test]
    fn a_socket_that_listens_everywhere_has_a_local_url() {
        for (address, url) in [
            ("0.0.0.0:8080", "http://127.0.0.1:8080"),
            ("[::]:8080", "http://[::1]:8080"),
            ("10.0.0.7:80", "http://10.0.0.7:80"),
        ] {
            assert_eq!(local_url(address.parse().unwrap()), url);
        }
    }

    #[test]
    fn an_address_of_the_machine_itself_is_local() {
        for local in
            ["http://127.0.0.1:8080", "http://[::1]:1", "http://localhost", "http://0.0.0.0:1"]
        {
            assert!(site(local).is_local(), "{local}");
        }
        for public in ["https://parcelo.example", "http://10.0.0.7", ""] {
            assert!(!site(public).is_local(), "{public}");
        }
    }

    #[test]
    fn label_files_move_with_their_site_unless_on_another_host() {
        let moved = site("http://127.0.0.1:1").with_base_url("http://mock:8080");
        assert_eq!(moved.labels_base_url, "http://mock:8080/files");
        let apart =
            Site { labels_base_url: "https://labels.test".to_owned(), ..site("http://a.test") };
        assert_eq!(apart.with_base_url("http://b.test").labels_base_url, "https://labels.test");
    }

    #[test]
    fn a_parcels_links_are_under_the_addresses_of_its_site() {
        let number = TrackingNumber::parse("EC7K2M9QX4T8WD0").unwrap();
        let site = site("https://parcelo.example");
        let page = "https://parcelo.example/track/EC7K2M9QX4T8WD0";
        assert_eq!(site.tracking_url(&number), page);
        let secrets = Secrets::derive(&[1; 32]);
        let link = |format| site.label_file_url(&secrets, &number, Ulid::nil(), format);
        // The signature was computed with Python's hmac.
        let zpl = "https://parcelo.example/files/EC7K2M9QX4T8WD0.zpl?sig=XYypS2Nzsrb4NlmfQAssOw";
        assert_eq!(link(LabelFormat::Zpl), zpl);
        let label = site.label_url(&secrets, &number, Ulid::nil());
        assert_eq!(label, link(LabelFormat::Pdf));
    }
}
