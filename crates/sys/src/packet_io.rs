//! Whole frames through a packet socket: sent without the queueing discipline, received in batches.
//!
//! Source: packet(7), sendmmsg(2), recvmmsg(2), kernel `net/packet/af_packet.c`.

use crate::raw::{
    bind_packet_socket, packet_drops, poll, receive_messages, send_messages, set_buffer, set_control, set_option,
    socket,
};
use crate::{Error, Result};
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

/// Maximum number of frames per call.
pub const BATCH: usize = 64;
/// Bytes of a frame that are read: its headers and signature.
const SNAP: usize = 128;
/// Bytes of a VLAN tag that the kernel removes before the socket receives the frame.
const TAG_BYTES: usize = 4;
/// Memory for frames under way: more than a device's queue holds, so that no call blocks on it.
const BUFFER_BYTES: u32 = 64 << 20;

fn open(index: u32, protocol: libc::c_int) -> Result<OwnedFd> {
    // Protocol 0: no packets before it is bound.
    let fd = socket(libc::AF_PACKET, libc::SOCK_RAW, 0, "open", "a packet socket (it needs CAP_NET_RAW)")?;
    bind_packet_socket(&fd, index, protocol, "bind a packet socket to", format!("device {index}"))?;
    Ok(fd)
}

fn set(fd: &OwnedFd, option: libc::c_int, operation: &'static str) -> Result<()> {
    let one: libc::c_int = 1;
    set_option(fd, libc::SOL_PACKET, option, &one, operation, || "a packet socket".to_owned())
}

/// The result of sending frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// The device accepted this many.
    pub taken: usize,
    /// It rejected this many, 0 or 1 after the accepted ones, and may count it as dropped; it can be sent again.
    pub refused: u64,
}

/// Sends frames through one device.
#[derive(Debug)]
pub struct PacketSender {
    fd: OwnedFd,
}

impl PacketSender {
    /// Through the device with that index in the calling thread's network namespace.
    /// Errors: no privilege, no such device.
    pub fn open(index: u32) -> Result<Self> {
        let fd = open(index, 0)?;
        set(&fd, libc::PACKET_QDISC_BYPASS, "send past the queueing discipline by")?;
        let names = [libc::SO_SNDBUFFORCE, libc::SO_SNDBUF].map(|name| (name, "set the send buffer of"));
        // A smaller one only fills earlier, which is counted.
        let _ = set_buffer(&fd, names, BUFFER_BYTES, "a packet socket");
        Ok(Self { fd })
    }

    /// Sends at most the first [`BATCH`] of these frames, up to the first that the device has no room for.
    /// Errors: the kernel's error, except for a full queue.
    pub fn send<'a>(&self, frames: impl Iterator<Item = &'a [u8]>) -> Result<Sent> {
        let mut parts: [libc::iovec; BATCH] = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; BATCH];
        let mut count = 0;
        for (part, frame) in parts.iter_mut().zip(frames) {
            *part = libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
            count += 1;
        }
        // SAFETY: zeroes are a valid mmsghdr.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        for (message, part) in messages.iter_mut().zip(&mut parts) {
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: the messages point to parts and frames that outlive the call; the kernel only reads the frames.
        match unsafe { send_messages(&self.fd, &mut messages[..count], libc::MSG_DONTWAIT) } {
            // The error of a frame in the middle is not reported; the buffer has room for all that a
            // device's queue holds.
            Ok(taken) => Ok(Sent { taken, refused: u64::from(taken < count) }),
            Err(error) => match error.raw_os_error() {
                Some(libc::ENOBUFS) => Ok(Sent { taken: 0, refused: 1 }),
                Some(libc::EAGAIN | libc::EINTR) => Ok(Sent::default()),
                _ => Err(Error::new("send frames by", "a packet socket", error)),
            },
        }
    }
}

