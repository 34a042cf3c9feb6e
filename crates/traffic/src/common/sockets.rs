//! Words about sockets that the records of all engines use.

use narrows_sys::{files, net};
use std::io;
use std::net::SocketAddr;
use std::path::Path;

/// `address:port` of one end, for the record.
pub(crate) fn address_text(address: io::Result<SocketAddr>) -> String {
    address.map_or_else(|_| "unknown".to_owned(), |address| net::canonical(address).to_string())
}

/// The value of a sysctl (`net.core.rmem_max`), for a remark.
pub(crate) fn sysctl_text(name: &str) -> String {
    files::read_text(&Path::new("/proc/sys").join(name.replace('.', "/")))
        .map_or_else(|_| "not readable".to_owned(), |text| text.trim().to_owned())
}
