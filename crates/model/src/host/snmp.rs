//! As whom an SNMP agent is read. Secrets are never printed and never stored.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

/// What stands in the place of a secret.
const HIDDEN: &str = "***";

/// A community or a password: `***` wherever it is printed or stored.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// A secret of these characters.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The secret itself, for the one who has to send it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(HIDDEN)
    }
}

/// The version of SNMP, and its credentials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Words", into = "Words")]
pub enum SnmpAccess {
    /// SNMP v2c.
    V2c {
        /// It travels in clear.
        community: Secret,
    },
    /// SNMP v3 with the user-based security model (RFC 3414).
    V3 {
        /// 1 to 32 bytes.
        user: String,
        /// Of the authentication by SHA-1; `None`: noAuthNoPriv.
        password: Option<Secret>,
    },
}

impl SnmpAccess {
    /// The version as a plan writes it.
    pub const fn version(&self) -> &'static str {
        match self {
            Self::V2c { .. } => "2c",
            Self::V3 { .. } => "3",
        }
    }
}

/// An SNMP agent and the access to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SnmpAgent {
    /// `address` or `address:port`.
    pub agent: String,
    /// As whom it is read.
    #[serde(flatten)]
    #[schemars(with = "Words")]
    pub access: SnmpAccess,
}

/// The access as records hold it.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Words {
    /// `2c` or `3`.
    version: String,
    /// The community (v2c), which is not stored, or the user (v3).
    name: String,
    /// Authentication password (v3), which is not stored; empty where there is none.
    #[serde(default)]
    password: String,
}

impl From<SnmpAccess> for Words {
    fn from(access: SnmpAccess) -> Self {
        let version = access.version().to_owned();
        match access {
            SnmpAccess::V2c { community } => Self { version, name: community.to_string(), password: String::new() },
            SnmpAccess::V3 { user, password } => {
                Self { version, name: user, password: password.map(|it| it.to_string()).unwrap_or_default() }
            }
        }
    }
}

impl From<Words> for SnmpAccess {
    fn from(words: Words) -> Self {
        if words.version.starts_with('3') {
            let password = Some(words.password).filter(|password| !password.is_empty());
            Self::V3 { user: words.name, password: password.map(Secret) }
        } else {
            Self::V2c { community: Secret(words.name) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(access: SnmpAccess) -> SnmpAgent {
        SnmpAgent { agent: "198.18.0.1".to_owned(), access }
    }

    #[test]
    fn no_secret_is_printed_or_stored() {
        let community = agent(SnmpAccess::V2c { community: Secret::new("geheim") });
        let password = agent(SnmpAccess::V3 { user: "lab".to_owned(), password: Some(Secret::new("geheim")) });
        for agent in [&community, &password] {
            let stored = serde_json::to_string(agent).expect("JSON");
            let shown = format!("{agent:?} {stored} {}", Secret::new("geheim"));
            assert!(shown.contains("***") && !shown.contains("geheim"), "{shown}");
        }
        let stored = serde_json::to_value(&password).expect("JSON");
        assert_eq!(
            stored,
            serde_json::json!({ "agent": "198.18.0.1", "version": "3", "name": "lab", "password": "***" })
        );
    }

    #[test]
    fn what_earlier_versions_stored_is_read() {
        let read = |text: &str| serde_json::from_str::<SnmpAgent>(text).expect("an agent").access;
        let community = read(r#"{"agent": "r", "version": "2c", "name": "", "password": ""}"#);
        assert_eq!(community, SnmpAccess::V2c { community: Secret::new("") });
        let user = read(r#"{"agent": "r", "version": "3", "name": "lab", "password": ""}"#);
        assert_eq!(user, SnmpAccess::V3 { user: "lab".to_owned(), password: None });
    }
}
