//! The protocol's number. It covers the control API, the data hello and their meaning; both ends must use the same one.

use thiserror::Error;

/// The protocol of this program. It is raised when an older end would misunderstand a newer one; fields that an older
/// end may ignore do not raise it.
pub const PROTOCOL: u16 = 4;

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
pub fn protocol_header(version: &str) -> String {
    format!("{PROTOCOL} {version}")
}

/// Checks the client's protocol header against this program; a missing header, as from curl, is accepted.
/// Errors: the mismatch, or an error for an invalid header.
pub fn check_header(header: Option<&str>, own_version: &str) -> Result<(), HeaderError> {
    let Some(header) = header else { return Ok(()) };
    let (number, version) = header.split_once(' ').unwrap_or((header, "of unknown version"));
    let client_protocol: u16 = number.parse().map_err(|_| HeaderError::Unreadable)?;
    if client_protocol == PROTOCOL {
        return Ok(());
    }
    let client = version.chars().filter(char::is_ascii_graphic).take(32).collect();
    Err(HeaderError::Mismatch(Mismatch {
        client,
        client_protocol,
        server: own_version.to_owned(),
        server_protocol: PROTOCOL,
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
        assert_eq!(check_header(Some(&protocol_header("0.1.0")), "0.1.0"), Ok(()));
        assert_eq!(check_header(None, "0.1.0"), Ok(()));
        assert_eq!(check_header(Some("new"), "0.1.0"), Err(HeaderError::Unreadable));
    }
}
