//! One look at one stream.

use crate::counters::Counters;
use narrows_model::TcpSample;
use narrows_sys::tcp;
use std::net::TcpStream;

/// Takes what the kernel and the data thread say now. What the kernel does not say is missing.
pub(crate) fn take(at_us: u64, socket: &TcpStream, counters: &Counters) -> TcpSample {
    TcpSample {
        at_us,
        bytes: counters.bytes(),
        calls: counters.calls(),
        thread_cpu_us: counters.cpu_us(),
        tcp: tcp::info(socket).unwrap_or_default(),
        memory: tcp::memory(socket).ok(),
        recv_q_bytes: tcp::queued_in(socket).ok(),
        send_q_bytes: tcp::queued_out(socket).ok(),
    }
}
