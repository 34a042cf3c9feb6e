//! Socket buffers for a rate. The defaults of the kernel hold some 100 datagrams: a receiver that waits for its turn on a
//! CPU for a millisecond loses what the path delivered.

use super::error::UdpError;
use super::load::Load;
use narrows_model::{Flow, Place, UdpPlan};
use narrows_sys::{tcp, udp};
use std::net::UdpSocket;
use std::time::Duration;

/// A receive buffer holds what arrives in this time.
const RECEIVE_SECONDS: f64 = 0.1;
/// A send buffer holds what leaves in this time: more would only hide a slow path from the pacer.
const SEND_SECONDS: f64 = 0.01;
/// All receive buffers of a flow together, bytes of kernel memory.
const MAX_RECEIVE: f64 = 64.0 * 1_048_576.0;
/// One receive buffer, bytes of kernel memory: the kernel's default.
const MIN_RECEIVE: f64 = 425_984.0;
const MIN_SEND: f64 = 425_984.0;
const MAX_SEND: f64 = 4.0 * 1_048_576.0;
/// No send waits longer for room.
pub(crate) const SEND_LIMIT: Duration = Duration::from_millis(50);

/// Kernel memory of one received datagram, on the safe side: `skb->truesize` is its data, rounded up by the allocator, and the
/// descriptors (include/linux/skbuff.h, `SKB_TRUESIZE`); drivers take 2 KiB pieces of pages.
pub(crate) fn memory_of(bytes: f64) -> f64 {
    bytes + if bytes <= 256.0 { 768.0 } else { 1280.0 }
}

/// The buffers obtained, in bytes of kernel memory (twice the values of `SO_SNDBUF`, `SO_RCVBUF`).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Buffers {
    pub(crate) send: Option<u32>,
    pub(crate) receive: Option<u32>,
    pub(crate) receive_target: Option<u32>,
}

/// The receive buffer for a load, bytes of kernel memory.
fn receive_target(load: &Load, streams: u32) -> f64 {
    let max = (MAX_RECEIVE / f64::from(streams.max(1))).max(4.0 * MIN_RECEIVE);
    let target = load.pps().map_or(max, |pps| pps * memory_of(load.mean_bytes) * RECEIVE_SECONDS);
    target.clamp(MIN_RECEIVE, max)
}

/// The send buffer for a load, bytes of kernel memory.
fn send_target(load: &Load) -> f64 {
    let target = load.pps().map_or(MAX_SEND, |pps| pps * memory_of(load.mean_bytes) * SEND_SECONDS);
    target.clamp(MIN_SEND, MAX_SEND)
}

/// Sets the buffers of one end of a stream, and reads them back. A size by the user is bounded by the sysctl; the engine's own
/// choice may exceed it where this process has the privilege.
pub(crate) fn set(
    socket: &UdpSocket,
    place: Place,
    flow: Flow,
    id: u32,
    plan: &UdpPlan,
    sizes: &[u32],
) -> Result<Buffers, UdpError> {
    let failed = |source| UdpError::Socket { stream: id, source };
    let load = Load::of(plan, flow, sizes);
    let half = |bytes: f64| (bytes / 2.0) as u32;
    let mut target = None;
    if flow.sender() == place {
        match plan.send_buffer_bytes {
            Some(bytes) => tcp::set_send_buffer(socket, bytes).map_err(failed)?,
            None => udp::socket::set_send_buffer(socket, half(send_target(&load))).map_err(failed)?,
        }
        udp::socket::set_send_limit(socket, SEND_LIMIT).map_err(failed)?;
    } else {
        let bytes = plan.receive_buffer_bytes.unwrap_or_else(|| half(receive_target(&load, plan.streams)));
        target = Some(bytes.saturating_mul(2));
        match plan.receive_buffer_bytes {
            Some(bytes) => tcp::set_receive_buffer(socket, bytes).map_err(failed)?,
            None => udp::set_receive_buffer(socket, bytes).map_err(failed)?,
        }
    }
    Ok(Buffers {
        send: tcp::send_buffer(socket).ok(),
        receive: tcp::receive_buffer(socket).ok(),
        receive_target: target,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::UdpRate;

    #[test]
    fn buffers_grow_with_the_rate_within_limits() {
        let load = |rate_up| Load::of(&UdpPlan { rate_up, ..UdpPlan::default() }, Flow::Up, &[1472]);
        assert_eq!(receive_target(&load(UdpRate::Bps(1_000_000)), 1), MIN_RECEIVE);
        // 84,918 datagrams a second of 2,752 bytes of memory, for a tenth of a second
        let gigabit = receive_target(&load(UdpRate::Bps(1_000_000_000)), 1);
        assert!((gigabit - 23.37e6).abs() < 0.01e6, "{gigabit}");
        assert_eq!(receive_target(&load(UdpRate::Max), 1), MAX_RECEIVE);
        assert_eq!(receive_target(&load(UdpRate::Max), 128), 4.0 * MIN_RECEIVE);
        assert_eq!(send_target(&load(UdpRate::Max)), MAX_SEND);
        assert_eq!(send_target(&load(UdpRate::Bps(1000))), MIN_SEND);
    }
}
