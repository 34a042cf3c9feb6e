//! Many datagrams per call: `recvmmsg`, with the kernel's receive time stamps, and with batches of datagrams that the kernel
//! delivers as one (`UDP_GRO`). If the buffer is too small for a datagram, only its beginning is copied, but its full length
//! is reported (`MSG_TRUNC`).

use crate::raw::{control_bytes, receive_messages, set_control};
use std::io;
use std::net::UdpSocket;

/// `SCM_TIMESTAMPNS` as a control message has 32 bytes, `UDP_GRO` 24.
const CONTROL: usize = 64;
/// The kernel's maximum per call (`UIO_MAXIOV`).
const MAX_MESSAGES: usize = 1024;

/// Control messages with the alignment that `cmsghdr` needs.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Control([u8; CONTROL]);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Incoming<'a> {
    /// As much of it as fits.
    pub bytes: &'a [u8],
    pub length: usize,
    /// When it entered the host, ns since the Unix epoch, if the socket has receive stamps.
    pub stamp_ns: Option<u64>,
    /// The size of its datagrams, the last one perhaps shorter, if it is a batch of several.
    pub segment_bytes: Option<usize>,
}

/// The buffers of a batch, kept from call to call.
pub struct ReceiveBatch {
    headers: Vec<libc::mmsghdr>,
    /// The targets of the headers' pointers: only the kernel touches them.
    _parts: Vec<libc::iovec>,
    controls: Vec<Control>,
    buffer: Vec<u8>,
    room: usize,
    filled: usize,
}

impl std::fmt::Debug for ReceiveBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ReceiveBatch of {} x {} bytes", self.headers.len(), self.room)
    }
}

impl ReceiveBatch {
    /// Buffers for calls of up to `most` messages of which the first `room` bytes are kept.
    pub fn new(most: usize, room: usize) -> Self {
        let (most, room) = (most.clamp(1, MAX_MESSAGES), room.max(1));
        let mut buffer = vec![0; most * room];
        let mut controls = vec![Control([0; CONTROL]); most];
        let mut parts: Vec<libc::iovec> = buffer
            .chunks_exact_mut(room)
            .map(|chunk| libc::iovec { iov_base: chunk.as_mut_ptr().cast(), iov_len: room })
            .collect();
        // SAFETY: all zero bytes are a valid mmsghdr.
        let empty: libc::mmsghdr = unsafe { std::mem::zeroed() };
        let mut headers = vec![empty; most];
        for ((header, part), control) in headers.iter_mut().zip(&mut parts).zip(&mut controls) {
            header.msg_hdr.msg_iov = part;
            header.msg_hdr.msg_iovlen = 1;
            set_control(&mut header.msg_hdr, control.0.as_mut_ptr(), CONTROL);
        }
        Self { headers, _parts: parts, controls, buffer, room, filled: 0 }
    }

    /// The maximum number of messages per call.
    pub fn most(&self) -> usize {
        self.headers.len()
    }

    /// Receives what is available and returns the number of messages, at least one. `wait`: blocks for the first
    /// one up to the socket's read time-out.
    /// Errors: `WouldBlock`: nothing is available; otherwise the kernel's error.
    pub fn receive(&mut self, socket: &UdpSocket, wait: bool) -> io::Result<usize> {
        // The kernel replaced the available lengths by the used ones.
        for (header, control) in self.headers.iter_mut().zip(&mut self.controls).take(self.filled) {
            set_control(&mut header.msg_hdr, control.0.as_mut_ptr(), CONTROL);
        }
        self.filled = 0;
        let flags = libc::MSG_TRUNC | if wait { libc::MSG_WAITFORONE } else { libc::MSG_DONTWAIT };
        // SAFETY: every header points to one part of the buffer and to one control buffer, which live as long as `self` and are
        // not otherwise borrowed now; their number is given.
        let taken = unsafe { receive_messages(socket, &mut self.headers, flags) }?;
        self.filled = taken.min(self.headers.len());
        Ok(taken)
    }

    /// The message at `index` of the last call, which must be in range.
    #[inline]
    pub fn message(&self, index: usize) -> Option<Incoming<'_>> {
        let header = self.headers.get(..self.filled)?.get(index)?;
        let length = header.msg_len as usize;
        let start = index * self.room;
        let bytes = self.buffer.get(start..start + length.min(self.room))?;
        let used = control_bytes(&header.msg_hdr);
        let (stamp_ns, segment_bytes) = read_control(self.controls[index].0.get(..used)?);
        let segment_bytes = segment_bytes.filter(|&bytes| bytes > 0 && bytes < length);
        Some(Incoming { bytes, length, stamp_ns, segment_bytes })
    }
}

