//! Compressed responses: sent only to clients that accept them, and complete or an error.

use miniz_oxide::deflate::compress_to_vec;
use parcelo::{Client, ClientBuilder, ErrorKind, LabelFormat, Retry};
use wiremock::{Mock, MockServer, ResponseTemplate, matchers::any};

use crate::scripted_transport::{CREATED, key, number, order};

/// Compresses content as a gzip file (RFC 1952).
fn gzip(content: &[u8]) -> Vec<u8> {
    let head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let length = u32::try_from(content.len()).unwrap().to_le_bytes();
    let check = crc32fast::hash(content).to_le_bytes();
    [&head, &compress_to_vec(content, 6)[..], &check, &length].concat()
}

async fn start_with_response(status: u16, body: Vec<u8>) -> MockServer {
    let server = MockServer::start().await;
    let response = ResponseTemplate::new(status).insert_header("content-encoding", "gzip");
    Mock::given(any()).respond_with(response.set_body_bytes(body)).mount(&server).await;
    server
}

fn builder(server: &MockServer) -> ClientBuilder {
    Client::builder(key()).base_url(&server.uri()).unwrap().retry(Retry::none())
}

#[tokio::test]
async fn a_client_with_gzip_decompresses_responses() {
    let server = start_with_response(201, gzip(CREATED.as_bytes())).await;
    let client = builder(&server).gzip().build().unwrap();
    assert!(client.orders().create(&order()).await.is_ok());
    let sent = server.received_requests().await.unwrap();
    assert_eq!(sent[0].headers["accept-encoding"], "gzip");

    let label = b"%PDF-1.7 ".repeat(1000);
    let server = start_with_response(200, gzip(&label)).await;
    let client = builder(&server).gzip().build().unwrap();
    let (folder, number) = (tempfile::tempdir().unwrap(), number());
    let download = client.labels().download(&number, LabelFormat::Pdf);
    assert_eq!(download.clone().bytes().await.unwrap(), label);
    assert_eq!(download.clone().stream().await.unwrap().length(), None);
    let file = folder.path().join("label.pdf");
    assert_eq!(download.save_to(&file).await.unwrap(), 9000);
    assert_eq!(std::fs::read(file).unwrap(), label);
}

#[tokio::test]
async fn a_client_without_gzip_neither_asks_for_nor_accepts_it() {
    let server = start_with_response(200, gzip(b"%PDF-")).await;
    let client = builder(&server).build().unwrap();
    let (folder, number) = (tempfile::tempdir().unwrap(), number());
    let download = client.labels().download(&number, LabelFormat::Pdf);
    let error = download.save_to(folder.path().join("label.pdf")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let error = client.orders().create(&order()).await.unwrap_err();
    assert_eq!((error.kind(), error.may_have_executed()), (ErrorKind::Decode, true));
    let sent = server.received_requests().await.unwrap();
    assert!(sent.iter().all(|request| !request.headers.contains_key("accept-encoding")));
}

#[tokio::test]
async fn a_truncated_compressed_label_is_an_error() {
    let whole = gzip(&b"%PDF-1.7 ".repeat(40));
    let number = number();
    for length in 0..whole.len() {
        // It has the announced length: the file was cut before it was sent.
        let server = start_with_response(200, whole[..length].to_vec()).await;
        let client = builder(&server).gzip().build().unwrap();
        let label = client.labels().download(&number, LabelFormat::Pdf).bytes().await;
        assert!(label.is_err(), "cut after {length} of {}: {label:?}", whole.len());
    }
}

#[tokio::test]
async fn an_invalid_gzip_response_leaves_the_outcome_unknown() {
    let mut corrupted = gzip(CREATED.as_bytes());
    let last = corrupted.len() - 8;
    corrupted[last] ^= 1;
    for body in [b"no gzip".to_vec(), corrupted] {
        let server = start_with_response(201, body).await;
        let client = builder(&server).gzip().build().unwrap();
        let error = client.orders().create(&order()).await.unwrap_err();
        assert!(error.may_have_executed(), "{error:?}");
    }
}

#[tokio::test]
async fn a_gzip_bomb_is_an_error() {
    let server = start_with_response(200, gzip(&vec![b' '; 17 << 20])).await;
    let client = builder(&server).gzip().build().unwrap();
    let label = client.labels().download(&number(), LabelFormat::Pdf).bytes().await;
    assert_eq!(
        label.unwrap_err().to_string(),
        "HTTP 200: The response is larger than allowed. [1 attempt]"
    );
}
