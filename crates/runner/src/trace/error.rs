//! Why a trace cannot be made.

use thiserror::Error;

/// A trace that cannot be made.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The name has no address.
    #[error("{0}")]
    Name(#[source] narrows_sys::Error),
    /// The name has no address of the family that was asked for.
    #[error("cannot trace `{0}`: it has no {1} address")]
    Family(String, &'static str),
    /// Ordinary users may not send echo requests.
    #[error("{0}; echo requests take root (CAP_NET_RAW), or a group of this user in net.ipv4.ping_group_range")]
    Echo(#[source] narrows_sys::Error),
    #[error("{0}")]
    Socket(#[from] narrows_sys::Error),
}
