//! How the key of a server is checked that may not be ours: by its token, by authorities, or not at all.

use super::{Pin, any_key};
use narrows_sys::files;
use narrows_wire::token::Token;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, pem::PemObject as _};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

const MAX_CA_BYTES: u64 = 4 << 20;

/// How the server's key is checked.
#[derive(Debug, Clone)]
pub enum Trust {
    /// It must be that of narrows' token.
    Token(Box<Token>),
    /// An authority of this file must have signed it for the host's name.
    Ca(PathBuf),
    /// An authority that this host trusts must have.
    System,
    /// Any, but the same one throughout.
    Any,
}

/// Why no key can be checked.
#[derive(Debug, Error)]
pub enum TrustError {
    #[error("cannot use {0}: {1}")]
    File(String, String),
    #[error(
        "cannot read the certificate authorities of this host: {0}; install ca-certificates, or name their file: --ca, SSL_CERT_FILE"
    )]
    System(String),
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

impl Trust {
    /// What is said of it in the report.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Token(_) => "the server's key is that of its token".to_owned(),
            Self::Ca(file) => format!("the server's certificate was checked with {}", file.display()),
            Self::System => "the server's certificate was checked with the authorities of this host".to_owned(),
            Self::Any => "the server's key was not checked (--insecure)".to_owned(),
        }
    }

    /// The TLS side of the client, which speaks one of `protocols` (ALPN). No session is resumed: each handshake is a whole one.
    pub(crate) fn config(&self, protocols: &[&[u8]]) -> Result<Arc<ClientConfig>, TrustError> {
        let authorities = match self {
            Self::Token(token) => return Ok(whole(Pin::new(Some(token.fingerprint)).config(protocols)?)),
            Self::Any => return Ok(whole(any_key(protocols)?)),
            Self::Ca(file) => of_file(file)?,
            Self::System => of_system().map_err(TrustError::System)?,
        };
        let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(authorities)
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Ok(whole(config))
    }
}

fn whole(mut config: ClientConfig) -> Arc<ClientConfig> {
    config.resumption = Resumption::disabled();
    Arc::new(config)
}

fn of_file(file: &Path) -> Result<RootCertStore, TrustError> {
    let bad = |why: String| TrustError::File(file.display().to_string(), why);
    let pem = files::read(file, MAX_CA_BYTES).map_err(|error| bad(error.to_string()))?;
    let mut all = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        all.add(certificate.map_err(|error| bad(error.to_string()))?).map_err(|error| bad(error.to_string()))?;
    }
    if all.is_empty() { Err(bad("it holds no certificate in PEM".to_owned())) } else { Ok(all) }
}

/// The authorities that this host trusts.
/// Errors: why there are none.
fn of_system() -> Result<RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut all = RootCertStore::empty();
    all.add_parsable_certificates(found.certs);
    if all.is_empty() {
        return Err(found.errors.first().map_or_else(|| "there are none".to_owned(), ToString::to_string));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_authorities_is_named() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let error = Trust::Ca(file.path().to_owned()).config(&[]).expect_err("empty").to_string();
        assert!(error.contains("holds no certificate"), "{error}");
        assert!(Trust::Ca("/no/such/file".into()).config(&[]).is_err());
    }
}
