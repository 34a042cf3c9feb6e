//! Whether an agent can be asked at all: its address, and the credentials for it.

use crate::error::SnmpError;
use narrows_model::host::snmp::{SnmpAccess, SnmpAgent};

/// The longest address, community or password that is taken.
const LONGEST: usize = 255;

/// What is wrong with the address or the access, if anything.
pub fn check(of: &SnmpAgent) -> Result<(), SnmpError> {
    let address = of.agent.trim();
    let why = match &of.access {
        _ if address.is_empty() || address.len() > LONGEST || address.contains(char::is_whitespace) => {
            "its address must be a host or an address, with a port if not 161: `switch`, `192.0.2.1:1161`".to_owned()
        }
        SnmpAccess::V2c { community } if !(1..=LONGEST).contains(&community.expose().len()) => {
            format!("the community must have 1 to {LONGEST} bytes")
        }
        SnmpAccess::V3 { user, .. } if user.is_empty() || user.len() > 32 => {
            "the user's name must have 1 to 32 bytes".to_owned()
        }
        SnmpAccess::V3 { password: Some(password), .. } if !(8..=LONGEST).contains(&password.expose().len()) => {
            let length = password.expose().len();
            format!("a password of SNMP v3 must have 8 to {LONGEST} bytes, this one has {length} (RFC 3414)")
        }
        _ => return Ok(()),
    };
    Err(SnmpError::BadTarget { agent: address.to_owned(), why })
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::host::snmp::Secret;

    fn checked(agent: &str, access: SnmpAccess) -> Result<(), String> {
        check(&SnmpAgent { agent: agent.to_owned(), access }).map_err(|error| error.to_string())
    }

    fn community(word: &str) -> SnmpAccess {
        SnmpAccess::V2c { community: Secret::new(word) }
    }

    fn user(name: &str, password: Option<&str>) -> SnmpAccess {
        SnmpAccess::V3 { user: name.to_owned(), password: password.map(Secret::new) }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (access, says) in [
            (community(""), "the community must have"),
            (user("alice", Some("short")), "must have 8 to 255 bytes, this one has 5"),
            (user("", None), "1 to 32 bytes"),
        ] {
            let error = checked("192.0.2.1", access).expect_err(says);
            assert!(error.starts_with("cannot query SNMP agent 192.0.2.1: ") && error.contains(says), "{error}");
        }
        let at = |agent: &str| checked(agent, community("public"));
        assert!(at("a b").is_err() && at("").is_err());
        for access in [community("public"), user("alice", None), user("alice", Some("secretsecret"))] {
            assert_eq!(checked(" 192.0.2.1:1161 ", access), Ok(()));
        }
    }
}
