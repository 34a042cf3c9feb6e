//! Options of the sockets of transactions.

use super::connections::{RrStream, Socket};
use crate::common::error::TrafficError;
use crate::common::limits::CALL_LIMIT;
use crate::common::sockets::address_text;
use narrows_model::{Distribution, RrPlan, RrStreamRecord};
use narrows_stats::Histogram;
use narrows_sys::{tcp, udp};
use std::net::UdpSocket;
use std::os::fd::{AsFd as _, BorrowedFd};

/// The default size of a socket's buffer (`net.core.rmem_default`).
const DEFAULT_BUFFER_BYTES: u64 = 200 << 10;
/// The largest request: the kernel doubles it and counts in 31 bits.
const MAX_BUFFER_BYTES: u32 = 256 << 20;

/// Gives a UDP socket room for all requests or answers that may be in flight. [`super::run`] does it too; where the other end may
/// begin earlier, do it as soon as the socket is made, so that its first requests find room.
///
/// # Errors
/// The kernel's error; the socket still works.
pub fn prepare(socket: &UdpSocket, plan: &RrPlan) -> Result<(), TrafficError> {
    // With the kernel's overhead of up to as much again, and at least 768 bytes each.
    let each = 2 * u64::from(plan.request_bytes.max(plan.response_bytes)) + 768;
    let needed = u64::from(plan.outstanding) * each;
    if needed <= DEFAULT_BUFFER_BYTES {
        return Ok(());
    }
    let needed = u32::try_from(needed).unwrap_or(u32::MAX).min(MAX_BUFFER_BYTES);
    udp::set_receive_buffer(socket, needed).map_err(|error| TrafficError::option("new socket", error, ""))
}

/// Sets what a socket needs, and opens its stream's record.
pub(super) fn settle(
    stream: &RrStream,
    plan: &RrPlan,
    remarks: &mut Vec<String>,
) -> Result<RrStreamRecord, TrafficError> {
    let on = format!("stream {}", stream.id);
    let plain = |operation: &'static str| {
        let on = on.clone();
        move |error| TrafficError::option(&on, narrows_sys::Error::new(operation, "the socket", error), "")
    };
    let limit = |socket: BorrowedFd<'_>| {
        tcp::set_call_limit(socket, CALL_LIMIT).map_err(|error| TrafficError::option(&on, error, ""))
    };
    let (local, remote) = match &stream.socket {
        Socket::Tcp(socket) => {
            socket.set_nonblocking(false).map_err(plain("make blocking"))?;
            socket.set_nodelay(true).map_err(plain("set TCP_NODELAY of"))?;
            limit(socket.as_fd())?;
            (address_text(socket.local_addr()), address_text(socket.peer_addr()))
        }
        Socket::Udp(socket) => {
            socket.set_nonblocking(false).map_err(plain("make blocking"))?;
            limit(socket.as_fd())?;
            if let Err(error) = prepare(socket, plan) {
                remarks.push(format!("{on}: {error}"));
            }
            (address_text(socket.local_addr()), address_text(socket.peer_addr()))
        }
    };
    let connect_ns = stream.connect_ns.map_or_else(Distribution::default, |nanos| {
        let mut one = Histogram::new();
        one.record(nanos);
        one.distribution()
    });
    Ok(RrStreamRecord { id: stream.id, local, remote, connect_ns, ..RrStreamRecord::default() })
}
