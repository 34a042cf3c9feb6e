//! The address of an agent and the credentials for it.

use crate::error::SnmpError;
use narrows_model::host::snmp::{Secret, SnmpAccess, SnmpAgent};

/// An SNMP agent and the access to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnmpTarget {
    /// `address` or `address:port` (`[address]:port` for IPv6); the port is 161 where none is given.
    pub address: String,
    /// As whom it is asked.
    pub access: Access,
}

/// As whom an agent is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// SNMP v2c: a community, which travels in clear.
    Community(Secret),
    /// SNMP v3 with the user-based security model (RFC 3414).
    User {
        /// 1 to 32 bytes.
        name: String,
        /// `None`: noAuthNoPriv.
        authentication: Option<Authentication>,
    },
}

/// How messages are signed, and perhaps encrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authentication {
    pub digest: Digest,
    /// At least 8 bytes (RFC 3414, section 11.2).
    pub password: Secret,
    /// `None`: authNoPriv.
    pub privacy: Option<Privacy>,
}

/// How messages are encrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Privacy {
    pub cipher: Cipher,
    /// At least 8 bytes.
    pub password: Secret,
}

/// HMAC of the authentication: RFC 3414 (SHA-1), RFC 7860 (the others).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Digest {
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

/// Cipher of the privacy: RFC 3826 (128 bits), draft-blumenthal-aes-usm-04, and Cisco's way to lengthen a short key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cipher {
    Aes128,
    Aes192,
    Aes256,
    Aes192Cisco,
    Aes256Cisco,
}

/// The longest address, community or password that is taken.
const LONGEST: usize = 255;

impl SnmpTarget {
    /// From a plan's agent. SNMP v3 with a password signs by SHA-1 and does not encrypt.
    pub fn of(agent: &SnmpAgent) -> Result<Self, SnmpError> {
        let signed =
            |password: &Secret| Authentication { digest: Digest::Sha1, password: password.clone(), privacy: None };
        let access = match &agent.access {
            SnmpAccess::V2c { community } => Access::Community(community.clone()),
            SnmpAccess::V3 { user, password } => {
                Access::User { name: user.clone(), authentication: password.as_ref().map(signed) }
            }
        };
        let target = Self { address: agent.agent.trim().to_owned(), access };
        target.check()?;
        Ok(target)
    }

    /// What is wrong with it, if anything.
    pub fn check(&self) -> Result<(), SnmpError> {
        let sentence = match &self.access {
            _ if self.address.is_empty()
                || self.address.len() > LONGEST
                || self.address.contains(char::is_whitespace) =>
            {
                Some(
                    "its address must be a host or an address, with a port if not 161: `switch`, \
                    `192.0.2.1:1161`"
                        .to_owned(),
                )
            }
            Access::Community(name) if !(1..=LONGEST).contains(&name.expose().len()) => {
                Some(format!("the community must have 1 to {LONGEST} bytes"))
            }
            Access::User { name, .. } if name.is_empty() || name.len() > 32 => {
                Some("the user's name must have 1 to 32 bytes".to_owned())
            }
            Access::User { authentication: Some(authentication), .. } => {
                let privacy = authentication.privacy.as_ref().map(|privacy| privacy.password.expose().len());
                let lengths = [Some(authentication.password.expose().len()), privacy];
                lengths.iter().flatten().find(|length| !(8..=LONGEST).contains(*length)).map(|length| {
                    format!("a password of SNMP v3 must have 8 to {LONGEST} bytes, this one has {length} (RFC 3414)")
                })
            }
            _ => None,
        };
        sentence.map_or(Ok(()), |why| Err(SnmpError::BadTarget { agent: self.address.clone(), why }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(access: SnmpAccess) -> Result<SnmpTarget, String> {
        let agent = SnmpAgent { agent: "192.0.2.1".to_owned(), access };
        SnmpTarget::of(&agent).map_err(|error| error.to_string())
    }

    fn community(word: &str) -> SnmpAccess {
        SnmpAccess::V2c { community: Secret::new(word) }
    }

    fn user(name: &str, password: Option<&str>) -> SnmpAccess {
        SnmpAccess::V3 { user: name.to_owned(), password: password.map(Secret::new) }
    }

    #[test]
    fn an_agent_of_a_plan_becomes_a_target() {
        let access = |of| target(of).expect("a target").access;
        assert_eq!(access(community("public")), Access::Community(Secret::new("public")));
        assert_eq!(access(user("alice", None)), Access::User { name: "alice".into(), authentication: None });
        let password = Secret::new("secretsecret");
        let authentication = Some(Authentication { digest: Digest::Sha1, password, privacy: None });
        assert_eq!(access(user("alice", Some("secretsecret"))), Access::User { name: "alice".into(), authentication });
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (access, says) in [
            (community(""), "the community must have"),
            (user("alice", Some("short")), "must have 8 to 255 bytes, this one has 5"),
            (user("", None), "1 to 32 bytes"),
        ] {
            let error = target(access).expect_err(says);
            assert!(error.starts_with("cannot query SNMP agent 192.0.2.1: ") && error.contains(says), "{error}");
        }
        let at = |agent: &str| SnmpTarget::of(&SnmpAgent { agent: agent.to_owned(), access: community("public") });
        assert!(at("a b").is_err() && at("").is_err());
    }

    #[test]
    fn nothing_secret_is_shown() {
        let privacy = Some(Privacy { cipher: Cipher::Aes128, password: Secret::new("secret-two") });
        let authentication =
            Some(Authentication { digest: Digest::Sha1, password: Secret::new("secret-one"), privacy });
        let user = Access::User { name: "alice".into(), authentication };
        let shown = format!("{user:?} {:?}", target(community("secret-three")));
        assert!(shown.contains("alice") && shown.contains("Aes128") && !shown.contains("secret"), "{shown}");
    }
}
