//! Users of a server of iperf3: name, password and time, encrypted with the server's public RSA key (`iperf_auth.c` of iperf3; OAEP since
//! 3.17, PKCS #1 v1.5 before).

use crate::lock;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use narrows_sys::{clock, files};
use ring::digest::{SHA256, digest};
use rsa::pkcs1::{DecodeRsaPrivateKey as _, DecodeRsaPublicKey as _};
use rsa::pkcs8::{DecodePrivateKey as _, DecodePublicKey as _};
use rsa::{PrivateKey, PublicKey};
use sha1::Sha1;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::path::Path;
use std::sync::Mutex;
use subtle::ConstantTimeEq as _;
use thiserror::Error;

/// The largest files that are read, in bytes.
const MAX_FILE: u64 = 1 << 20;
/// How far the clocks of both hosts may be apart, in seconds; as iperf3's own default.
const SKEW_S: u64 = 10;
/// Words that are remembered so that none is taken twice.
const REMEMBERED: usize = 4_096;

/// A key or a list of users that cannot be used.
#[derive(Debug, Error)]
pub enum AuthError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] narrows_sys::Error),
    /// It is something else.
    #[error("cannot read {what} from {file}: {why}")]
    Content {
        /// What should be in it.
        what: &'static str,
        file: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// The text cannot be encrypted.
    #[error("cannot encrypt the user name and password: {0}")]
    Encrypt(String),
}

fn text(file: &Path, what: &'static str) -> Result<String, AuthError> {
    let bytes = files::read(file, MAX_FILE)?;
    String::from_utf8(bytes)
        .map_err(|_| content(file, what, "it is not a text file; a PEM file begins with -----BEGIN"))
}

fn content(file: &Path, what: &'static str, why: impl Into<String>) -> AuthError {
    AuthError::Content { what, file: file.display().to_string(), why: why.into() }
}

/// Who this client is, for a server with users.
#[derive(Clone)]
pub struct Login {
    user: String,
    password: String,
    key: PublicKey,
    /// PKCS #1 v1.5 instead of OAEP.
    old_padding: bool,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "login of {}", self.user)
    }
}

impl Login {
    /// With the server's public key (PEM). `old_padding`: as iperf3 before 3.17 wants it.
    pub fn read(user: &str, password: &str, key: &Path, old_padding: bool) -> Result<Self, AuthError> {
        let pem = text(key, "a public RSA key")?;
        let read =
            PublicKey::from_public_key_pem(&pem).or_else(|error| PublicKey::from_pkcs1_pem(&pem).map_err(|_| error));
        let read =
            read.map_err(|error| content(key, "a public RSA key", format!("{error}; give the file of `iperf3 -s`")))?;
        Ok(Self { user: user.to_owned(), password: password.to_owned(), key: read, old_padding })
    }

    /// The word that the parameters of a test carry.
    /// Errors: name and password are too long for the key.
    pub(super) fn word(&self) -> Result<String, AuthError> {
        let plain = format!("user: {}\npwd:  {}\nts:   {}", self.user, self.password, clock::unix_us() / 1_000_000);
        let packed = if self.old_padding {
            self.key.pkcs1v15_encrypt(plain.as_bytes())
        } else {
            self.key.oaep_encrypt::<Sha1>(plain.as_bytes())
        };
        Ok(BASE64_STANDARD.encode(packed.map_err(|error| AuthError::Encrypt(error.to_string()))?))
    }
}

/// The users that a server admits.
pub struct Users {
    key: PrivateKey,
    /// SHA-256 of `{user}password`, in hexadecimal digits.
    users: BTreeMap<String, String>,
    /// Words that were taken, with their time.
    taken: Mutex<VecDeque<(u64, [u8; 32])>>,
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} users", self.users.len())
    }
}

impl Users {
    /// From the private key (PEM, without a passphrase) and the list of users, as `iperf3 -s` takes them: `user,sha256` in each line.
    /// Errors: a file cannot be read, or is something else.
    pub fn read(key: &Path, list: &Path) -> Result<Self, AuthError> {
        let pem = text(key, "a private RSA key")?;
        let read =
            PrivateKey::from_pkcs8_pem(&pem).or_else(|error| PrivateKey::from_pkcs1_pem(&pem).map_err(|_| error));
        let why = |error| format!("{error}; make one with: openssl genrsa -out FILE 2048");
        let read = read.map_err(|error| content(key, "a private RSA key", why(error)))?;
        let (mut users, lines) = (BTreeMap::new(), text(list, "users")?);
        for (nth, line) in (1..).zip(lines.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let user = line.split_once(',').map(|(user, hash)| (user.trim(), hash.trim().to_lowercase()));
            let good = |hash: &str| hash.len() == 64 && hash.bytes().all(|it| it.is_ascii_hexdigit());
            let Some((user, hash)) = user.filter(|(user, hash)| !user.is_empty() && good(hash)) else {
                let why = format!("line {nth} is not `user,HASH`, with the SHA-256 of {{user}}password in 64 digits");
                return Err(content(list, "users", why));
            };
            users.insert(user.to_owned(), hash);
        }
        if users.is_empty() {
            return Err(content(list, "users", "it names none"));
        }
        Ok(Self { key: read, users, taken: Mutex::default() })
    }

