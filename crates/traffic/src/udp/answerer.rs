//! Between the handshake and the trial the client may still send hellos: for an answer that was lost, or to test whether another size comes
//! through. On the server a small thread answers until the engine takes over, or until the first datagram of another kind, which it
//! leaves in the queue.

use super::error::UdpError;
use narrows_sys::event::{Event, wait_readable};
use narrows_sys::udp;
use narrows_wire::Key;
use narrows_wire::probe::{HEADER_BYTES, Header, Hello, Kind};
use std::net::UdpSocket;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// A stream that is never run loses its answerer after this time.
const LONGEST: Duration = Duration::from_secs(120);
/// A thread that calls nothing deep, and a buffer for the largest datagram.
const STACK_BYTES: usize = 256 << 10;

/// Answers a hello on a stream's own socket, if it knows the key. `length`: of the whole datagram.
pub(crate) fn answer(socket: &UdpSocket, key: &Key, cookie: u64, bytes: &[u8], length: usize) -> bool {
    let Ok(hello) = Hello::decode(bytes) else { return false };
    if hello.key != *key {
        return false;
    }
    let (largest, overhead) = largest(socket);
    let sent = socket.send(&hello.ok(length, largest, cookie));
    // Too large for the way back: a short answer reports what fits.
    if sent.is_err() && length as u64 + u64::from(overhead) > u64::from(largest) {
        let _ = socket.send(&hello.ok(0, self::largest(socket).0, cookie));
    }
    true
}

/// The maximum payload of one packet to the peer by this host's route, 0 if unknown; and the size of its headers.
fn largest(socket: &UdpSocket) -> (u32, u32) {
    let Ok(peer) = socket.peer_addr() else { return (0, 0) };
    let overhead = udp::socket::header_bytes(&peer);
    let mtu = udp::socket::path_mtu(socket, peer.is_ipv4()).unwrap_or(0);
    (mtu.saturating_sub(overhead), overhead)
}

/// The thread; ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Answerer {
    end: Arc<Event>,
    thread: Option<JoinHandle<()>>,
}

impl Answerer {
    pub(crate) fn start(socket: &UdpSocket, key: Key, cookie: u64, stream: u32) -> Result<Self, UdpError> {
        let failed = |operation: &'static str| {
            move |error| UdpError::Socket {
                stream,
                source: narrows_sys::Error::new(operation, "the answers to hellos", error),
            }
        };
        let socket = socket.try_clone().map_err(failed("copy the socket for"))?;
        let end = Arc::new(Event::new().map_err(|source| UdpError::Socket { stream, source })?);
        let ended = Arc::clone(&end);
        let builder = std::thread::Builder::new().name(format!("hello {stream}")).stack_size(STACK_BYTES);
        let thread =
            builder.spawn(move || serve(&socket, &key, cookie, &ended)).map_err(failed("start the thread for"))?;
        Ok(Self { end, thread: Some(thread) })
    }
}

impl Drop for Answerer {
    fn drop(&mut self) {
        self.end.signal();
        if let Some(thread) = self.thread.take() {
            // It does not panic; and if it did, the stream is still good.
            let _ = thread.join();
        }
    }
}

fn serve(socket: &UdpSocket, key: &Key, cookie: u64, end: &Event) {
    let began = narrows_sys::clock::now();
    let mut buffer = vec![0; 65_536];
    while began.elapsed() < LONGEST {
        let Ok([readable, ended]) = wait_readable([socket.as_fd(), end.as_fd()], Some(LONGEST)) else { return };
        if ended {
            return;
        }
        if !readable {
            continue;
        }
        // Peek first: data of the trial stays in the queue. An error is an ICMP error, consumed by the peek.
        let mut head = [0; HEADER_BYTES];
        match socket.peek(&mut head).map(|_| Header::decode(&head)) {
            Err(_) => {}
            Ok(Err(_) | Ok(Header { kind: Kind::Data | Kind::Go | Kind::Fin | Kind::Note, .. })) => return,
            Ok(Ok(_)) => {
                if let Ok(length) = socket.recv(&mut buffer) {
                    answer(socket, key, cookie, &buffer[..length], length);
                }
            }
        }
    }
}
