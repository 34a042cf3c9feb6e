//! Errors of the connection to a server.

use narrows_model::Trial;
use narrows_model::words::show;
use narrows_wire::api::{Reason, Refusal};
use thiserror::Error;

/// Why a server cannot be reached or used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RemoteError {
    /// The target is invalid: the user's word, and why.
    #[error("invalid target `{0}`: {1}")]
    BadTarget(String, String),
    /// The name has no address: the name, and the resolver's error.
    #[error("cannot resolve `{0}`: {1}")]
    UnknownHost(String, String),
    /// The host has no address of the family: the host, `IPv4` or `IPv6`.
    #[error("`{0}` has no {1} address; use another host, or drop -4 or -6")]
    NoAddressOfFamily(String, &'static str),
    #[error("cannot connect to {0}: connection refused; start `narrows serve` there, or give its port with --port")]
    Refused(String),
    /// The same of the controller of a fleet, and how the user names another one.
    #[error(
        "cannot connect to {0}: connection refused; does `narrows fleet controller` run there? Name another host or port as {1}"
    )]
    NoController(String, &'static str),
    /// The network does not reach the address: why.
    #[error("cannot connect to {0}: no route ({1})")]
    NoRoute(String, String),
    #[error("cannot connect to {0}: no answer; check that the host is up and that firewalls allow the port")]
    TimedOut(String),
    /// Another failure to connect.
    #[error("{0}")]
    Connect(String),
    /// Something listens at the address that is not narrows: how it shows.
    #[error("{0} is not a narrows server ({1})")]
    NotNarrows(String, String),
    /// The server is not the one of the token.
    #[error(
        "the token does not match the server at {address}: its key is {found}, the token's is {expected}; copy the \
        token from this server, and check why the key changed"
    )]
    Fingerprint {
        address: String,
        /// The fingerprint in the token.
        expected: String,
        /// The fingerprint that the server has.
        found: String,
    },
    /// The server wants a token, and there is none.
    #[error("{0}")]
    NoToken(String),
    /// The secret is not the server's.
    #[error("{0}")]
    WrongToken(String),
    /// The protocols do not meet: why, and the server's own.
    #[error("{0}")]
    Version(String, u16),
    /// The server's queue is full.
    #[error("{0}")]
    Busy(String),
    /// The server does not let us do that.
    #[error("{0}")]
    NotAllowed(String),
    /// The server tried and failed, or did not like the request.
    #[error("the server says: {0}")]
    Server(String),
    /// The server at the address is lost: how it shows.
    #[error("lost the server at {0}: {1}")]
    Lost(String, String),
    /// A data connection to the address failed: why.
    #[error("cannot open a data connection to {0}: {1}")]
    Data(String, String),
    /// ssh failed: the command, and its message.
    #[error("`{0}` failed: {1}")]
    Ssh(String, String),
    /// This end could not do its part.
    #[error("{0}")]
    Here(String),
}

impl RemoteError {
    pub(super) fn from_refusal(refusal: &Refusal) -> Self {
        let message = plain(&refusal.message);
        match refusal.reason {
            Reason::NoToken => Self::NoToken(message),
            Reason::WrongToken => Self::WrongToken(message),
            Reason::VersionMismatch => Self::Version(message, refusal.protocol),
            Reason::Busy => Self::Busy(message),
            Reason::NotAllowed => Self::NotAllowed(message),
            Reason::BadRequest | Reason::NotFound | Reason::Failed | Reason::Other => Self::Server(message),
        }
    }

    /// From a failed connection attempt.
    pub(super) fn from_connect(address: String, error: &narrows_sys::Error) -> Self {
        match error.errno() {
            Some(111) => Self::Refused(address), // ECONNREFUSED
            Some(99 | 101 | 113) => Self::NoRoute(address, error.source.to_string()), // EADDRNOTAVAIL, ENETUNREACH, EHOSTUNREACH
            Some(110) => Self::TimedOut(address),                                     // ETIMEDOUT
            _ if error.source.kind() == std::io::ErrorKind::TimedOut => Self::TimedOut(address),
            _ => Self::Connect(error.to_string()),
        }
    }
}

/// Words of the other end, for a terminal: without what would control it, and not without end.
pub(super) fn plain(words: &str) -> String {
    show::clean(&words.chars().take(1_000).collect::<String>())
}

/// A trial that did not end as planned.
#[derive(Debug, Error)]
#[error("{why}")]
pub struct TrialError {
    /// What was measured until then: this end's record, and the other's as far as it was told.
    pub partial: Option<Box<Trial>>,
    #[source]
    pub why: RemoteError,
}

impl From<RemoteError> for TrialError {
    fn from(why: RemoteError) -> Self {
        Self { partial: None, why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_other_end_do_not_reach_the_terminal_as_they_are() {
        let message = format!("\u{1b}]0;title\u{7}busy\n{}", "x".repeat(5_000));
        let refusal = Refusal { reason: Reason::Busy, message, version: String::new(), protocol: 0 };
        let words = RemoteError::from_refusal(&refusal).to_string();
        assert!(words.contains("?]0;title?busy x") && !words.chars().any(char::is_control), "{words}");
        assert!(words.len() < 1_200);
    }
}
