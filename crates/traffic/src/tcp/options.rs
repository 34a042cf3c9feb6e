//! The socket options of a plan: before the handshake, after it, and as read back.

use crate::common::connections::Witness;
use crate::common::error::TrafficError;
use crate::common::sockets::{self, address_text, sysctl_text};
use narrows_model::{Flow, Place, TcpPlan, TcpStreamRecord};
use narrows_sys::{files, tcp};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

/// Sets on one end's socket what has to be set before the handshake: MSS, DSCP, the receive buffer of a receiver, and the congestion
/// control of a sender: a connection that begins under BBR is paced ever after, whatever it is given then (`bbr_init`,
/// net/ipv4/tcp_bbr.c).
///
/// For a connecting socket call it before `connect` (it fits as `before` of [`narrows_sys::net::connect`]), for an accepted one
/// right after `accept`: the kernel chose the window scale by `tcp_rmem` and `rmem_max` then, which leaves room for every
/// buffer that can be obtained, and the MSS is announced by the connecting end for both.
/// Errors: the option that the kernel refused, with what it allows.
pub fn prepare(socket: impl AsFd, place: Place, flow: Flow, plan: &TcpPlan) -> Result<(), TrafficError> {
    apply_early(socket.as_fd(), "new connection", flow.receiver() == place, plan)
}

fn apply_early(socket: BorrowedFd<'_>, on: &str, receives: bool, plan: &TcpPlan) -> Result<(), TrafficError> {
    let plain = |error| TrafficError::option(on, error, "");
    if let Some(mss) = plan.mss_bytes {
        tcp::set_max_segment(socket, mss)
            .map_err(|error| TrafficError::option(on, error, "; 88 to 32767 are allowed"))?;
    }
    if plan.dscp > 0 {
        tcp::set_dscp(socket, plan.dscp).map_err(plain)?;
    }
    if receives && let Some(bytes) = plan.receive_buffer_bytes {
        tcp::set_receive_buffer(socket, bytes).map_err(plain)?;
    }
    if !receives && let Some(name) = &plan.congestion_control {
        tcp::set_congestion_control(socket, name).map_err(|error| {
            let allowed = format!("; this host has: {}", available_congestion_controls());
            TrafficError::option(on, error, &allowed)
        })?;
    }
    Ok(())
}

/// Sets the rest on a connected socket, reads all of it back, and opens the stream's record.
pub(super) fn settle(
    id: u32,
    flow: Flow,
    stream: &TcpStream,
    place: Place,
    plan: &TcpPlan,
    remarks: &mut Vec<String>,
) -> Result<TcpStreamRecord, TrafficError> {
    let socket = stream.as_fd();
    let on = format!("stream {id}");
    let receives = flow.receiver() == place;
    let plain = |error| TrafficError::option(&on, error, "");
    sockets::settle(stream, &on, plan.no_delay)?;
    let early = tcp::buffer_lock(socket).ok();
    if !receives || early.is_none_or(|lock| !lock.receive) {
        apply_early(socket, &on, receives, plan)?;
    }
    if !receives {
        if let Some(bytes) = plan.send_buffer_bytes {
            tcp::set_send_buffer(socket, bytes).map_err(plain)?;
        }
        if let Some(bps) = plan.pacing_bps {
            tcp::set_max_pacing(socket, bps / 8).map_err(plain)?;
        }
    }

    let info = tcp::info(socket).unwrap_or_default();
    let record = TcpStreamRecord {
        id,
        flow,
        local: address_text(stream.local_addr()),
        remote: address_text(stream.peer_addr()),
        congestion_control: tcp::congestion_control(socket).ok(),
        mss_bytes: info.snd_mss_bytes.and_then(|mss| u32::try_from(mss).ok()),
        buffer_lock: tcp::buffer_lock(socket).ok(),
        sndbuf_bytes: tcp::send_buffer(socket).ok(),
        rcvbuf_bytes: tcp::receive_buffer(socket).ok(),
        method: String::new(),
        samples: Vec::new(),
        subflows: Vec::new(),
    };
    check_obtained(&on, socket, (place, receives), plan, &record, remarks);
    Ok(record)
}

/// Opens the record of a stream whose transport is this process's.
pub(super) fn of_own(id: u32, flow: Flow, witness: &dyn Witness) -> TcpStreamRecord {
    let [local, remote] = witness.addresses().map(|address| address_text(Ok(address)));
    let mss_bytes = witness.info().snd_mss_bytes.and_then(|mss| u32::try_from(mss).ok());
    let congestion_control = Some(witness.congestion_control().to_owned());
    TcpStreamRecord { id, flow, local, remote, congestion_control, mss_bytes, ..TcpStreamRecord::default() }
}

/// Remarks on options that were not obtained.
fn check_obtained(
    on: &str,
    socket: BorrowedFd<'_>,
    (place, receives): (Place, bool),
    plan: &TcpPlan,
    record: &TcpStreamRecord,
    remarks: &mut Vec<String>,
) {
    let (asked, obtained, name, sysctl) = if receives {
        (plan.receive_buffer_bytes, record.rcvbuf_bytes, "SO_RCVBUF", "net.core.rmem_max")
    } else {
        (plan.send_buffer_bytes, record.sndbuf_bytes, "SO_SNDBUF", "net.core.wmem_max")
    };
    // The kernel doubles what it grants.
    if let (Some(asked), Some(obtained)) = (asked, obtained)
        && u64::from(obtained) < 2 * u64::from(asked)
    {
        let limit = sysctl_text(sysctl);
        remarks.push(format!("{on}: asked for {asked} bytes of {name}, got {} ({sysctl} is {limit})", obtained / 2));
    }
    if let (Some(asked), Some(used)) = (plan.mss_bytes, record.mss_bytes)
        && used > u32::from(asked)
    {
        remarks.push(format!("{on}: asked for an MSS of {asked} bytes, the connection uses {used}"));
    }
    if !receives
        && let (Some(asked), Some(used)) = (&plan.congestion_control, &record.congestion_control)
        && asked != used
    {
        remarks.push(format!("{on}: asked for the congestion control {asked}, the connection uses {used}"));
    }
    if !receives
        && place == Place::Server
        && let Some(name) = plan.congestion_control.as_ref().filter(|name| !name.starts_with("bbr"))
    {
        let first = sysctl_text("net.ipv4.tcp_congestion_control");
        let remark = format!(
            "the connections that the server accepted began under {first}, whose pacing stays in force under {name}"
        );
        if first.starts_with("bbr") && !remarks.contains(&remark) {
            remarks.push(remark);
        }
    }
    if !receives
        && let Some(bps) = plan.pacing_bps
        && tcp::max_pacing(socket).is_ok_and(|used| used != bps / 8)
    {
        remarks.push(format!("{on}: the pacing rate of {bps} bit/s was not obtained"));
    }
    let ipv6 = record.remote.starts_with('[');
    if plan.dscp > 0
        && let Ok(used) = tcp::dscp(socket, ipv6)
        && used != plan.dscp
    {
        remarks.push(format!("{on}: asked for DSCP {}, the socket has {used}", plan.dscp));
    }
}

fn available_congestion_controls() -> String {
    files::read_text(Path::new("/proc/sys/net/ipv4/tcp_available_congestion_control"))
        .map_or_else(|_| "(not readable)".to_owned(), |text| text.split_whitespace().collect::<Vec<_>>().join(", "))
}
