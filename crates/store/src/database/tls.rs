//! TLS to a PostgreSQL server: its certificate must be valid by the authorities of the system, or by those of `SSL_CERT_FILE`.

use narrows_sys::files;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use rustls::{ClientConfig, RootCertStore};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_postgres_rustls::MakeRustlsConnect;

/// Where systems keep their authorities: Debian, Red Hat, others.
const PLACES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];
/// The maximum size of such a file (8 MiB).
const MAX: u64 = 8 << 20;

pub(super) fn connector() -> Result<MakeRustlsConnect, String> {
    let named = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    let file = named.or_else(|| PLACES.iter().map(PathBuf::from).find(|file| files::exists(file)));
    let roots = file.map_or_else(|| Ok(RootCertStore::empty()), |file| authorities(&file))?;
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn authorities(file: &Path) -> Result<RootCertStore, String> {
    let pem = files::read(file, MAX).map_err(|error| error.to_string())?;
    let mut all = RootCertStore::empty();
    // A system may have certificates that rustls does not know.
    all.add_parsable_certificates(CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok));
    Ok(all)
}
