//! The encrypted way to the database, over the one TLS stack of this program.
//!
//! A certificate that cannot be verified, or of another name, ends the
//! connection before a password is sent. There is no way to switch that off.

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsConnector;

use super::address::Roots;
use crate::{StoreError, error::Said};

/// Where the usual systems keep whom they trust.
const SYSTEM: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// What makes encrypted connections.
#[derive(Clone)]
pub(super) struct Encryption {
    config: Arc<ClientConfig>,
}

impl Encryption {
    pub(super) fn new(roots: &Roots) -> Result<Self, StoreError> {
        let path = match roots {
            Roots::File(path) => path.clone(),
            Roots::System => SYSTEM
                .iter()
                .map(PathBuf::from)
                .find(|path| path.is_file())
                .ok_or_else(|| unusable(Path::new("/etc/ssl/certs"), "no certificates there"))?,
        };
        let pem =
            std::fs::read(&path).map_err(|error| StoreError::file("read", path.clone(), error))?;
        let mut trusted = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            let certificate = certificate
                .map_err(|error| unusable(&path, &format!("not certificates: {error}")))?;
            // A machine's list may have one that we cannot use; the others count.
            let added = trusted.add(certificate);
            if let (Err(error), Roots::File(_)) = (added, roots) {
                return Err(unusable(&path, &error.to_string()));
            }
        }
        if trusted.is_empty() {
            return Err(unusable(&path, "no certificate in it"));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(&path, &error.to_string()))?
            .with_root_certificates(trusted)
            .with_no_client_auth();
        Ok(Self {
            config: Arc::new(config),
        })
    }
}

fn unusable(path: &Path, why: &str) -> StoreError {
    StoreError::File {
        action: "take certificates from",
        path: path.to_owned(),
        cause: Arc::new(Said(why.to_owned())),
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Encryption {
    type Stream = Encrypted<S>;
    type TlsConnect = Handshake;
    type Error = InvalidDnsNameError;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Handshake, InvalidDnsNameError> {
        Ok(Handshake {
            name: ServerName::try_from(domain)?.to_owned(),
            connector: TlsConnector::from(Arc::clone(&self.config)),
        })
    }
}

/// One connection about to be encrypted.
pub(super) struct Handshake {
    name: ServerName<'static>,
    connector: TlsConnector,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Handshake {
    type Stream = Encrypted<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let stream = self.connector.connect(self.name, stream).await?;
            Ok(Encrypted { stream })
        })
    }
}

/// An encrypted connection.
pub(super) struct Encrypted<S> {
    stream: tokio_rustls::client::TlsStream<S>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Encrypted<S> {
    fn channel_binding(&self) -> ChannelBinding {
        // The server's name was verified already.
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
