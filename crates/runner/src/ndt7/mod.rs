//! A client of ndt7: the far end of a measurement is a server of Measurement Lab's tool, which says what its kernel knows of the connection.

mod ends;
mod websocket;

pub use ends::Ndt7Ends;

use crate::remote::{RemoteError, Trust, family_of, find_foreign};
use narrows_model::{Family, Target};
use std::net::SocketAddr;

/// How the name of a server begins: with TLS, and without.
const SCHEMES: [(&str, bool, u16); 2] = [("ndt7://", true, 443), ("ndt7+ws://", false, 80)];

/// Whether a word names a server of ndt7.
pub fn is_ndt7(word: &str) -> bool {
    SCHEMES.iter().any(|(scheme, ..)| word.trim().starts_with(scheme))
}

/// A server of ndt7 with its addresses.
#[derive(Debug, Clone)]
pub struct Server {
    asked: String,
    host: String,
    port: u16,
    addresses: Vec<SocketAddr>,
    /// `None`: without TLS.
    trust: Option<Trust>,
}

impl Server {
    /// Looks the server up. `word`: `ndt7://host[:port]`, or `ndt7+ws://host[:port]` without TLS.
    /// Errors: the word makes no sense, or the host is not known.
    pub fn find(word: &str, family: Option<Family>, trust: Trust) -> Result<Self, RemoteError> {
        let asked = word.trim();
        let of = |(scheme, tls, port)| asked.strip_prefix(scheme).map(|place: &str| (place, tls, port));
        let (place, tls, port) = SCHEMES.into_iter().find_map(of).unwrap_or((asked, true, 443));
        let form = "ndt7://host or ndt7://host:port";
        let (host, port, addresses) = find_foreign((asked, place, form), family, port)?;
        Ok(Self { asked: asked.to_owned(), host, port, addresses, trust: tls.then_some(trust) })
    }

    pub fn target(&self) -> Target {
        let address = self.addresses.first().copied().unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], self.port)));
        Target { asked: self.asked.clone(), address: address.to_string(), family: family_of(address.ip()) }
    }
}
