//! How a page is shown, as a command asks for it.

use crate::stored::Kinds;
use std::net::IpAddr;
use std::path::PathBuf;

/// How a page is shown.
#[derive(Debug, Clone)]
pub struct PageSpec {
    /// The store of the runs that it can show: a file, or an address of PostgreSQL.
    pub store: PathBuf,
    /// The kinds of records that it can show.
    pub kinds: Kinds,
    /// A reverse proxy that names readers.
    pub proxy: Option<Proxy>,
    /// Of a server: whether who shows its token may start tests from this host and undo changes of its settings.
    pub controls: bool,
}

/// A reverse proxy that has checked who the reader is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// The header that names the reader.
    pub header: String,
    /// Addresses of the proxy: of others the header is not believed.
    pub from: Vec<IpAddr>,
}
