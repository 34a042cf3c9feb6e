//! Receiver feedback to a sending server: a load that nobody receives stops by itself (RFC 8085, section 3.1), whatever the
//! control connection says. The client repeats its go as long as it receives.

use super::answerer;
use super::stream::UdpStream;
use narrows_sys::{exchange, nanos};
use narrows_wire::probe::{Header, Kind};
use std::io;
use std::os::fd::AsFd as _;

/// How often the socket is read.
const EVERY_NS: u64 = 20_000_000;
/// Without a go for this time the receiver is gone.
const SILENCE_NS: u64 = 1_000_000_000;
/// A closed port is reported by ICMP; a filter that refuses some datagrams lets a go pass within this time.
const REFUSED_NS: u64 = 80_000_000;

pub(super) struct Feedback<'a> {
    stream: &'a UdpStream,
    checked_ns: u64,
    heard_ns: u64,
    refused_ns: Option<u64>,
}

impl<'a> Feedback<'a> {
    /// The receiver was heard just now.
    pub(super) fn new(stream: &'a UdpStream) -> Self {
        let now_ns = nanos::monotonic();
        Self { stream, checked_ns: now_ns, heard_ns: now_ns, refused_ns: None }
    }

    /// ICMP says that nobody receives.
    pub(super) fn refused(&mut self) {
        self.refused_ns.get_or_insert_with(nanos::monotonic);
    }

    /// Why no more may be sent, if so. Reads the socket now and then.
    pub(super) fn lost(&mut self) -> Option<&'static str> {
        let now_ns = nanos::monotonic();
        if now_ns - self.checked_ns >= EVERY_NS {
            self.checked_ns = now_ns;
            self.listen(now_ns);
        }
        let since = |ns: u64| now_ns.saturating_sub(ns);
        if self.refused_ns.is_some_and(|ns| since(ns) >= REFUSED_NS) {
            return Some("the receiver's port is closed (ICMP); stopped");
        }
        (since(self.heard_ns) >= SILENCE_NS).then_some("nothing heard of the receiver for 1 s; stopped")
    }

    fn listen(&mut self, now_ns: u64) {
        let mut buffer = [0; 2048];
        loop {
            match exchange::receive_now(self.stream.socket.as_fd(), &mut buffer) {
                Ok(length) => match Header::decode(&buffer[..length]) {
                    Ok(header) if header.kind == Kind::Go && header.stream == self.stream.number => {
                        (self.heard_ns, self.refused_ns) = (now_ns, None);
                    }
                    _ => {
                        let stream = self.stream;
                        answerer::answer(&stream.socket, &stream.key, stream.cookie, &buffer[..length], length);
                    }
                },
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => self.refused(),
                Err(_) => return,
            }
        }
    }
}
