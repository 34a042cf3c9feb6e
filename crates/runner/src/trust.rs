//! Authentication: the server's key and token on disk, and how they are checked.
//!
//! The server makes a self-signed key and a token at its first start. The token carries the key's fingerprint and a secret:
//! the client pins the first, the server checks the second. No authority, no clock and no host name take part in it.

use narrows_sys::files::{self, is_shared_with_group};
use narrows_sys::random;
use narrows_wire::token::{Fingerprint, NoToken, Secret};
use narrows_wire::{Key, Token};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use subtle::ConstantTimeEq as _;
use thiserror::Error;

/// A key or token that cannot be used.
#[derive(Debug, Error)]
pub enum TrustError {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] narrows_sys::Error),
    /// A token file that is not there.
    #[error("cannot read token file {}: not found; copy it from the server (`narrows serve` prints its path at \
        start)", .0.display())]
    NoTokenFile(PathBuf),
    /// The same of an agent of a fleet.
    #[error("cannot read token file {}: not found; copy it from the controller's host (`narrows fleet token` prints it)", .0.display())]
    NoAgentTokenFile(PathBuf),
    /// A token file that this user may not read.
    #[error("cannot open {}: permission denied; copy the token to a file that you may read, or run as its owner", .0.display())]
    Forbidden(PathBuf),
    /// A token file without a token.
    #[error("{path}: {source}", path = path.display())]
    NotAToken {
        path: PathBuf,
        /// What it should hold.
        source: NoToken,
    },
    /// `NARROWS_TOKEN` without a token.
    #[error("NARROWS_TOKEN: {0}")]
    NotATokenInEnvironment(NoToken),
    /// The file or variable of an agent of a fleet without a token.
    #[error("{0}: invalid token: a token is one line that starts with `narrows1.`, as `narrows fleet token` prints it")]
    NotAnAgentToken(String),
    /// The token of the first file is of another server than the key of the second.
    #[error(
        "the token in {} does not match the key in {}; remove the token file to create a new one, and copy it to the \
        clients",
        .0.display(), .1.display()
    )]
    OtherKey(PathBuf, PathBuf),
    /// The file holds no key: why.
    #[error("cannot read key and certificate from {path}: {1}; remove it to create a new key and \
        token", path = .0.display())]
    NotAKey(PathBuf, String),
    /// The key could not be made.
    #[error("cannot make a key: {0}")]
    Make(String),
}

/// The server's key, its certificate and the token.
#[derive(Debug)]
pub struct Identity {
    /// The certificate, in DER.
    pub certificate: CertificateDer<'static>,
    pub key: PrivateKeyDer<'static>,
    pub token: Token,
    /// Where the token is.
    pub token_file: PathBuf,
    /// Key or token that other users may read, in sentences.
    pub warnings: Vec<String>,
}

/// A key or a token is small.
const MAX_FILE_BYTES: u64 = 64 << 10;

impl Identity {
    /// A new key and a new token, which are in no file.
    pub fn of_one_run() -> Result<Self, TrustError> {
        let (certificate, key) = key_of(make_key()?.as_bytes(), Path::new("(memory)"))?;
        let token = Token { fingerprint: fingerprint(&certificate), secret: Secret::new(random::bytes()?) };
        Ok(Self { certificate, key, token, token_file: PathBuf::new(), warnings: Vec::new() })
    }

    /// Reads the key `server.pem` and the token of a state directory, and makes what is missing, readable by the owner alone; the
    /// token also by the group that the owner shares the directory with, as the packages do.
    pub fn load_or_make(state: &Path, token_file: Option<&Path>) -> Result<Self, TrustError> {
        let (key_file, certificate, key) = load_or_make_key(state)?;
        let fingerprint = fingerprint(&certificate);
        let token_file = token_file.map_or_else(|| state.join("token"), Path::to_path_buf);
        if !files::exists(&token_file) {
            let token = Token { fingerprint, secret: Secret::new(random::bytes()?) };
            let mode = if is_shared_with_group(state) { 0o640 } else { 0o600 };
            files::write_if_absent(&token_file, format!("{}\n", token.reveal()).as_bytes(), mode)?;
        }
        let token = read_token(&token_file)?;
        if token.fingerprint != fingerprint {
            return Err(TrustError::OtherKey(token_file, key_file));
        }
        let shared = is_shared_with_group(state);
        let warnings = [(&key_file, false), (&token_file, shared)]
            .into_iter()
            .filter_map(|(file, group_may)| {
                let whom = files::shared_with(file).filter(|whom| !(group_may && *whom == "its group"))?;
                let file = file.display();
                Some(format!(
                    "{whom} may read {file}: restrict it with `chmod 600 {file}`, and replace it if it was read"
                ))
            })
            .collect();
        Ok(Self { certificate, key, token, token_file, warnings })
    }
}