    /// The user whose word it is, if it was made just now and was not used before. Nothing says which of these failed.
    pub(crate) fn admits(&self, word: &str) -> Option<String> {
        self.admits_at(word, clock::unix_us() / 1_000_000)
    }

    fn admits_at(&self, word: &str, now_s: u64) -> Option<String> {
        let packed = BASE64_STANDARD.decode(word.trim()).ok()?;
        // Both are tried, so that the time does not tell which padding it was.
        let (new, old) = (self.key.oaep_decrypt::<Sha1>(&packed), self.key.pkcs1v15_decrypt(&packed));
        let plain = String::from_utf8(new.or(old).ok()?).ok()?;
        let (user, password, made_s) = parts(&plain)?;
        let hash = digest(&SHA256, format!("{{{user}}}{password}").as_bytes());
        let hash: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        // A user who is not known takes the same time.
        let none = "0".repeat(64);
        let known = self.users.get(user).unwrap_or(&none);
        let same: bool = known.as_bytes().ct_eq(hash.as_bytes()).into();
        (same && now_s.abs_diff(made_s) <= SKEW_S && self.is_new(&packed, now_s)).then(|| user.to_owned())
    }

    fn is_new(&self, packed: &[u8], now_s: u64) -> bool {
        let name: [u8; 32] = digest(&SHA256, packed).as_ref().try_into().unwrap_or_default();
        let mut taken = lock(&self.taken);
        while taken.front().is_some_and(|(at, _)| now_s.abs_diff(*at) > 2 * SKEW_S) {
            taken.pop_front();
        }
        let new = taken.len() < REMEMBERED && taken.iter().all(|(_, other)| *other != name);
        if new {
            taken.push_back((now_s, name));
        }
        new
    }
}

/// Name, password and time of what was decrypted.
fn parts(plain: &str) -> Option<(&str, &str, u64)> {
    let (user, rest) = plain.strip_prefix("user: ")?.split_once("\npwd:  ")?;
    let (password, made) = rest.rsplit_once("\nts:   ")?;
    Some((user, password, made.trim_end_matches('\0').trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rsa::Generate as _;
    use rsa::pkcs8::{EncodePrivateKey as _, EncodePublicKey as _, LineEnding};
    use std::path::PathBuf;

    fn made() -> (tempfile::TempDir, PathBuf, PathBuf, PathBuf) {
        let directory = tempfile::tempdir().expect("a directory");
        let [private, public, users] = ["private.pem", "public.pem", "users"].map(|name| directory.path().join(name));
        let key = PrivateKey::generate();
        let write = |file: &Path, text: &str| files::write_whole(file, text.as_bytes(), 0o600).expect("a file");
        write(&private, &key.to_pkcs8_pem(LineEnding::LF).expect("PEM"));
        write(&public, &key.to_public_key().to_public_key_pem(LineEnding::LF).expect("PEM"));
        // printf '{ada}secret words' | sha256sum
        let hash = digest(&SHA256, b"{ada}secret words");
        let hash: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        write(&users, &format!("# who\n\nada,{hash}\n"));
        (directory, private, public, users)
    }

    #[test]
    fn a_user_is_admitted_once_within_the_time_and_by_the_right_password_only() {
        let (_directory, private, public, users) = made();
        let users = Users::read(&private, &users).expect("users");
        for old in [false, true] {
            let login = |user: &str, password: &str| {
                Login::read(user, password, &public, old).expect("a key").word().expect("a word")
            };
            let word = login("ada", "secret words");
            let now_s = clock::unix_us() / 1_000_000;
            assert_eq!([now_s + 60, now_s - 60].map(|at_s| users.admits_at(&word, at_s)), [None, None]);
            assert_eq!(users.admits(&word).as_deref(), Some("ada"));
            assert_eq!(users.admits(&word), None, "not twice");
            for (user, password) in [("ada", "secret"), ("eve", "secret words"), ("", "")] {
                assert_eq!(users.admits(&login(user, password)), None, "{user}");
            }
        }
        for word in ["", "AAAA", "no base64", &"A".repeat(344)] {
            assert_eq!(users.admits(word), None, "{word}");
        }
        let long = Login::read("ada", &"x".repeat(400), &public, false).expect("a key").word();
        assert!(long.expect_err("too long").to_string().starts_with("cannot encrypt the user name and password: "));
    }

    #[test]
    fn files_that_are_something_else_are_named() {
        let (directory, private, public, users) = made();
        let why = |key: &Path, list: &Path| Users::read(key, list).expect_err("refused").to_string();
        assert!(why(&public, &users).contains("make one with: openssl genrsa"), "{}", why(&public, &users));
        assert!(why(&private, &public).contains("line 1 is not `user,HASH`"), "{}", why(&private, &public));
        let empty = directory.path().join("empty");
        files::write_whole(&empty, b"# none\n", 0o600).expect("a file");
        assert!(why(&private, &empty).ends_with("it names none"));
        let why = Login::read("a", "b", &users, false).expect_err("refused").to_string();
        assert!(why.contains("cannot read a public RSA key from"), "{why}");
        assert!(parts("user: a\npwd:  b\nts:   1").is_some() && parts("user: a\npwd: b").is_none());
    }
}
