//! The client's check of the server's key: by its fingerprint alone. Without a token the key of the first connection is
//! taken, and no other for the rest of the run.

use crate::lock;
use crate::trust::fingerprint;
use narrows_wire::token::Fingerprint;
use std::sync::{Arc, Mutex};
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};

/// The TLS side of a client that takes the first key that it is shown (`curl -k`) and no other after it. `protocols`: those of ALPN.
/// Errors: this build of TLS has no version that is safe.
pub fn any_key(protocols: &[&[u8]]) -> Result<ClientConfig, Error> {
    Pin::new(None).config(protocols)
}

/// Takes one key only.
#[derive(Debug)]
pub(crate) struct Pin {
    provider: Arc<CryptoProvider>,
    /// The one that must be, or that was first.
    wanted: Mutex<Option<Fingerprint>>,
    /// The one that was shown last.
    shown: Mutex<Option<Fingerprint>>,
}

impl Pin {
    pub(crate) fn new(wanted: Option<Fingerprint>) -> Arc<Self> {
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        Arc::new(Self { provider, wanted: Mutex::new(wanted), shown: Mutex::new(None) })
    }

    /// The TLS side of the client, which speaks one of `protocols` (ALPN).
    pub(crate) fn config(self: &Arc<Self>, protocols: &[&[u8]]) -> Result<ClientConfig, Error> {
        let mut config = ClientConfig::builder_with_provider(self.provider.clone())
            .with_safe_default_protocol_versions()?
            .dangerous() // no authority is asked: the fingerprint is the identity
            .with_custom_certificate_verifier(self.clone())
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Ok(config)
    }

    /// What was wanted and what was shown, where they differ.
    pub(crate) fn mismatch(&self) -> Option<(Fingerprint, Fingerprint)> {
        let wanted = (*lock(&self.wanted))?;
        let shown = (*lock(&self.shown))?;
        (wanted != shown).then_some((wanted, shown))
    }
}

impl ServerCertVerifier for Pin {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let found = fingerprint(end_entity);
        *lock(&self.shown) = Some(found);
        let mut wanted = lock(&self.wanted);
        if *wanted.get_or_insert(found) == found {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(pin: &Pin, certificate: &[u8]) -> bool {
        let name = ServerName::try_from("narrows").expect("a name");
        let certificate = CertificateDer::from(certificate);
        pin.verify_server_cert(&certificate, &[], &name, &[], UnixTime::since_unix_epoch(Default::default())).is_ok()
    }

    #[test]
    fn only_the_wanted_key_is_taken() {
        let pin = Pin::new(Some(fingerprint(&CertificateDer::from(&b"ours"[..]))));
        assert!(show(&pin, b"ours"));
        assert_eq!(pin.mismatch(), None);
        assert!(!show(&pin, b"theirs"));
        assert!(pin.mismatch().is_some());
    }

    #[test]
    fn without_one_the_first_is_kept() {
        let pin = Pin::new(None);
        assert!(show(&pin, b"first"));
        assert!(!show(&pin, b"second"));
        assert!(show(&pin, b"first"));
    }
}
