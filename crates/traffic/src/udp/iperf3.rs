//! A stream whose other end is iperf3: after its handshake, which is [`narrows_wire::iperf3::datagram`]'s, the engine is the same.

use super::accept::set_options;
use super::buffers;
use super::error::UdpError;
use super::size::{largest, sizes};
use super::stream::{Dialect, UdpStream};
use crate::common::error::TrafficError;
use narrows_model::{Flow, Place, UdpPlan};
use narrows_sys::udp::socket;
use narrows_wire::Key;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

/// Takes a connected socket of a plan with fixed sizes. `wide`: counters of 64 bits.
/// Errors: the socket did not take an option.
pub fn iperf3(
    own: UdpSocket,
    peer: SocketAddr,
    (id, flow): (u32, Flow),
    place: Place,
    plan: &UdpPlan,
    wide: bool,
) -> Result<UdpStream, TrafficError> {
    let sizes = sizes(plan, UdpPlan::MIN_BYTES);
    set_options(&own, peer, id, plan)?;
    let buffers = buffers::set(&own, place, flow, id, plan, &sizes)?;
    Ok(UdpStream {
        id,
        flow,
        path_mtu_bytes: socket::path_mtu(&own, peer.is_ipv4()).ok(),
        socket: own,
        peer,
        cookie: 0,
        number: u16::try_from(id).map_err(|_| UdpError::Number(id))?,
        key: Key([0; 32]),
        datagram_bytes: largest(&sizes),
        buffers,
        answerer: None,
        heard: Arc::default(),
        real_time: false,
        dialect: Dialect::Iperf3 { wide },
    })
}
