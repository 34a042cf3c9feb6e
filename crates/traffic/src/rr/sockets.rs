//! Options of the sockets of transactions.

use crate::common::connections::{DataStream, Socket};
use crate::common::error::TrafficError;
use crate::common::limits::CALL_LIMIT;
use crate::common::sockets::{self, address_text};
use narrows_model::{Distribution, RrPlan, RrStreamRecord};
use narrows_stats::Histogram;
use narrows_sys::{tcp, udp};
use std::net::UdpSocket;

/// The default size of a socket's buffer (`net.core.rmem_default`).
const DEFAULT_BUFFER_BYTES: u64 = 200 << 10;
/// The largest request: the kernel doubles it and counts in 31 bits.
const MAX_BUFFER_BYTES: u32 = 256 << 20;

/// Gives a UDP socket room for all requests or answers that may be in flight. Where that fails, the socket still works.
pub(super) fn prepare(socket: &UdpSocket, plan: &RrPlan) -> Result<(), TrafficError> {
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
    stream: &mut DataStream,
    plan: &RrPlan,
    remarks: &mut Vec<String>,
) -> Result<RrStreamRecord, TrafficError> {
    let on = format!("stream {}", stream.id);
    let (local, remote) = match &mut stream.socket {
        Socket::Tcp(socket) | Socket::Layered(socket, _) => {
            sockets::settle(socket, &on, true)?;
            (socket.local_addr(), socket.peer_addr())
        }
        Socket::Own(witness, _) => witness.addresses().map(Ok).into(),
        Socket::Udp(stream) => {
            // The engine answers from here on.
            stream.answerer = None;
            let socket = &stream.socket;
            tcp::set_call_limit(socket, CALL_LIMIT).map_err(|error| TrafficError::option(&on, error, ""))?;
            if let Err(error) = prepare(socket, plan) {
                remarks.push(format!("{on}: {error}"));
            }
            (socket.local_addr(), socket.peer_addr())
        }
    };
    let connect_ns = stream.connect_ns.map_or_else(Distribution::default, |nanos| {
        let mut one = Histogram::new();
        one.record(nanos);
        one.distribution()
    });
    let (local, remote) = (address_text(local), address_text(remote));
    Ok(RrStreamRecord { id: stream.id, local, remote, connect_ns, ..RrStreamRecord::default() })
}
