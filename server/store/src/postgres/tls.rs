//! TLS to PostgreSQL with rustls: the interface that tokio-postgres requires, and the checks of `sslmode`.

use std::{convert::Infallible, fs, io, path::Path, pin::Pin, sync::Arc};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream as Stream,
    rustls::{
        CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore,
        SignatureScheme,
        client::{
            WebPkiServerVerifier,
            danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        },
        crypto::aws_lc_rs::default_provider,
        pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
    },
};

use super::address::{Address, Tls};

/// The encryption of connections to one address.
#[derive(Clone)]
pub(super) struct Encryption(TlsConnector);

impl Encryption {
    pub(super) fn new(address: &Address) -> Result<Self, String> {
        let is_checked = matches!(address.tls, Tls::VerifyCa | Tls::VerifyFull);
        let roots = roots(address.root_certificates.as_deref().filter(|_| is_checked))?;
        let provider = Arc::new(default_provider());
        let full = WebPkiServerVerifier::builder_with_provider(roots.into(), Arc::clone(&provider));
        let full = full.build().map_err(|error| error.to_string())?;
        let verifier: Arc<dyn ServerCertVerifier> = match address.tls {
            Tls::VerifyFull => full,
            Tls::VerifyCa | Tls::Disable | Tls::Prefer | Tls::Require => {
                Arc::new(LenientVerifier { full, is_checked })
            }
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }
}

fn roots(file: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let Some(file) = file else {
        let (_added, _ignored) = roots
            .add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
        return Ok(roots);
    };
    let failed = |error: &dyn std::fmt::Display| {
        format!("the certificates in {} cannot be read ({error})", file.display())
    };
    let text = fs::read(file).map_err(|error| failed(&error))?;
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| failed(&error))?;
        roots.add(certificate).map_err(|error| failed(&error))?;
    }
    if roots.is_empty() {
        return Err(failed(&"there are none in it"));
    }
    Ok(roots)
}

/// A verifier for modes in which `libpq` checks less than rustls would.
#[derive(Debug)]
struct LenientVerifier {
    full: Arc<WebPkiServerVerifier>,
    /// `true` for `verify-ca`: a known authority's certificate, for any host. Otherwise any server is accepted.
    is_checked: bool,
}

impl ServerCertVerifier for LenientVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if !self.is_checked {
            return Ok(ServerCertVerified::assertion());
        }
        match self.full.verify_server_cert(certificate, chain, host, ocsp, now) {
            // Rustls checks the name last, so everything else is right.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            checked => checked,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.full.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.full.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.full.supported_verify_schemes()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Encryption {
    type Stream = Pin<Box<dyn EncryptedStream>>;
    type TlsConnect = Handshake;
    type Error = Infallible;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, Infallible> {
        // This is also called for a Unix socket, which has no name and no handshake.
        let host = ServerName::try_from(host.to_owned()).ok();
        Ok(Handshake { connector: self.0.clone(), host })
    }
}

/// A handshake that has not begun.
pub(super) struct Handshake {
    connector: TlsConnector,
    host: Option<ServerName<'static>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Handshake {
    type Stream = Pin<Box<dyn EncryptedStream>>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Stream>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let host = self.host.ok_or(io::ErrorKind::InvalidInput)?;
            let stream = self.connector.connect(host, stream).await?;
            Ok(Box::pin(stream) as Pin<Box<dyn EncryptedStream>>)
        })
    }
}

/// An encrypted stream. The orphan rule requires this trait: the driver's trait cannot be implemented for a stream of
/// another crate.
pub(super) trait EncryptedStream: AsyncRead + AsyncWrite + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> EncryptedStream for Stream<S> {}

impl TlsStream for Pin<Box<dyn EncryptedStream>> {
    fn channel_binding(&self) -> ChannelBinding {
        // SCRAM without channel binding is the fallback of `channel_binding=prefer`.
        ChannelBinding::none()
    }
}
