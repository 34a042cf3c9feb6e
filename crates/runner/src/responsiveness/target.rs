//! The server of a test as the user names it, and how its key is checked.

use super::ResponsivenessFailure as Failure;
use crate::remote::{Pin, any_key};
use narrows_sys::files;
use narrows_wire::responsiveness::{PORT, Url, WELL_KNOWN};
use narrows_wire::token::Token;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, pem::PemObject as _};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const MAX_CA_BYTES: u64 = 4 << 20;

/// How the server's key is checked.
#[derive(Debug, Clone)]
pub enum Trust {
    /// It must be that of narrows' token.
    Token(Box<Token>),
    /// An authority of this file must have signed it for the host's name.
    Ca(PathBuf),
    /// Any, but the same one throughout.
    Any,
}

/// A server to test against.
#[derive(Debug, Clone)]
pub struct Target {
    pub asked: String,
    pub url: Url,
}

/// The server that a word means: `HOST[:PORT]` is a test server with the usual port and path, a URL names the configuration or a host.
pub fn parse(word: &str) -> Result<Target, Failure> {
    let bad = |why: String| Failure::Target(word.escape_default().to_string(), why);
    let url = match word.contains("://") {
        true => Url::parse(word),
        false => {
            let bare = word.parse::<std::net::Ipv6Addr>().map_or_else(|_| word.to_owned(), |it| format!("[{it}]"));
            Url::parse(&format!("https://{bare}")).map(|url| match bare.rsplit_once(':') {
                Some((_, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => url,
                _ => Url { port: PORT, ..url },
            })
        }
    };
    let mut url = url.map_err(|error| bad(error.to_string()))?;
    if url.path == "/" {
        WELL_KNOWN.clone_into(&mut url.path);
    }
    Ok(Target { asked: word.to_owned(), url })
}

impl Trust {
    /// What is said of it in the report.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Token(_) => "the server's key is that of its token".to_owned(),
            Self::Ca(file) => format!("the server's certificate was checked with {}", file.display()),
            Self::Any => "the server's key was not checked (--insecure)".to_owned(),
        }
    }

    /// The TLS side of the client. No session is resumed: each handshake is a whole one.
    pub(super) fn config(&self) -> Result<Arc<ClientConfig>, Failure> {
        let here = |error: tokio_rustls::rustls::Error| Failure::Here(format!("cannot set up TLS: {error}"));
        let mut config = match self {
            Self::Token(token) => Pin::new(Some(token.fingerprint)).config(&[]).map_err(here)?,
            Self::Any => any_key(&[]).map_err(here)?,
            Self::Ca(file) => ClientConfig::builder_with_provider(Arc::new(default_provider()))
                .with_safe_default_protocol_versions()
                .map_err(here)?
                .with_root_certificates(authorities(file)?)
                .with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"h2".to_vec()];
        config.resumption = Resumption::disabled();
        Ok(Arc::new(config))
    }
}

fn authorities(file: &Path) -> Result<RootCertStore, Failure> {
    let bad = |why: String| Failure::Ca(file.display().to_string(), why);
    let pem = files::read(file, MAX_CA_BYTES).map_err(|error| bad(error.to_string()))?;
    let mut all = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        all.add(certificate.map_err(|error| bad(error.to_string()))?).map_err(|error| bad(error.to_string()))?;
    }
    if all.is_empty() { Err(bad("it holds no certificate in PEM".to_owned())) } else { Ok(all) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_the_usual_port_and_urls_that_of_https() {
        let at = |word: &str| parse(word).map(|it| format!("{} {}", it.url.authority(), it.url.path));
        for (word, meant) in [
            ("far", "far:4043 /.well-known/nq"),
            ("far:8443", "far:8443 /.well-known/nq"),
            ("192.0.2.7", "192.0.2.7:4043 /.well-known/nq"),
            ("2001:db8::7", "[2001:db8::7]:4043 /.well-known/nq"),
            ("[2001:db8::7]", "[2001:db8::7]:4043 /.well-known/nq"),
            ("[2001:db8::7]:1", "[2001:db8::7]:1 /.well-known/nq"),
            ("https://far", "far /.well-known/nq"),
            ("https://far:4043/", "far:4043 /.well-known/nq"),
            ("https://far/config?x", "far /config?x"),
        ] {
            assert_eq!(at(word).expect(word), meant);
        }
        for wrong in ["", "http://far/", "far:x", "far:0", "a b", "ssh://far"] {
            assert!(matches!(at(wrong), Err(Failure::Target(..))), "{wrong}");
        }
    }

    #[test]
    fn a_file_without_authorities_is_named() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let error = Trust::Ca(file.path().to_owned()).config().expect_err("empty").to_string();
        assert!(error.contains("holds no certificate"), "{error}");
        assert!(Trust::Ca("/no/such/file".into()).config().is_err());
    }
}