/// Whether the frame had a tag that is not among its bytes (`PACKET_AUXDATA` of packet(7)).
fn tag_taken_off(message: &libc::msghdr) -> bool {
    // SAFETY: the kernel filled the message, and its control and length are as it left them.
    let header = unsafe { libc::CMSG_FIRSTHDR(message) };
    // SAFETY: it is null or lies whole inside of the control.
    let Some(found) = (unsafe { header.as_ref() }) else { return false };
    let bytes = size_of::<libc::tpacket_auxdata>();
    // SAFETY: the macro computes with the number alone.
    let whole = found.cmsg_len >= unsafe { libc::CMSG_LEN(bytes as libc::c_uint) } as _;
    if (found.cmsg_level, found.cmsg_type) != (libc::SOL_PACKET, libc::PACKET_AUXDATA) || !whole {
        return false;
    }
    // SAFETY: the data behind this header is, by its type and length, a `tpacket_auxdata`; it need not be aligned.
    let said = unsafe { libc::CMSG_DATA(header).cast::<libc::tpacket_auxdata>().read_unaligned() };
    said.tp_status & libc::TP_STATUS_VLAN_VALID != 0
}

/// Receives the first bytes of frames from one device.
#[derive(Debug)]
pub struct PacketReader {
    fd: OwnedFd,
    buffer: Vec<[u8; SNAP]>,
}

impl PacketReader {
    /// From the device with that index in the calling thread's network namespace; frames that it sends are left
    /// out.
    /// Errors: no privilege, no such device.
    pub fn open(index: u32) -> Result<Self> {
        let fd = open(index, libc::ETH_P_ALL)?;
        set(&fd, libc::PACKET_IGNORE_OUTGOING, "leave out what is sent from")?;
        set(&fd, libc::PACKET_AUXDATA, "ask for the tags of frames from")?;
        let names = [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF].map(|name| (name, "set the receive buffer of"));
        let _ = set_buffer(&fd, names, BUFFER_BYTES, "a packet socket");
        Ok(Self { fd, buffer: vec![[0; SNAP]; BATCH] })
    }

    /// Passes the first bytes and the length (without FCS) of each available frame, at most [`BATCH`]; waits up to
    /// `limit` for the first. A tag that the kernel removed is missing in the bytes but part of the length. Returns
    /// the number of frames.
    pub fn receive(&mut self, limit: Duration, mut each: impl FnMut(&[u8], usize)) -> Result<usize> {
        let mut parts: [libc::iovec; BATCH] = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; BATCH];
        for (part, buffer) in parts.iter_mut().zip(&mut self.buffer) {
            *part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: SNAP };
        }
        // SAFETY: zeroes are a valid mmsghdr.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        // Room for a `cmsghdr` and a `tpacket_auxdata` each; words, for their alignment.
        let mut controls = [[0_u64; 8]; BATCH];
        for ((message, part), control) in messages.iter_mut().zip(&mut parts).zip(&mut controls) {
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
            set_control(&mut message.msg_hdr, control.as_mut_ptr().cast(), size_of_val(control));
        }
        let flags = libc::MSG_TRUNC | libc::MSG_DONTWAIT;
        // SAFETY: the messages point to parts, buffers and controls that outlive the call, each as long as told.
        let mut receive = || unsafe { receive_messages(&self.fd, &mut messages, flags) };
        let mut got = receive();
        if got.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::EAGAIN)) {
            let _ = poll([(self.fd.as_fd(), libc::POLLIN)], Some(limit));
            got = receive();
        }
        let got = match got {
            Ok(got) => got,
            Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)) => return Ok(0),
            Err(error) => return Err(Error::new("receive frames from", "a packet socket", error)),
        };
        for (message, bytes) in messages.iter().zip(&self.buffer).take(got) {
            let length = message.msg_len as usize;
            each(&bytes[..length.min(SNAP)], length + if tag_taken_off(&message.msg_hdr) { TAG_BYTES } else { 0 });
        }
        Ok(got)
    }

    /// Frames dropped for lack of room since the last call (`PACKET_STATISTICS`).
    pub fn dropped(&self) -> Result<u64> {
        packet_drops(&self.fd, "read the drops of").map(u64::from)
    }
}
