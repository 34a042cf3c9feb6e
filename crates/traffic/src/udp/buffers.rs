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
const MOST_RECEIVE: f64 = 64.0 * 1_048_576.0;
/// One receive buffer, bytes of kernel memory: the kernel's default.
const LEAST_RECEIVE: f64 = 425_984.0;
const LEAST_SEND: f64 = 425_984.0;
const MOST_SEND: f64 = 4.0 * 1_048_576.0;
/// No send waits longer for room.
pub(crate) const SEND_LIMIT: Duration = Duration::from_millis(50);

/// Kernel memory of one received datagram, on the safe side: `skb->truesize` is its data, rounded up by the allocator, and the
/// descriptors (include/linux/skbuff.h, `SKB_TRUESIZE`); drivers take 2 KiB pieces of pages.
pub(crate) fn memory_of(bytes: f64) -> f64 {
    bytes + if bytes <= 256.0 { 768.0 } else { 1280.0 }
}

/// What the sockets have, in bytes of kernel memory (twice what is asked for with `SO_SNDBUF`, `SO_RCVBUF`).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Buffers {
    pub(crate) send: Option<u32>,
    pub(crate) receive: Option<u32>,
    pub(crate) receive_wanted: Option<u32>,
}

/// The receive buffer for a load, bytes of kernel memory.
fn receive_wanted(load: &Load, streams: u32) -> f64 {
    let most = (MOST_RECEIVE / f64::from(streams.max(1))).max(4.0 * LEAST_RECEIVE);
    let wanted = load.pps().map_or(most, |pps| pps * memory_of(load.mean_bytes) * RECEIVE_SECONDS);
    wanted.clamp(LEAST_RECEIVE, most)
}

/// The send buffer for a load, bytes of kernel memory.
fn send_wanted(load: &Load) -> f64 {
    let wanted = load.pps().map_or(MOST_SEND, |pps| pps * memory_of(load.mean_bytes) * SEND_SECONDS);
    wanted.clamp(LEAST_SEND, MOST_SEND)
}

/// Sets what one end of a stream needs, and reads it back. What the user asks for is asked for as any program would; what the
/// engine wants may exceed the sysctl where this process has the privilege.
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
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // within the limits above
    let half = |bytes: f64| (bytes / 2.0) as u32;
    let mut wanted = None;
    if flow.sender() == place {
        match plan.send_buffer_bytes {
            Some(bytes) => tcp::set_send_buffer(socket, bytes).map_err(failed)?,
            None => udp::socket::set_send_buffer(socket, half(send_wanted(&load))).map_err(failed)?,
        }
        udp::socket::set_send_limit(socket, SEND_LIMIT).map_err(failed)?;
    } else {
        let bytes = plan.receive_buffer_bytes.unwrap_or_else(|| half(receive_wanted(&load, plan.streams)));
        wanted = Some(bytes.saturating_mul(2));
        match plan.receive_buffer_bytes {
            Some(bytes) => tcp::set_receive_buffer(socket, bytes).map_err(failed)?,
            None => udp::set_receive_buffer(socket, bytes).map_err(failed)?,
        }
    }
    Ok(Buffers {
        send: tcp::send_buffer(socket).ok(),
        receive: tcp::receive_buffer(socket).ok(),
        receive_wanted: wanted,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::UdpRate;

    #[test]
    fn buffers_grow_with_the_rate_within_limits() {
        let load = |rate_up| Load::of(&UdpPlan { rate_up, ..UdpPlan::default() }, Flow::Up, &[1472]);
        assert_eq!(receive_wanted(&load(UdpRate::Bps(1_000_000)), 1), LEAST_RECEIVE);
        // 84,918 datagrams a second of 2,752 bytes of memory, for a tenth of a second
        let gigabit = receive_wanted(&load(UdpRate::Bps(1_000_000_000)), 1);
        assert!((gigabit - 23.37e6).abs() < 0.01e6, "{gigabit}");
        assert_eq!(receive_wanted(&load(UdpRate::Max), 1), MOST_RECEIVE);
        assert_eq!(receive_wanted(&load(UdpRate::Max), 128), 4.0 * LEAST_RECEIVE);
        assert_eq!(send_wanted(&load(UdpRate::Max)), MOST_SEND);
        assert_eq!(send_wanted(&load(UdpRate::Bps(1000))), LEAST_SEND);
    }
}
