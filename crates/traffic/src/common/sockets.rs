//! What the sockets of all engines need, and words about them that the records use.

use super::error::TrafficError;
use super::limits::CALL_LIMIT;
use narrows_sys::{Error, files, net, tcp};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

/// Whether a call only reached its time limit or was interrupted.
pub(crate) fn waits(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Makes a connection blocking and sets or clears `TCP_NODELAY` and the time limit of each call.
pub(crate) fn settle(socket: &TcpStream, on: &str, no_delay: bool) -> Result<(), TrafficError> {
    let plain = |operation| move |error| TrafficError::option(on, Error::new(operation, "the socket", error), "");
    socket.set_nonblocking(false).map_err(plain("make blocking"))?;
    socket.set_nodelay(no_delay).map_err(plain("set TCP_NODELAY of"))?;
    tcp::set_call_limit(socket, CALL_LIMIT).map_err(|error| TrafficError::option(on, error, ""))
}

/// The round-trip time of the path, as the kernel knows it of the first of these connections: from their handshake before the load.
pub(crate) fn rtt<'a>(mut connections: impl Iterator<Item = &'a TcpStream>) -> Option<Duration> {
    let us = connections.next().and_then(|socket| tcp::info(socket).ok()?.rtt_us)?;
    (us > 0).then(|| Duration::from_micros(us))
}

/// `address:port` of one end, for the record.
pub(crate) fn address_text(address: io::Result<SocketAddr>) -> String {
    address.map_or_else(|_| "unknown".to_owned(), |address| net::canonical(address).to_string())
}

/// The value of a sysctl (`net.core.rmem_max`), for a remark.
pub(crate) fn sysctl_text(name: &str) -> String {
    files::read_text(&Path::new("/proc/sys").join(name.replace('.', "/")))
        .map_or_else(|_| "not readable".to_owned(), |text| text.trim().to_owned())
}
