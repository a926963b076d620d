//! The SDK's client for an embedded server.

use parcelo::{ApiKey, Client};

use super::MockServer;

impl MockServer {
    /// The SDK over HTTP, with this key.
    ///
    /// # Panics
    ///
    /// Never: the server's own address is one that the client takes.
    pub fn client(&self, key: &ApiKey) -> Client {
        #[expect(clippy::expect_used, reason = "the server's own address is valid")]
        let builder = Client::builder(key.clone()).base_url(self.url()).expect("a valid address");
        #[expect(clippy::expect_used, reason = "the server's own address is valid")]
        builder.build().expect("a client")
    }
}