fn load_or_make_key(state: &Path) -> Result<(PathBuf, CertificateDer<'static>, PrivateKeyDer<'static>), TrustError> {
    files::make_directory(state)?;
    let file = state.join("server.pem");
    if !files::exists(&file) {
        files::write_if_absent(&file, make_key()?.as_bytes(), 0o600)?;
    }
    let (certificate, key) = read_key(&file)?;
    Ok((file, certificate, key))
}

/// The fingerprint of the server's key of a state directory; the key is made if it is missing.
pub fn server_fingerprint(state: &Path) -> Result<Fingerprint, TrustError> {
    load_or_make_key(state).map(|(_, certificate, _)| fingerprint(&certificate))
}

fn make_key() -> Result<String, TrustError> {
    let wrap = |error: rcgen::Error| TrustError::Make(error.to_string());
    let key = rcgen::KeyPair::generate().map_err(wrap)?;
    // The name means nothing: clients pin the whole certificate.
    let certificate =
        rcgen::CertificateParams::new(vec!["narrows".to_owned()]).and_then(|p| p.self_signed(&key)).map_err(wrap)?;
    Ok(format!("{}{}", certificate.pem(), key.serialize_pem()))
}

fn read_key(path: &Path) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), TrustError> {
    key_of(&files::read(path, MAX_FILE_BYTES)?, path)
}

fn key_of(pem: &[u8], path: &Path) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), TrustError> {
    let wrap = |error: rustls::pki_types::pem::Error| TrustError::NotAKey(path.to_owned(), error.to_string());
    Ok((CertificateDer::from_pem_slice(pem).map_err(wrap)?, PrivateKeyDer::from_pem_slice(pem).map_err(wrap)?))
}

/// Reads a token file.
pub fn read_token(path: &Path) -> Result<Token, TrustError> {
    let bytes = files::read(path, MAX_FILE_BYTES)?;
    String::from_utf8_lossy(&bytes).parse().map_err(|source| TrustError::NotAToken { path: path.to_owned(), source })
}

/// The client's token: of the file that the user names, else of the environment variable `NARROWS_TOKEN`, else none.
pub fn client_token(token_file: Option<&Path>) -> Result<Option<Token>, TrustError> {
    if let Some(path) = token_file {
        return read_token(path).map(Some).map_err(|error| match error {
            TrustError::File(error) => match error.source.kind() {
                // A directory that may not be entered looks like a missing file to those who only ask whether it exists.
                ErrorKind::NotFound => TrustError::NoTokenFile(path.to_owned()),
                ErrorKind::PermissionDenied => TrustError::Forbidden(path.to_owned()),
                _ => TrustError::File(error),
            },
            other => other,
        });
    }
    match std::env::var("NARROWS_TOKEN") {
        Ok(text) if !text.trim().is_empty() => text.parse().map(Some).map_err(TrustError::NotATokenInEnvironment),
        _ => Ok(None),
    }
}

/// As [`client_token`], for an agent of a fleet, whose token is made on the controller's host.
pub fn agent_token(token_file: Option<&Path>) -> Result<Option<Token>, TrustError> {
    client_token(token_file).map_err(|error| match error {
        TrustError::NoTokenFile(path) => TrustError::NoAgentTokenFile(path),
        TrustError::NotAToken { path, .. } => TrustError::NotAnAgentToken(path.display().to_string()),
        TrustError::NotATokenInEnvironment(_) => TrustError::NotAnAgentToken("NARROWS_TOKEN".to_owned()),
        other => other,
    })
}

/// What an agent's user should know of a token file that everybody can read. A group may: Kubernetes and systemd give it to one on purpose.
pub fn agent_token_warning(token_file: &Path) -> Option<String> {
    let file = token_file.display();
    (files::shared_with(token_file) == Some("everybody")).then(|| {
        format!("others can read {file}; whoever has it can report in the name of this host: chmod 600 {file}")
    })
}

/// SHA-256 over a certificate in DER.
pub fn fingerprint(certificate: &CertificateDer<'_>) -> Fingerprint {
    let digest = ring::digest::digest(&ring::digest::SHA256, certificate);
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest.as_ref());
    Fingerprint(bytes)
}

/// Whether two secrets are the same, in a time that does not tell where they differ.
pub fn same_secret(a: &Secret, b: &Secret) -> bool {
    a.bytes().ct_eq(b.bytes()).into()
}

