//! A mock server over https: its certificate, HTTP/2, and faults of connections.

use parcelo::{Client, ErrorKind, Operation, Outcome};
use parcelo_server::mock::MockServer;

#[tokio::test]
async fn the_client_of_a_server_over_tls_trusts_it_and_no_other_client_does() {
    let server = MockServer::builder().tls().start().await;
    let key = server.key().issue();
    server.faults().on(Operation::CreateOrder).nth(1).after_commit().reset_connection();
    let order = MockServer::order("SB-SUCCESS-0001");
    let created = server.client(&key).orders().create(&order).await.unwrap();
    assert_eq!((created.outcome(), created.meta().attempts), (Outcome::Replayed, 2));
    let link = created.parcel.label_url.as_ref().unwrap();
    assert!(link.as_str().starts_with(server.url()), "links are https too");
    let builder = Client::builder(key).base_url(server.url()).unwrap();
    let error = builder.build().unwrap().health().await.unwrap_err();
    assert!(error.kind() == ErrorKind::Network && !error.may_have_executed(), "{error:?}");
}

#[tokio::test]
async fn both_names_of_the_certificate_are_served_by_http_2_and_by_http_1_1() {
    let server = MockServer::builder().tls().start().await;
    let trusted = reqwest::Certificate::from_pem(server.certificate_pem().as_bytes()).unwrap();
    let with_protocols = |builder: reqwest::ClientBuilder| {
        builder.no_proxy().tls_certs_merge([trusted.clone()]).build().unwrap()
    };
    let clients = [
        (with_protocols(reqwest::Client::builder()), reqwest::Version::HTTP_2),
        (with_protocols(reqwest::Client::builder().http1_only()), reqwest::Version::HTTP_11),
    ];
    for url in [server.url().to_owned(), server.url().replace("127.0.0.1", "localhost")] {
        for (client, version) in &clients {
            let response = client.get(format!("{url}/api/v1/health")).send().await.unwrap();
            assert_eq!((response.status().as_u16(), response.version()), (401, *version), "{url}");
        }
    }
}

#[tokio::test]
async fn the_client_creates_an_order_by_http_2() {
    let server = MockServer::builder().tls().start().await;
    let client = server.client_builder(&server.key().issue()).http2().build().unwrap();
    let order = MockServer::order("SB-SUCCESS-0001");
    assert_eq!(client.orders().create(&order).await.unwrap().outcome(), Outcome::Created);
    server.requests().of(Operation::CreateOrder).assert_count(1);
}
