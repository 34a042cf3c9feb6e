//! The protocol's number. It covers the control API, the data hello and their meaning; both ends of a connection use the same one.

use std::ops::RangeInclusive;
use thiserror::Error;

/// The protocol of this program. It is raised when an older end would misunderstand a newer one; fields that an older
/// end may ignore do not raise it.
pub const PROTOCOL: u16 = 4;

/// The protocols that this program speaks, up to its own. When [`PROTOCOL`] is raised, the number before it stays here for one minor
/// version, so that hosts can be upgraded one after another: if 0.3.0 raises it to 5, 0.3 speaks 4 and 5, and 0.4 speaks 5 alone. What
/// differs between the two is decided by the number that both ends speak, the lower one of theirs: the client shows it in its header,
/// and the server answers with it. 3 is not spoken.
pub const SPOKEN: RangeInclusive<u16> = 4..=PROTOCOL;

/// The header that carries the protocol and the program's version in every request of a client: `1 0.1.0`.
pub const PROTOCOL_HEADER: &str = "narrows-protocol";

/// The two ends use different protocols.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "incompatible versions: client narrows {client} (protocol {client_protocol}), server narrows {server} (protocol \
    {server_protocol}); upgrade the {}", self.older()
)]
pub struct Mismatch {
    /// The client's program version.
    pub client: String,
    pub client_protocol: u16,
    /// The server's program version.
    pub server: String,
    pub server_protocol: u16,
}

impl Mismatch {
    /// The end to upgrade.
    pub const fn older(&self) -> &'static str {
        if self.client_protocol < self.server_protocol { "client" } else { "server" }
    }
}

/// The client's protocol header: `<protocol> <program version>`, such as `1 0.1.0`.
pub fn protocol_header(protocol: u16, version: &str) -> String {
    format!("{protocol} {version}")
}

/// The protocol of a client's header, if this program speaks it; without a header, as from curl, it is this program's own.
/// Errors: the mismatch, or an error for an invalid header.
pub fn check_header(header: Option<&str>, own_version: &str) -> Result<u16, HeaderError> {
    check(header, own_version, &SPOKEN)
}

fn check(header: Option<&str>, own_version: &str, spoken: &RangeInclusive<u16>) -> Result<u16, HeaderError> {
    let Some(header) = header else { return Ok(*spoken.end()) };
    let (number, version) = header.split_once(' ').unwrap_or((header, "of unknown version"));
    let client_protocol: u16 = number.parse().map_err(|_| HeaderError::Unreadable)?;
    if spoken.contains(&client_protocol) {
        return Ok(client_protocol);
    }
    let client = version.chars().filter(char::is_ascii_graphic).take(32).collect();
    Err(HeaderError::Mismatch(Mismatch {
        client,
        client_protocol,
        server: own_version.to_owned(),
        server_protocol: *spoken.end(),
    }))
}

/// Why a request's protocol header is rejected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HeaderError {
    #[error(transparent)]
    Mismatch(Mismatch),
    #[error("the header `{PROTOCOL_HEADER}` must be a number, a blank and the program's version")]
    Unreadable,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_client_asks_to_upgrade_the_server() {
        let error = check_header(Some("7 3.1.0"), "0.1.0").expect_err("a newer one");
        assert_eq!(
            error.to_string(),
            "incompatible versions: client narrows 3.1.0 (protocol 7), server narrows 0.1.0 (protocol 4); upgrade the \
            server"
        );
    }

    #[test]
    fn an_older_client_asks_to_upgrade_the_client() {
        let Err(HeaderError::Mismatch(mismatch)) = check_header(Some("0 0.0.9"), "0.1.0") else {
            panic!("protocol 0 is older");
        };
        assert_eq!(mismatch.older(), "client");
    }

    #[test]
    fn own_and_missing_headers_are_accepted() {
        assert_eq!(check_header(Some(&protocol_header(PROTOCOL, "0.1.0")), "0.1.0"), Ok(PROTOCOL));
        assert_eq!(check_header(None, "0.1.0"), Ok(PROTOCOL));
        assert_eq!(check_header(Some("new"), "0.1.0"), Err(HeaderError::Unreadable));
    }

    #[test]
    fn the_protocol_before_is_spoken_and_no_other() {
        let answer = |header: &str| check(Some(header), "0.3.1", &(4..=5)).map_err(|error| error.to_string());
        assert_eq!((answer("4 0.2.0"), answer("5 0.3.0")), (Ok(4), Ok(5)));
        let refused = |client: &str, protocol: u16, older: &str| -> Result<u16, String> {
            Err(format!(
                "incompatible versions: client narrows {client} (protocol {protocol}), server narrows 0.3.1 (protocol 5); \
                upgrade the {older}"
            ))
        };
        assert_eq!(answer("3 0.1.0"), refused("0.1.0", 3, "client"));
        assert_eq!(answer("6 0.4.0"), refused("0.4.0", 6, "server"));
        assert_eq!(check(None, "0.3.1", &(4..=5)), Ok(5));
    }

    #[test]
    fn at_most_one_older_protocol_is_spoken() {
        assert_eq!(*SPOKEN.end(), PROTOCOL);
        assert!(SPOKEN.len() <= 2, "{SPOKEN:?}");
    }
}
