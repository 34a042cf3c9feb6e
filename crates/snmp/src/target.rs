//! The address of an agent and the credentials for it.

use crate::error::SnmpError;
use narrows_model::forwarding::CounterSource;
use std::fmt;

/// An SNMP agent and the access to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnmpTarget {
    /// `address` or `address:port` (`[address]:port` for IPv6); the port is 161 where none is given.
    pub address: String,
    /// As whom it is asked.
    pub access: Access,
}

/// As whom an agent is asked. Its `Debug` form shows no community and no password.
#[derive(Clone, PartialEq, Eq)]
pub enum Access {
    /// SNMP v2c: a community, which travels in clear.
    Community(String),
    /// SNMP v3 with the user-based security model (RFC 3414).
    User {
        /// 1 to 32 bytes.
        name: String,
        /// `None`: noAuthNoPriv.
        authentication: Option<Authentication>,
    },
}

/// How messages are signed, and perhaps encrypted.
#[derive(Clone, PartialEq, Eq)]
pub struct Authentication {
    /// The hash.
    pub digest: Digest,
    /// At least 8 bytes (RFC 3414, section 11.2).
    pub password: String,
    /// `None`: authNoPriv.
    pub privacy: Option<Privacy>,
}

/// How messages are encrypted.
#[derive(Clone, PartialEq, Eq)]
pub struct Privacy {
    /// The cipher.
    pub cipher: Cipher,
    /// At least 8 bytes.
    pub password: String,
}

/// HMAC of the authentication: RFC 3414 (SHA-1), RFC 7860 (the others).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub enum Digest {
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

/// Cipher of the privacy: RFC 3826 (128 bits), draft-blumenthal-aes-usm-04, and Cisco's way to lengthen a short key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub enum Cipher {
    Aes128,
    Aes192,
    Aes256,
    Aes192Cisco,
    Aes256Cisco,
}

const DIGESTS: &[(&str, Digest)] = &[
    ("sha1", Digest::Sha1),
    ("sha224", Digest::Sha224),
    ("sha256", Digest::Sha256),
    ("sha384", Digest::Sha384),
    ("sha512", Digest::Sha512),
];

const CIPHERS: &[(&str, Cipher)] = &[
    ("aes128", Cipher::Aes128),
    ("aes192", Cipher::Aes192),
    ("aes256", Cipher::Aes256),
    ("aes192cisco", Cipher::Aes192Cisco),
    ("aes256cisco", Cipher::Aes256Cisco),
];

/// The longest address, community or password that is taken.
const LONGEST: usize = 255;

impl SnmpTarget {
    /// From the words of a plan.
    ///
    /// `version` is `2c`, or `3`, `3-sha256`, `3-sha256-aes128`: v3 with its hash and its cipher. `3` alone is noAuthNoPriv
    /// without a password and SHA-1 with one. `password` is that of the authentication; a second one after a blank is that of
    /// the privacy, which without it is the same.
    ///
    /// # Errors
    /// One sentence that names what is wrong and what is allowed.
    pub fn from_words(agent: &str, version: &str, name: &str, password: &str) -> Result<Self, SnmpError> {
        let bad = |why: String| SnmpError::BadTarget { agent: agent.chars().take(LONGEST).collect(), why };
        let access = access(version, name, password).map_err(bad)?;
        let target = Self { address: agent.trim().to_owned(), access };
        target.check()?;
        Ok(target)
    }

    /// From a plan's source of counters; `None` where that is no SNMP agent.
    ///
    /// # Errors
    /// As [`Self::from_words`].
    pub fn of(source: &CounterSource) -> Option<Result<Self, SnmpError>> {
        match source {
            CounterSource::Snmp { agent, version, name, password } => {
                Some(Self::from_words(agent, version, name, password))
            }
            _ => None,
        }
    }

    /// What is wrong with it, if anything.
    ///
    /// # Errors
    /// One sentence that names what is wrong and what is allowed.
    pub fn check(&self) -> Result<(), SnmpError> {
        let sentence = match &self.access {
            _ if self.address.is_empty() || self.address.len() > LONGEST || self.address.contains(char::is_whitespace) => {
                Some("its address must be a host or an address, with a port if it is not 161: `switch`, `192.0.2.1:1161`".to_owned())
            }
            Access::Community(name) if name.is_empty() || name.len() > LONGEST => {
                Some(format!("the community must have 1 to {LONGEST} bytes"))
            }
            Access::User { name, .. } if name.is_empty() || name.len() > 32 => {
                Some("the user's name must have 1 to 32 bytes".to_owned())
            }
            Access::User { authentication: Some(authentication), .. } => {
                let privacy = authentication.privacy.as_ref().map(|privacy| privacy.password.len());
                let lengths = [Some(authentication.password.len()), privacy];
                lengths.iter().flatten().find(|length| !(8..=LONGEST).contains(*length)).map(|length| {
                    format!("a password of SNMP v3 must have 8 to {LONGEST} bytes, this one has {length} (RFC 3414)")
                })
            }
            _ => None,
        };
        sentence.map_or(Ok(()), |why| Err(SnmpError::BadTarget { agent: self.address.clone(), why }))
    }
}