/// A new key of a trial.
pub fn trial_key() -> Result<Key, narrows_sys::Error> {
    random::bytes().map(Key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn key_and_token_are_made_once_and_for_the_owner_alone() {
        let state = tempfile::tempdir().expect("a directory");
        let first = Identity::load_or_make(state.path(), None).expect("made");
        let again = Identity::load_or_make(state.path(), None).expect("read");
        assert_eq!(first.token.reveal(), again.token.reveal());
        assert_eq!(first.token.fingerprint, fingerprint(&again.certificate));
        for file in ["server.pem", "token"] {
            assert_eq!(mode(&state, file), 0o600, "{file}");
        }
    }

    fn mode(state: &tempfile::TempDir, file: &str) -> u32 {
        state.path().join(file).metadata().expect("there").permissions().mode() & 0o777
    }

    #[test]
    fn a_directory_shared_with_a_group_shares_the_token_but_never_the_key() {
        for (directory, token) in [(0o2750, 0o640), (0o755, 0o600), (0o2700, 0o600)] {
            let state = tempfile::tempdir().expect("a directory");
            std::fs::set_permissions(state.path(), std::fs::Permissions::from_mode(directory)).expect("owned");
            Identity::load_or_make(state.path(), None).expect("made");
            assert_eq!((mode(&state, "token"), mode(&state, "server.pem")), (token, 0o600), "{directory:o}");
        }
    }

    #[test]
    fn a_key_or_token_that_others_may_read_is_named() {
        let state = tempfile::tempdir().expect("a directory");
        let warnings = || Identity::load_or_make(state.path(), None).expect("read").warnings;
        assert!(warnings().is_empty());
        let set = |file: &str, mode| {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(state.path().join(file), permissions).expect("owned");
        };
        set("token", 0o644);
        set("server.pem", 0o640);
        let said = warnings();
        assert!(said[0].starts_with("its group may read ") && said[0].contains("server.pem"), "{said:?}");
        assert!(said[1].starts_with("everybody may read ") && said[1].contains("chmod 600"), "{said:?}");
        // A directory that its owner shares with a group shares the token, not the key.
        set("", 0o2750);
        set("token", 0o640);
        assert!(matches!(&warnings()[..], [one] if one.contains("server.pem")));
    }

    #[test]
    fn an_agent_is_told_where_its_token_comes_from_and_who_can_read_it() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("a.token");
        let why = || agent_token(Some(&file)).expect_err("no token").to_string();
        assert!(
            why().ends_with("a.token: not found; copy it from the controller's host (`narrows fleet token` prints it)")
        );
        for text in ["", "narrows1.cut\n"] {
            files::write_whole(&file, text.as_bytes(), 0o600).expect("written");
            assert!(why().ends_with("as `narrows fleet token` prints it"), "{}", why());
        }
        for (mode, is_open) in [(0o600, false), (0o440, false), (0o644, true)] {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("owned");
            assert_eq!(agent_token_warning(&file).is_some_and(|it| it.contains(": chmod 600 ")), is_open, "{mode:o}");
        }
    }

    #[test]
    fn a_token_file_elsewhere_is_made_and_has_an_own_secret() {
        let state = tempfile::tempdir().expect("a directory");
        let elsewhere = state.path().join("for-clients");
        let named = Identity::load_or_make(state.path(), Some(&elsewhere)).expect("made");
        let default = Identity::load_or_make(state.path(), None).expect("made");
        assert_eq!(read_token(&elsewhere).expect("a token").reveal(), named.token.reveal());
        assert!(!same_secret(&named.token.secret, &default.token.secret));
        assert!(same_secret(&named.token.secret, &named.token.secret.clone()));
    }

    #[test]
    fn a_token_of_another_key_and_a_broken_file_are_named() {
        let (one, other) = (tempfile::tempdir().expect("one"), tempfile::tempdir().expect("other"));
        let foreign = Identity::load_or_make(other.path(), None).expect("made").token_file;
        let error = Identity::load_or_make(one.path(), Some(&foreign)).expect_err("does not match the key").to_string();
        assert!(error.contains("does not match the key") && error.contains("remove the token file"), "{error}");
        // The key is no token: a mistake that is easily made.
        let error = read_token(&one.path().join("server.pem")).expect_err("a key").to_string();
        assert!(error.contains("server.pem: invalid token"), "{error}");
        let error = Identity::load_or_make(one.path(), Some(Path::new("/no/such/place/token"))).expect_err("nowhere");
        assert!(error.to_string().contains("/no/such/place/token"), "{error}");
    }
}
