//! The server as the user names it, `iperf3://host:port`, and how it is found.

use super::auth::Login;
use crate::remote::{RemoteError, connect_first, find_foreign};
use narrows_model::Family;
use narrows_wire::iperf3::PORT;
use std::net::{SocketAddr, TcpStream};
use thiserror::Error;

/// How the name of a server begins.
const SCHEME: &str = "iperf3://";

/// Why a test with a server of iperf3 did not come to its end.
#[derive(Debug, Error)]
pub enum Iperf3Error {
    /// The name, or the way there.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    #[error("the iperf3 server at {0} answered: {1}")]
    Answered(SocketAddr, String),
    /// It said something else than it should have.
    #[error("the server at {0} does not speak iperf3's protocol: {1}")]
    Strange(SocketAddr, String),
    #[error("the iperf3 server at {0} did not answer within {1} s ({2})")]
    Silent(SocketAddr, u64, &'static str),
    /// The control connection ended.
    #[error("lost the iperf3 server at {0}: {1}")]
    Lost(SocketAddr, String),
    #[error("{0}")]
    Here(String),
}

/// Whether a word names a server of iperf3.
pub fn is_iperf3(word: &str) -> bool {
    word.trim().starts_with(SCHEME)
}

/// A server of iperf3 with its addresses.
#[derive(Debug, Clone)]
pub struct Peer {
    pub(super) asked: String,
    addresses: Vec<SocketAddr>,
    login: Option<Login>,
}

impl Peer {
    /// Looks the server up. `word`: `iperf3://host` or `iperf3://host:port`.
    /// Errors: the word makes no sense, or the host is not known.
    pub fn find(word: &str, family: Option<Family>) -> Result<Self, RemoteError> {
        let asked = word.trim();
        let place = asked.strip_prefix(SCHEME).unwrap_or(asked);
        let form = "iperf3://host or iperf3://host:port";
        let (_, _, addresses) = find_foreign((asked, place, form), family, PORT)?;
        Ok(Self { asked: asked.to_owned(), addresses, login: None })
    }

    /// The same for a server with users.
    pub fn with_login(self, login: Option<Login>) -> Self {
        Self { login, ..self }
    }

    /// Who this client is, encrypted; `None`: nobody in particular.
    pub(super) fn word(&self) -> Result<Option<String>, Iperf3Error> {
        self.login.as_ref().map(Login::word).transpose().map_err(|error| Iperf3Error::Here(error.to_string()))
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.addresses.first().copied().unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], PORT)))
    }

    /// Connects to the first address that answers.
    pub(super) fn connect(&self) -> Result<(SocketAddr, TcpStream), RemoteError> {
        connect_first(&self.addresses).map_err(|error| match error {
            RemoteError::Refused(address) => RemoteError::Connect(format!(
                "cannot connect to {address}: connection refused; start `iperf3 -s` there, or give its port as in iperf3://HOST:PORT"
            )),
            other => other,
        })
    }
}
