//! Mock servers of these tests: in memory, or all on PostgreSQL with `PARCELO_TEST_DATABASE=postgres`.

use parcelo_server::{
    internals::Address,
    mock::{Builder, MockServer},
};

use crate::{api::Api, cluster};

/// Starts a mock server with the defaults.
pub(crate) async fn start() -> MockServer {
    builder().start().await
}

/// Starts a mock server with the defaults, and creates a key.
pub(crate) async fn start_with_key() -> (MockServer, Api) {
    let server = start().await;
    let api = Api::with_key(server.url(), &server.key().issue());
    (server, api)
}

/// Returns the builder of a mock server in memory, whichever engine the tests run on, for the given reason.
pub(crate) fn in_memory(_reason: &str) -> Builder {
    MockServer::builder()
}

/// Returns the builder of a mock server.
pub(crate) fn builder() -> Builder {
    match cluster::leaked_test_database_url() {
        None => MockServer::builder(),
        Some(url) => MockServer::builder().postgres(Address::parse(&url).unwrap()),
    }
}
