//! Many datagrams per call: `sendmmsg`, each message optionally a batch of datagrams of one size that the kernel or the NIC
//! splits (`UDP_SEGMENT`, net/ipv4/udp.c).

use crate::raw::{send_messages, set_control};
use std::io;
use std::net::UdpSocket;

/// The maximum number of datagrams per message that every kernel with GSO supports (`UDP_MAX_SEGMENTS`; 128 since Linux
/// 6.10).
pub const SEGMENTS: usize = 64;
/// The maximum number of bytes per message: the length field of an IPv4 packet, less the headers.
pub const MESSAGE_BYTES: usize = 65_507;

/// One message: a part of the send buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outgoing {
    pub from: usize,
    pub bytes: usize,
    /// The size of the datagrams to split it into; 0: it is one datagram.
    pub segment_bytes: u16,
}

/// `CMSG_SPACE(sizeof(u16))`
const CONTROL: usize = 24;

/// The kernel's view of a batch, reused between calls so that nothing is allocated.
pub struct SendBatch {
    headers: Vec<libc::mmsghdr>,
    parts: Vec<libc::iovec>,
    /// Words, for the alignment of a header.
    controls: Vec<[u64; CONTROL / 8]>,
}

impl std::fmt::Debug for SendBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SendBatch of {}", self.headers.len())
    }
}

impl SendBatch {
    /// Room for calls of up to `most` messages; the kernel accepts at most 1,024.
    pub fn new(most: usize) -> Self {
        let most = most.clamp(1, 1024);
        // SAFETY: all zero bytes are valid values of both types.
        let (header, part): (libc::mmsghdr, libc::iovec) = unsafe { std::mem::zeroed() };
        Self { headers: vec![header; most], parts: vec![part; most], controls: vec![[0; CONTROL / 8]; most] }
    }

    /// Sends as many messages as there is room for; returns how many the kernel accepted, at least one.
    /// Errors: the kernel's error for the first message. The error of a later one is reported when that one is sent
    /// again.
    ///
    /// # Panics
    /// Never: a message outside the buffer is `InvalidInput`.
    pub fn send(&mut self, socket: &UdpSocket, buffer: &[u8], messages: &[Outgoing]) -> io::Result<usize> {
        let slots = self.headers.iter_mut().zip(&mut self.parts).zip(&mut self.controls);
        let mut count = 0;
        for (message, ((header, part), control)) in messages.iter().zip(slots) {
            let bytes = buffer.get(message.from..).and_then(|rest| rest.get(..message.bytes));
            let bytes = bytes.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
            part.iov_base = bytes.as_ptr().cast_mut().cast();
            part.iov_len = bytes.len();
            header.msg_hdr.msg_iov = part;
            header.msg_hdr.msg_iovlen = 1;
            if message.segment_bytes > 0 {
                set_control(&mut header.msg_hdr, control.as_mut_ptr().cast(), CONTROL);
                write_segment(&header.msg_hdr, message.segment_bytes);
            } else {
                set_control(&mut header.msg_hdr, std::ptr::null_mut(), 0);
            }
            count += 1;
        }
        // SAFETY: the first `count` headers point to parts of `buffer` and to own control buffers, all alive; the kernel only
        // reads the former.
        unsafe { send_messages(socket, &mut self.headers[..count], libc::MSG_NOSIGNAL) }
    }
}

/// Writes the one control message of a header.
fn write_segment(header: &libc::msghdr, bytes: u16) {
    // SAFETY: the header has a control buffer of `CONTROL` bytes, room for one cmsghdr and a u16 after it.
    unsafe {
        let control = libc::CMSG_FIRSTHDR(header);
        (*control).cmsg_level = libc::SOL_UDP;
        (*control).cmsg_type = libc::UDP_SEGMENT;
        (*control).cmsg_len = libc::CMSG_LEN(size_of::<u16>() as u32) as _;
        libc::CMSG_DATA(control).cast::<u16>().write_unaligned(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_carries_runs_and_single_datagrams() {
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let socket = super::super::socket::connect(receiver.local_addr().expect("bound")).expect("a route");
        let buffer = [1; 1000];
        let messages = [
            Outgoing { from: 0, bytes: 300, segment_bytes: 100 },
            Outgoing { from: 300, bytes: 50, segment_bytes: 0 },
            Outgoing { from: 350, bytes: 150, segment_bytes: 100 },
        ];
        let mut batch = SendBatch::new(8);
        assert_eq!(batch.send(&socket, &buffer, &messages).expect("sent"), 3);
        let sizes = [(); 6].map(|()| receiver.recv(&mut [0; 200]).expect("a datagram"));
        assert_eq!(sizes, [100, 100, 100, 50, 100, 50]);
    }

    #[test]
    fn a_part_outside_of_the_buffer_is_an_error() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let outside = [Outgoing { from: 90, bytes: 20, segment_bytes: 0 }];
        let error = SendBatch::new(1).send(&socket, &[0; 100], &outside).expect_err("outside");
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }
}