/// Parses time stamp and segment size from the control messages by hand: the macros of libc are too slow here. `struct
/// cmsghdr`: length (8 bytes, itself included), level (4), type (4), then the data, padded to 8. Public for `fuzz/`.
#[doc(hidden)]
#[inline]
pub fn read_control(mut bytes: &[u8]) -> (Option<u64>, Option<usize>) {
    let (mut stamp, mut segment) = (None, None);
    while let Some((head, data)) = bytes.split_first_chunk::<16>() {
        let [l0, l1, l2, l3, l4, l5, l6, l7, v0, v1, v2, v3, t0, t1, t2, t3] = *head;
        let length = usize::from_ne_bytes([l0, l1, l2, l3, l4, l5, l6, l7]);
        let level = i32::from_ne_bytes([v0, v1, v2, v3]);
        let kind = i32::from_ne_bytes([t0, t1, t2, t3]);
        match (level, kind) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                if let Some((seconds, rest)) = data.split_first_chunk::<8>()
                    && let Some(nanos) = rest.first_chunk::<8>()
                {
                    let whole = u64::from_ne_bytes(*seconds).wrapping_mul(1_000_000_000);
                    stamp = Some(whole.wrapping_add(u64::from_ne_bytes(*nanos)));
                }
            }
            (libc::SOL_UDP, libc::UDP_GRO) => {
                segment = data.first_chunk::<4>().and_then(|raw| usize::try_from(i32::from_ne_bytes(*raw)).ok());
            }
            _ => {}
        }
        match bytes.get(length.saturating_add(7).max(16) & !7..) {
            Some(rest) => bytes = rest,
            None => break,
        }
    }
    (stamp, segment)
}

#[cfg(test)]
mod tests {
    use super::super::send::{Outgoing, SendBatch};
    use super::super::socket;
    use super::*;

    fn pair() -> (UdpSocket, UdpSocket) {
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let sender = socket::connect(receiver.local_addr().expect("bound")).expect("a route");
        (sender, receiver)
    }

    #[test]
    fn a_batch_has_contents_lengths_and_stamps() {
        let (sender, receiver) = pair();
        socket::set_receive_stamps(&receiver, true).expect("an option");
        let before = crate::nanos::real();
        for bytes in 1..=5_u8 {
            sender.send(&vec![bytes; usize::from(bytes) * 10]).expect("sent");
        }
        let mut batch = ReceiveBatch::new(4, 16);
        assert_eq!(batch.receive(&receiver, false).expect("received"), 4);
        for index in 0..4 {
            let message = batch.message(index).expect("within");
            assert_eq!(message.length, (index + 1) * 10);
            assert_eq!(message.bytes, vec![index as u8 + 1; message.length.min(16)]);
            assert!((before..before + 10_000_000_000).contains(&message.stamp_ns.expect("a stamp")));
            assert_eq!(message.segment_bytes, None);
        }
        assert_eq!(batch.receive(&receiver, false).expect("received"), 1);
        assert_eq!(batch.message(0).expect("within").length, 50);
        assert_eq!(batch.receive(&receiver, false).expect_err("empty").kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_batch_arrives_as_one_message_with_its_segment_size() {
        let (sender, receiver) = pair();
        socket::set_coalescing(&receiver, true).expect("Linux 5.0");
        let run = [Outgoing { from: 0, bytes: 2500, segment_bytes: 1000 }];
        SendBatch::new(1).send(&sender, &[3; 2500], &run).expect("sent");
        let mut batch = ReceiveBatch::new(4, 65_536);
        let mut seen = Vec::new();
        while let Ok(taken) = batch.receive(&receiver, false) {
            seen.extend((0..taken).filter_map(|index| batch.message(index)).map(|m| (m.length, m.segment_bytes)));
        }
        // Loopback segments late, so the batch arrives whole.
        assert_eq!(seen, [(2500, Some(1000))]);
    }

    #[test]
    fn arbitrary_control_bytes_never_panic() {
        assert_eq!(read_control(&[]), (None, None));
        assert_eq!(read_control(&[0; 64]), (None, None));
        assert_eq!(read_control(&[0xFF; 33]), (None, None));
    }
}
