//! TLS: the trusted certificate authorities, and the negotiated protocol.

use std::sync::{Arc, Mutex};

use parcelo::{Client, ClientBuilder, ErrorKind, Retry};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, pki_types::PrivatePkcs8KeyDer},
};

use crate::{
    scripted_transport::{RECORD, key, number},
    socket::peer,
};

/// A handshake: the negotiated protocol (ALPN), and the beginning of the first request after it.
struct Handshake {
    alpn: Option<String>,
    head: String,
}

/// A server whose certificate comes from an authority that the machine does not trust. It offers HTTP/2 and responds in
/// HTTP/1.1.
struct PrivateCaServer {
    address: String,
    authority: rcgen::Certificate,
    handshakes: Arc<Mutex<Vec<Handshake>>>,
    _task: tokio::task::JoinSet<()>,
}

impl PrivateCaServer {
    async fn start() -> Self {
        let authority_key = rcgen::KeyPair::generate().unwrap();
        let mut authority = rcgen::CertificateParams::default();
        authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let certificate = authority.self_signed(&authority_key).unwrap();
        let issuer = rcgen::Issuer::new(authority, authority_key);
        let own_key = rcgen::KeyPair::generate().unwrap();
        let own = rcgen::CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        let own = own.signed_by(&own_key, &issuer).unwrap();
        let secret = PrivatePkcs8KeyDer::from(own_key.serialize_der());
        let mut config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![own.der().clone()], secret.into())
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));

        let handshakes: Arc<Mutex<Vec<Handshake>>> = Arc::default();
        let seen = Arc::clone(&handshakes);
        let (address, task) = peer(move |socket| {
            let (acceptor, seen) = (acceptor.clone(), Arc::clone(&seen));
            async move {
                let Ok(mut socket) = acceptor.accept(socket).await else { return };
                let alpn = socket.get_ref().1.alpn_protocol();
                let alpn = alpn.map(|name| String::from_utf8_lossy(name).into_owned());
                let mut head = [0; 4096];
                let length = socket.read(&mut head).await.unwrap_or_default();
                let head = String::from_utf8_lossy(&head[..length]).into_owned();
                seen.lock().unwrap().push(Handshake { alpn, head });
                let length = RECORD.len();
                let response = format!(
                    "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{RECORD}"
                );
                let _ = socket.write_all(response.as_bytes()).await;
                let _ = socket.shutdown().await;
            }
        })
        .await;
        let address = address.replace("http", "https");
        Self { address, authority: certificate, handshakes, _task: task }
    }

    fn builder(&self) -> ClientBuilder {
        Client::builder(key()).base_url(&self.address).unwrap().retry(Retry::none())
    }
}

#[tokio::test]
async fn a_custom_certificate_authority_is_trusted_once_added() {
    let server = PrivateCaServer::start().await;
    let client = server.builder().build().unwrap();
    let error = client.tracking().get(&number()).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Network && error.to_string().contains("TLS"), "{error:?}");
    assert!(!error.may_have_executed());
    let client = client.with_retry(Retry::standard());
    let error = client.tracking().get(&number()).await.unwrap_err();
    assert_eq!(error.attempts(), 1, "it would not be trusted the next time either");
    let other = PrivateCaServer::start().await.authority.pem();
    let (pem, der) = (server.authority.pem(), server.authority.der().to_vec());
    let forms = [pem.clone().into_bytes(), format!("an authority\n{other}{pem}").into_bytes(), der];
    for form in forms {
        let client = server.builder().root_certificate(form).unwrap().build().unwrap();
        client.tracking().get(&number()).await.unwrap();
    }
    let client = server.builder().root_certificate(other).unwrap().build().unwrap();
    assert!(client.tracking().get(&number()).await.is_err(), "the other authority is not trusted");
}

#[tokio::test]
async fn an_invalid_certificate_is_refused() {
    let server = PrivateCaServer::start().await;
    let pem = server.authority.pem();
    let corrupted = pem.replace('A', "!");
    for text in ["", "no certificate", &pem[..pem.len() / 2], &corrupted] {
        let error = server.builder().root_certificate(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{text}");
    }
    let der = server.authority.der();
    for bytes in [&der[..der.len() / 2], b"0"] {
        let built = server.builder().root_certificate(bytes).and_then(ClientBuilder::build);
        assert_eq!(built.unwrap_err().kind(), ErrorKind::Config);
    }
}

/// The result does not depend on the features of reqwest that other crates of a build enable.
#[tokio::test]
async fn http_2_and_gzip_are_offered_only_on_request() {
    let server = PrivateCaServer::start().await;
    let client = server.builder().root_certificate(server.authority.pem()).unwrap();
    client.build().unwrap().tracking().get(&number()).await.unwrap();
    let handshakes = server.handshakes.lock().unwrap();
    let Handshake { alpn, head } = &handshakes[0];
    assert_eq!(alpn.as_deref(), Some("http/1.1"));
    assert!(head.starts_with("GET ") && !head.contains("accept-encoding"), "{head}");
}

#[cfg(feature = "http2")]
#[tokio::test]
async fn http_2_is_negotiated_with_a_service_that_offers_it() {
    let server = PrivateCaServer::start().await;
    let client = server.builder().root_certificate(server.authority.pem()).unwrap();
    // It responds in HTTP/1.1 anyway, not in HTTP/2.
    let error = client.http2().build().unwrap().tracking().get(&number()).await.unwrap_err();
    let handshakes = server.handshakes.lock().unwrap();
    let Handshake { alpn, head } = &handshakes[0];
    assert_eq!(alpn.as_deref(), Some("h2"));
    assert!(head.starts_with("PRI * HTTP/2.0"), "{head}");
    assert!(error.kind() == ErrorKind::Decode, "{error:?}");
}
