//! From a host's name to a connection: addresses, one after the other, and a sentence for each way in which it fails.

use super::RemoteError;
use super::spec::family_of;
use narrows_model::Family;
use narrows_sys::net;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// For each address.
const CONNECT: Duration = Duration::from_secs(5);
/// More addresses than that are not tried.
const MOST_ADDRESSES: usize = 8;

/// The addresses of a host, of the family that the user insists on.
pub(super) async fn resolve(host: &str, port: u16, family: Option<Family>) -> Result<Vec<SocketAddr>, RemoteError> {
    let unknown = |why: String| RemoteError::UnknownHost { host: host.to_owned(), why };
    let found: Vec<SocketAddr> = tokio::net::lookup_host((host, port))
        .await
        .map_err(|error| unknown(plain_words(&error.to_string())))?
        .collect();
    if found.is_empty() {
        return Err(unknown("the resolver knows no address of it".to_owned()));
    }
    let mut fitting: Vec<_> =
        found.into_iter().filter(|address| family.is_none_or(|family| family_of(address.ip()) == family)).collect();
    fitting.dedup();
    fitting.truncate(MOST_ADDRESSES);
    match (fitting.is_empty(), family) {
        (true, Some(Family::Ipv4)) => Err(RemoteError::NoAddressOfFamily { host: host.to_owned(), family: "IPv4" }),
        (true, _) => Err(RemoteError::NoAddressOfFamily { host: host.to_owned(), family: "IPv6" }),
        (false, _) => Ok(fitting),
    }
}

/// The library's words for a failed look-up begin with its own name for it.
fn plain_words(error: &str) -> String {
    error.strip_prefix("failed to lookup address information: ").unwrap_or(error).to_owned()
}

/// Connects to the first address that answers; the error is of the first one that failed.
pub(super) fn connect_first(addresses: &[SocketAddr]) -> Result<(SocketAddr, TcpStream), RemoteError> {
    let mut first = None;
    for address in addresses {
        match net::connect(*address, CONNECT, |_| Ok::<_, narrows_sys::Error>(())) {
            Ok(stream) => return Ok((*address, stream)),
            Err(error) => {
                let error = RemoteError::from_connect(address.to_string(), &error);
                first.get_or_insert(error);
            }
        }
    }
    Err(first.unwrap_or_else(|| RemoteError::Connect("there is no address to connect to".to_owned())))
}
