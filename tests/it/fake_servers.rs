//! Fake servers that do what the real one never does: cut connections, never respond, always give the same response, or
//! have an untrusted certificate.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::{
        Notify,
        mpsc::{self, UnboundedReceiver},
    },
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, pki_types::PrivatePkcs8KeyDer},
};

/// Returns the address of a port on which nothing listens, and which no other process can get.
pub(crate) fn unused_address() -> String {
    let held: &TcpSocket = Box::leak(Box::new(TcpSocket::new_v4().unwrap()));
    held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    format!("http://{}", held.local_addr().unwrap())
}

/// Starts a server that reads each request and closes the connection.
pub(crate) async fn start_closing_connections() -> String {
    let (listener, url) = listen().await;
    tokio::spawn(async move {
        loop {
            let mut stream = listener.accept().await.unwrap().0;
            take_request(&mut stream).await;
        }
    });
    url
}

/// Starts a server that reads one request, notifies the test, and never responds.
pub(crate) async fn start_silent() -> (String, Arc<Notify>) {
    let (listener, url) = listen().await;
    let taken = Arc::new(Notify::new());
    let sender = Arc::clone(&taken);
    tokio::spawn(async move {
        let mut stream = listener.accept().await.unwrap().0;
        take_request(&mut stream).await;
        sender.notify_one();
        std::future::pending::<()>().await;
    });
    (url, taken)
}

/// Starts a server that gives every request the same head and body as its response.
pub(crate) async fn start_with_response(head: &'static str, body: &'static str) -> String {
    let (listener, url) = listen().await;
    tokio::spawn(async move {
        loop {
            let mut stream = listener.accept().await.unwrap().0;
            take_request(&mut stream).await;
            let length = body.len();
            let response = format!(
                "HTTP/1.1 {head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
            stream.write_all(response.as_bytes()).await.unwrap();
        }
    });
    url
}

/// Starts a server that responds to every request with this status, and sends the request unchanged to the test.
pub(crate) async fn start_recording(status: &'static str) -> (String, UnboundedReceiver<Vec<u8>>) {
    let (listener, url) = listen().await;
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let mut stream = listener.accept().await.unwrap().0;
            let request = take_request(&mut stream).await;
            let response =
                format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            stream.write_all(response.as_bytes()).await.unwrap();
            sender.send(request).unwrap();
        }
    });
    (url, receiver)
}

/// A TLS server whose certificate comes from an authority that no machine trusts.
pub(crate) struct UntrustedServer {
    pub(crate) url: String,
    /// The authority's certificate as PEM.
    pub(crate) authority: String,
    pub(crate) connections: Arc<AtomicUsize>,
}

/// Starts a TLS server that refuses every API key.
pub(crate) async fn start_untrusted_tls() -> UntrustedServer {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let pem = authority.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(authority, key);
    let key = KeyPair::generate().unwrap();
    let own = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    let own = own.signed_by(&key, &issuer).unwrap().der().clone();
    let config = ServerConfig::builder().with_no_client_auth();
    let secret = PrivatePkcs8KeyDer::from(key.serialize_der());
    let config = config.with_single_cert(vec![own], secret.into()).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let (listener, url) = listen().await;
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    tokio::spawn(async move {
        loop {
            let stream = listener.accept().await.unwrap().0;
            counted.fetch_add(1, Ordering::Relaxed);
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            stream.read_buf(&mut Vec::with_capacity(4096)).await.unwrap();
            let body =
                r#"{"success":false,"error":{"code":"AUTH_INVALID_API_KEY","message":"No."}}"#;
            let length = body.len();
            let response = format!(
                "HTTP/1.1 401 No\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
            stream.write_all(response.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
        }
    });
    UntrustedServer { url: url.replace("http:", "https:"), authority: pem, connections }
}

async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, url)
}

/// Reads the head, and as many bytes of the body as it announces, so that closing does not reset the connection.
async fn take_request(stream: &mut TcpStream) -> Vec<u8> {
    let mut request = Vec::new();
    while stream.read_buf(&mut request).await.unwrap_or(0) > 0 {
        let text = String::from_utf8_lossy(&request).to_ascii_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
        if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
            break;
        }
    }
    request
}
