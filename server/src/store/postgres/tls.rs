//! TLS to PostgreSQL with rustls: the interface that tokio-postgres requires, and the checks of `sslmode`.

use std::{
    convert::Infallible,
    fs, io,
    path::Path,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore,
        SignatureScheme,
        client::{
            WebPkiServerVerifier,
            danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        },
        crypto::{
            CryptoProvider, aws_lc_rs::default_provider, verify_tls12_signature,
            verify_tls13_signature,
        },
        pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
    },
};

use super::address::{Address, Tls};

/// The encryption of connections to one address.
#[derive(Clone)]
pub(super) struct Encryption(TlsConnector);

impl Encryption {
    pub(super) fn new(address: &Address) -> Result<Self, String> {
        let provider = Arc::new(default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let known = || roots(address.root_certificates.as_deref());
        let authorities = match address.tls {
            Tls::VerifyFull => {
                let config = builder.with_root_certificates(known()?).with_no_client_auth();
                return Ok(Self(TlsConnector::from(Arc::new(config))));
            }
            Tls::VerifyCa => {
                let (roots, provider) = (Arc::new(known()?), Arc::clone(&provider));
                let full = WebPkiServerVerifier::builder_with_provider(roots, provider);
                Some(full.build().map_err(|error| error.to_string())?)
            }
            Tls::Disable | Tls::Prefer | Tls::Require => None,
        };
        let verifier = Arc::new(Lenient { authorities, provider });
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
        Ok(Self(TlsConnector::from(Arc::new(builder.with_no_client_auth()))))
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
struct Lenient {
    /// `verify-ca`: a known authority's certificate, for any host. `None`: any server is accepted.
    authorities: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(authorities) = &self.authorities else {
            return Ok(ServerCertVerified::assertion());
        };
        match authorities.verify_server_cert(certificate, chain, host, ocsp, now) {
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
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl<S> MakeTlsConnect<S> for Encryption
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Encrypted<S>;
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

impl<S> TlsConnect<S> for Handshake
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Encrypted<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let host = self.host.ok_or(io::ErrorKind::InvalidInput)?;
            let stream = self.connector.connect(host, stream).await?;
            Ok(Encrypted(Box::pin(stream)))
        })
    }
}

/// An encrypted stream.
pub(super) struct Encrypted<S>(Pin<Box<tokio_rustls::client::TlsStream<S>>>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Encrypted<S> {
    fn channel_binding(&self) -> ChannelBinding {
        // SCRAM without channel binding is the fallback of `channel_binding=prefer`.
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.as_mut().poll_write(context, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_shutdown(context)
    }
}
