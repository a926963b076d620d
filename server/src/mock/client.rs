//! The SDK's client for an embedded server, in the server's time.

use parcelo::{ApiKey, Client, ClientBuilder};

use super::MockServer;

impl MockServer {
    /// The SDK over HTTP, with this key.
    ///
    /// It lives in the server's time: how old an idempotency key is follows the server's clock, and nothing
    /// else. So a key expires when the clock is moved, and never because a test takes long; what the client
    /// waits for, sleeps and time-outs, is tokio's time, and moves no clock that is frozen.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    ///
    /// use parcelo::ErrorKind;
    /// use parcelo_server::mock::MockServer;
    ///
    /// let server = MockServer::start().await;
    /// let client = server.client(&server.key().issue());
    /// let order = MockServer::order("SB-SUCCESS-0001");
    /// client.orders().create(&order).await?;
    /// server.clock().advance(Duration::from_secs(24 * 3600)).await;
    /// let error = client.orders().create(&order).await.unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::KeyExpired); // and nothing was sent
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// Never: the server's own address is one that the client takes.
    pub fn client(&self, key: &ApiKey) -> Client {
        #[expect(clippy::expect_used, reason = "the server's own address is valid")]
        self.client_builder(key).build().expect("a client")
    }

    /// The same, for a client whose time-outs or retries are to be set.
    ///
    /// # Panics
    ///
    /// Never: the server's own address is one that the client takes.
    pub fn client_builder(&self, key: &ApiKey) -> ClientBuilder {
        #[expect(clippy::expect_used, reason = "the server's own address is valid")]
        let builder = Client::builder(key.clone()).base_url(self.url()).expect("a valid address");
        builder.service_clock(self.clock().reader())
    }
}
