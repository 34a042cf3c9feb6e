//! Errors of the connection to a server.

use narrows_model::Trial;
use narrows_wire::api::{Reason, Refusal};
use thiserror::Error;

/// Why a server cannot be reached or used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RemoteError {
    /// The target is invalid.
    #[error("`{asked}` is no target: {why}")]
    BadTarget {
        /// The word.
        asked: String,
        /// What is wrong with it.
        why: String,
    },
    /// The name has no address.
    #[error("the host `{host}` is unknown: {why}")]
    UnknownHost {
        /// The name.
        host: String,
        /// What the resolver said.
        why: String,
    },
    /// No address of the family that the user insists on.
    #[error("the host `{host}` has no {family} address; name another one, or leave the family open")]
    NoAddressOfFamily {
        /// The name.
        host: String,
        /// `IPv4` or `IPv6`.
        family: &'static str,
    },
    /// Nothing listens.
    #[error("nothing listens at {0}: start `narrows serve` there, or name its port")]
    Refused(String),
    /// The network does not reach it.
    #[error("there is no route to {address} ({why})")]
    NoRoute {
        /// Address and port.
        address: String,
        /// What the kernel said.
        why: String,
    },
    /// No answer.
    #[error("{0} does not answer: is the host up, and does a firewall let the port through?")]
    TimedOut(String),
    /// Another failure to connect.
    #[error("{0}")]
    Connect(String),
    /// Something listens that is not narrows.
    #[error("what listens at {address} is no narrows server ({why})")]
    NotNarrows {
        /// Address and port.
        address: String,
        /// How it shows.
        why: String,
    },
    /// The server is not the one of the token.
    #[error(
        "the server at {address} is not the one of the token: its key is {found}, the token's is {expected}; \
         take the token from this server, and if its key should not have changed, find out why it did"
    )]
    Fingerprint {
        /// Address and port.
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
    /// The protocols do not meet.
    #[error("{0}")]
    Version(String),
    /// The server's queue is full.
    #[error("{0}")]
    Busy(String),
    /// The server does not let us do that.
    #[error("{0}")]
    NotAllowed(String),
    /// The server tried and failed, or did not like the request.
    #[error("the server says: {0}")]
    Server(String),
    /// The server is gone.
    #[error("the server at {address} is lost: {why}")]
    Lost {
        /// Address and port.
        address: String,
        /// How it shows.
        why: String,
    },
    /// A data connection could not be made.
    #[error("a data connection to {address} cannot be made: {why}")]
    Data {
        /// Address and port.
        address: String,
        /// Why.
        why: String,
    },
    /// ssh did not bring us there.
    #[error("`{command}` failed: {said}")]
    Ssh {
        /// The command.
        command: String,
        /// What it said.
        said: String,
    },
    /// This end could not do its part.
    #[error("{0}")]
    Here(String),
}

impl RemoteError {
    pub(super) fn from_refusal(refusal: Refusal) -> Self {
        let message = refusal.message;
        match refusal.reason {
            Reason::NoToken => Self::NoToken(message),
            Reason::WrongToken => Self::WrongToken(message),
            Reason::VersionMismatch => Self::Version(message),
            Reason::Busy => Self::Busy(message),
            Reason::NotAllowed => Self::NotAllowed(message),
            Reason::BadRequest | Reason::NotFound | Reason::Failed | Reason::Other => Self::Server(message),
        }
    }

    /// From a failed connection attempt.
    pub(super) fn from_connect(address: String, error: &narrows_sys::Error) -> Self {
        match error.errno() {
            Some(111) => Self::Refused(address), // ECONNREFUSED
            Some(99 | 101 | 113) => Self::NoRoute { address, why: error.source.to_string() }, // EADDRNOTAVAIL, ENETUNREACH, EHOSTUNREACH
            Some(110) => Self::TimedOut(address),                                             // ETIMEDOUT
            _ if error.source.kind() == std::io::ErrorKind::TimedOut => Self::TimedOut(address),
            _ => Self::Connect(error.to_string()),
        }
    }
}

/// A trial that did not end as planned.
#[derive(Debug, Error)]
#[error("{why}")]
pub struct TrialError {
    /// What was measured until then: this end's record, and the other's as far as it was told.
    pub partial: Option<Box<Trial>>,
    /// What happened.
    #[source]
    pub why: RemoteError,
}

impl From<RemoteError> for TrialError {
    fn from(why: RemoteError) -> Self {
        Self { partial: None, why }
    }
}
