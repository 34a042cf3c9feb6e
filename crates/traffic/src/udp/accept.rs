//! The server's end of the handshake.

use super::answerer::{self, Answerer};
use super::buffers;
use super::error::UdpError;
use super::size::{largest, sizes};
use super::stream::{Dialect, UdpStream};
use crate::common::error::TrafficError;
use narrows_model::{Place, UdpPlan};
use narrows_sys::udp::{self, Arrival, UdpListener, socket};
use narrows_sys::{Error, tcp};
use narrows_wire::probe::Hello;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

/// The time limit of a read before the trial: a readable datagram may turn out to be damaged.
const READ_LIMIT: Duration = Duration::from_millis(100);

/// Makes the socket of a stream: at the local address that the hello came to, connected to the client, so that from here on
/// the kernel hands it all that the client sends on this stream; then answers the hello, and goes on answering until [`crate::run`].
///
/// `hello` was decoded from the datagram `arrival`, its key is known and its plan is `plan`. A hello of a stream
/// that was accepted already may still come out of the listener's queue: accept each stream once.
/// Errors: a socket could not be made, or did not take an option.
pub fn accept(hello: &Hello, arrival: &Arrival, plan: &UdpPlan) -> Result<UdpStream, TrafficError> {
    let id = u32::from(hello.stream);
    let failed = |source| UdpError::Socket { stream: id, source };
    let peer = arrival.source;
    let own = socket::connect_from(arrival.local, peer).map_err(failed)?;
    let sizes = sizes(plan, u32::try_from(arrival.bytes).unwrap_or(UdpPlan::MAX_BYTES));
    set_options(&own, peer, id, plan)?;
    let limited = own.set_read_timeout(Some(READ_LIMIT));
    limited.map_err(|error| failed(Error::new("set SO_RCVTIMEO of", "a UDP socket", error)))?;
    let buffers = buffers::set(&own, Place::Server, hello.flow, id, plan, &sizes)?;
    let cookie = u64::from_ne_bytes(narrows_sys::random::bytes().map_err(failed)?);
    answerer::answer(&own, &hello.key, cookie, &hello.encode(0), arrival.bytes);
    Ok(UdpStream {
        id,
        flow: hello.flow,
        answerer: Some(Answerer::start(&own, hello.key, cookie, id)?),
        path_mtu_bytes: socket::path_mtu(&own, peer.is_ipv4()).ok(),
        socket: own,
        peer,
        cookie,
        number: hello.stream,
        key: hello.key,
        datagram_bytes: largest(&sizes),
        buffers,
        heard: Arc::default(),
        real_time: true,
        dialect: Dialect::Probe,
    })
}

/// Refuses a hello with a sentence, from the address that it came to. A lost refusal is not repeated: the client asks again.
pub fn refuse(listener: &UdpListener, hello: &Hello, arrival: &Arrival, why: &str) {
    let _ = listener.answer(&hello.no(arrival.bytes, why), arrival);
}

/// What both ends set before the first datagram leaves.
pub(crate) fn set_options(own: &UdpSocket, peer: SocketAddr, id: u32, plan: &UdpPlan) -> Result<(), UdpError> {
    let failed = |source: Error| UdpError::Socket { stream: id, source };
    let fragments = if plan.allow_fragments { socket::Fragments::Allowed } else { socket::Fragments::Refused };
    udp::socket::set_fragments(own, peer.is_ipv4(), fragments).map_err(failed)?;
    if plan.dscp > 0 {
        tcp::set_dscp(own, plan.dscp).map_err(failed)?;
    }
    Ok(())
}