fn access(version: &str, name: &str, password: &str) -> Result<Access, String> {
    let mut words = version.trim().split('-');
    match (words.next(), words.next(), words.next(), words.next()) {
        (Some("2c" | "v2c"), None, ..) => Ok(Access::Community(name.to_owned())),
        (Some("3" | "v3"), digest, cipher, None) => {
            if password.is_empty() {
                return if digest.is_some() {
                    Err(format!("`{version}` needs a password; without one write the version as `3`"))
                } else {
                    Ok(Access::User { name: name.to_owned(), authentication: None })
                };
            }
            let (first, second) = password.split_once(' ').unwrap_or((password, password));
            let privacy = match cipher {
                Some(word) => {
                    Some(Privacy { cipher: named(CIPHERS, word, "cipher")?, password: second.trim_start().to_owned() })
                }
                None if first.len() != password.len() => {
                    return Err("a second password needs a cipher: write the version as `3-sha1-aes128`".to_owned());
                }
                None => None,
            };
            let digest = named(DIGESTS, digest.unwrap_or("sha1"), "hash")?;
            let authentication = Authentication { digest, password: first.to_owned(), privacy };
            Ok(Access::User { name: name.to_owned(), authentication: Some(authentication) })
        }
        _ => {
            let short: String = version.chars().take(32).collect();
            Err(format!("`{short}` is no version: write 2c, 3, 3-HASH or 3-HASH-CIPHER, such as 3-sha256-aes128"))
        }
    }
}

fn named<T: Copy>(table: &[(&str, T)], word: &str, what: &str) -> Result<T, String> {
    let found = table.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
    found.map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<&str> = table.iter().map(|(name, _)| *name).collect();
        let short: String = word.chars().take(32).collect();
        format!("`{short}` is no {what} of SNMP v3 here: take one of {}", known.join(", "))
    })
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Community(_) => f.write_str("Community"),
            Self::User { name, authentication } => {
                f.debug_struct("User").field("name", name).field("authentication", authentication).finish()
            }
        }
    }
}

impl fmt::Debug for Authentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cipher = self.privacy.as_ref().map(|privacy| privacy.cipher);
        f.debug_struct("Authentication").field("digest", &self.digest).field("cipher", &cipher).finish_non_exhaustive()
    }
}

impl fmt::Debug for Privacy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Privacy").field("cipher", &self.cipher).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(version: &str, name: &str, password: &str) -> Result<Access, String> {
        SnmpTarget::from_words("192.0.2.1", version, name, password)
            .map(|target| target.access)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn versions_say_hash_and_cipher() {
        assert_eq!(words("2c", "public", ""), Ok(Access::Community("public".into())));
        assert_eq!(words("3", "alice", ""), Ok(Access::User { name: "alice".into(), authentication: None }));
        let with = |digest, password: &str, privacy| {
            let authentication = Some(Authentication { digest, password: password.into(), privacy });
            Ok(Access::User { name: "alice".into(), authentication })
        };
        assert_eq!(words("3", "alice", "secretsecret"), with(Digest::Sha1, "secretsecret", None));
        let aes = |password: &str| Some(Privacy { cipher: Cipher::Aes128, password: password.into() });
        assert_eq!(
            words("3-sha256-aes128", "alice", "authauth privpriv"),
            with(Digest::Sha256, "authauth", aes("privpriv"))
        );
        assert_eq!(words("3-SHA256-AES128", "alice", "bothboth"), with(Digest::Sha256, "bothboth", aes("bothboth")));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (version, name, password, says) in [
            ("1", "public", "", "`1` is no version"),
            ("2c", "", "", "the community must have"),
            ("3-md4", "alice", "secretsecret", "`md4` is no hash of SNMP v3 here: take one of sha1, sha224"),
            ("3-sha1-des", "alice", "secretsecret", "`des` is no cipher"),
            ("3", "alice", "short", "must have 8 to 255 bytes, this one has 5"),
            ("3-sha1", "alice", "", "needs a password"),
            ("3-sha1", "alice", "authauth privpriv", "needs a cipher"),
            ("3", "", "", "1 to 32 bytes"),
        ] {
            let error = words(version, name, password).expect_err(version);
            assert!(error.starts_with("cannot ask the SNMP agent 192.0.2.1: ") && error.contains(says), "{error}");
        }
        assert!(SnmpTarget::from_words("a b", "2c", "public", "").is_err());
        assert!(SnmpTarget::from_words("", "2c", "public", "").is_err());
    }

    #[test]
    fn nothing_secret_is_shown() {
        let target = SnmpTarget::from_words("sw", "3-sha1-aes128", "alice", "secret-one secret-two").expect("a target");
        let community = SnmpTarget::from_words("sw", "2c", "secret-three", "").expect("a target");
        let shown = format!("{target:?} {community:?}");
        assert!(shown.contains("alice") && shown.contains("Aes128") && !shown.contains("secret"), "{shown}");
    }
}
