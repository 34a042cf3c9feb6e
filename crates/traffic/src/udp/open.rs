//! The client's end of the handshake: hellos of the planned size, until one is answered.

use super::accept::set_options;
use super::buffers;
use super::error::UdpError;
use super::size::{SizeSearch, largest, sizes};
use super::stream::{Dialect, UdpStream};
use crate::common::error::TrafficError;
use narrows_model::{DatagramSizes, Flow, Place, Plan as _, UdpPlan};
use narrows_sys::udp::socket;
use narrows_sys::{Error, clock, nanos};
use narrows_wire::Key;
use narrows_wire::probe::{HELLO_FILLED_BYTES, Header, Hello, Reply};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a server may take to answer …
const PATIENCE: Duration = Duration::from_secs(5);
/// … and how long where ICMP reports a closed port.
const PATIENCE_IF_UNREACHABLE: Duration = Duration::from_secs(1);
/// The first wait for an answer; each further one is half as long again.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// Hellos of the planned size that may vanish before a smaller size is searched for.
const LARGE_ATTEMPTS: u32 = 3;
const SMALL: u32 = HELLO_FILLED_BYTES as u32;

/// Opens one stream to a server that knows the key: a socket of its own, its options, the handshake, and the datagram size.
///
/// Blocks for 5 s at most, or 2 s longer where the path drops large datagrams silently.
/// Errors: no answer, a refusal with the server's sentence, a size that would be fragmented, a socket that did not take
/// an option.
pub fn open(address: SocketAddr, key: &Key, id: u32, flow: Flow, plan: &UdpPlan) -> Result<UdpStream, TrafficError> {
    plan.check().map_err(TrafficError::Plan)?;
    let number = u16::try_from(id).map_err(|_| UdpError::Number(id))?;
    let own = socket::connect(address).map_err(|source| UdpError::Socket { stream: id, source })?;
    set_options(&own, address, id, plan)?;
    let mut handshake =
        Handshake::new(&own, address, Hello { key: *key, stream: number, flow, attempt: 0, time_ns: 0 });
    let datagram_bytes = handshake.negotiate(plan)?;
    let cookie = handshake.cookie;
    let path_mtu_bytes = match &plan.sizes {
        DatagramSizes::Largest => Some(datagram_bytes + handshake.overhead),
        DatagramSizes::Sequence(_) => socket::path_mtu(&own, address.is_ipv4()).ok(),
    };
    let sizes = sizes(plan, datagram_bytes);
    let buffers = buffers::set(&own, Place::Client, flow, id, plan, &sizes)?;
    Ok(UdpStream {
        id,
        flow,
        socket: own,
        peer: address,
        cookie,
        number,
        key: *key,
        datagram_bytes,
        path_mtu_bytes,
        buffers,
        heard: Arc::default(),
        real_time: true,
        answerer: None,
        dialect: Dialect::Probe,
    })
}

/// The response within a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Response {
    /// This size passed in both directions.
    Size(u32),
    /// The kernel or the server knows that no more than this fits.
    AtMost(u32),
    Nothing,
}

struct Handshake<'a> {
    socket: &'a UdpSocket,
    peer: SocketAddr,
    overhead: u32,
    hello: Hello,
    began: Instant,
    unreachable: bool,
    /// This host's filter refused a hello.
    forbidden: Option<io::Error>,
    /// The longest that an answer took.
    round_trip: Duration,
    buffer: Vec<u8>,
    /// Of the last ok.
    cookie: u64,
}

impl<'a> Handshake<'a> {
    fn new(socket: &'a UdpSocket, peer: SocketAddr, hello: Hello) -> Self {
        Self {
            socket,
            peer,
            overhead: socket::header_bytes(&peer),
            hello,
            began: clock::now(),
            unreachable: false,
            forbidden: None,
            round_trip: Duration::ZERO,
            buffer: vec![0; 65_536],
            cookie: 0,
        }
    }

    /// The maximum in one packet, as far as the kernel knows.
    fn max_bytes(&self) -> Result<u32, UdpError> {
        let mtu = socket::path_mtu(self.socket, self.peer.is_ipv4()).map_err(|source| self.failed(source))?;
        Ok(mtu.saturating_sub(self.overhead).min(UdpPlan::MAX_BYTES))
    }

    fn failed(&self, source: Error) -> UdpError {
        UdpError::Socket { stream: self.hello.stream.into(), source }
    }

    /// The size to use.
    fn negotiate(&mut self, plan: &UdpPlan) -> Result<u32, UdpError> {
        let most = self.max_bytes()?;
        match &plan.sizes {
            DatagramSizes::Largest => self.ask(most, true),
            DatagramSizes::Sequence(sizes) => {
                let bytes = largest(sizes);
                if plan.allow_fragments {
                    self.ask(SMALL, false)?;
                } else if bytes > most {
                    return Err(self.too_large(bytes, most));
                } else {
                    self.ask(bytes, false)?;
                }
                Ok(bytes)
            }
        }
    }

    const fn too_large(&self, bytes: u32, most: u32) -> UdpError {
        UdpError::TooLarge { peer: self.peer, bytes, path_mtu_bytes: most + self.overhead, most }
    }

    /// Asks with a size, and where `adapts` with smaller ones, until one is answered.
    fn ask(&mut self, planned: u32, adapts: bool) -> Result<u32, UdpError> {
        let (mut size, mut wait, mut large_attempts, mut small_works) = (planned, FIRST_WAIT, 0, false);
        let mut first = true;
        loop {
            let mut response = self.send(size)?;
            large_attempts += 1;
            // From the second attempt on a small one is sent, too, to distinguish a size limit from a silent server.
            if !first && size > SMALL {
                self.send(SMALL)?;
            }
            first = false;
            if !matches!(response, Response::AtMost(most) if most < size) {
                response = self.listen(size, &mut small_works, wait)?;
            }
            match response {
                Response::Size(works) if works >= size.min(planned) => return Ok(size),
                Response::Size(_) => small_works = true,
                Response::AtMost(most) if most < size => {
                    if !adapts {
                        return Err(self.too_large(size, most));
                    }
                    (size, large_attempts) = (most.max(UdpPlan::MIN_BYTES), 0);
                    continue;
                }
                Response::AtMost(_) | Response::Nothing => {}
            }
            if small_works && large_attempts >= LARGE_ATTEMPTS {
                return if adapts {
                    self.search(size)
                } else {
                    Err(UdpError::Vanish { peer: self.peer, bytes: size, works: self.search(size)? })
                };
            }
            let patience = if self.unreachable { PATIENCE_IF_UNREACHABLE } else { PATIENCE };
            if self.began.elapsed() >= patience {
                if let Some(error) = self.forbidden.take() {
                    return Err(self.failed(Error::new("talk to", self.peer.to_string(), error)));
                }
                let waited_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
                return Err(UdpError::Silent { peer: self.peer, waited_ms, unreachable: self.unreachable });
            }
            wait = (wait + wait / 2).min(PATIENCE.saturating_sub(self.began.elapsed()).max(FIRST_WAIT));
        }
    }

    /// Finds the largest size below one that vanishes.
    fn search(&mut self, vanishes: u32) -> Result<u32, UdpError> {
        let mut search = SizeSearch::new(SMALL, vanishes);
        while let Some(sizes) = search.sizes() {
            let wait = (2 * self.round_trip).clamp(2 * FIRST_WAIT, PATIENCE / 10);
            let mut best = None;
            for size in sizes.iter().chain(&sizes) {
                if let Response::AtMost(most) = self.send(*size)? {
                    search.bound(most);
                }
            }
            let until = clock::now() + wait;
            while best < sizes.last().copied() {
                let left = until.saturating_duration_since(clock::now());
                if left.is_zero() {
                    break;
                }
                match self.receive(left)? {
                    Response::Size(size) if sizes.contains(&size) => best = best.max(Some(size)),
                    Response::AtMost(most) => search.bound(most),
                    Response::Size(_) | Response::Nothing => {}
                }
            }
            search.tried(best);
        }
        Ok(search.works())
    }

    /// Sends a hello of a size; the kernel may report a size limit at once.
    fn send(&mut self, bytes: u32) -> Result<Response, UdpError> {
        self.hello.attempt += 1;
        self.hello.time_ns = nanos::monotonic();
        // The filling makes room for a refusal's sentence; the size that counts is larger in all that matters.
        let bytes = self.hello.encode(bytes.max(SMALL) as usize);
        match self.socket.send(&bytes) {
            Ok(_) => Ok(Response::Nothing),
            Err(error) => self.interpret(error),
        }
    }

    /// Waits for an answer to a hello of this size.
    fn listen(&mut self, size: u32, small_works: &mut bool, wait: Duration) -> Result<Response, UdpError> {
        let until = clock::now() + wait;
        loop {
            let left = until.saturating_duration_since(clock::now());
            if left.is_zero() {
                return Ok(Response::Nothing);
            }
            match self.receive(left)? {
                Response::Size(works) if works < size => *small_works = true,
                Response::Nothing => {}
                response => return Ok(response),
            }
        }
    }

    /// Takes one datagram, or an error in its place.
    fn receive(&mut self, wait: Duration) -> Result<Response, UdpError> {
        let limited = self.socket.set_read_timeout(Some(wait.max(Duration::from_micros(100))));
        limited.map_err(|error| self.failed(Error::new("set SO_RCVTIMEO of", "a UDP socket", error)))?;
        let length = match self.socket.recv(&mut self.buffer) {
            Ok(length) => length,
            Err(error) => return self.interpret(error),
        };
        let bytes = &self.buffer[..length];
        match Reply::decode(bytes, self.hello.stream) {
            Ok(Reply::Ok { hello_bytes, largest, cookie, .. }) => {
                self.cookie = cookie;
                if let Ok(header) = Header::decode(bytes) {
                    let took = Duration::from_nanos(nanos::monotonic().saturating_sub(header.time_ns));
                    self.round_trip = self.round_trip.max(took).min(PATIENCE);
                }
                let full = length as u64 >= u64::from(hello_bytes);
                match largest {
                    // The hello passed; an answer as long does not fit on the way back.
                    Some(largest) if !full && largest < UdpPlan::MAX_BYTES => Ok(Response::AtMost(largest)),
                    _ => Ok(Response::Size(hello_bytes.min(u32::try_from(length).unwrap_or(u32::MAX)))),
                }
            }
            Ok(Reply::No(why)) => Err(UdpError::Refused { peer: self.peer, stream: self.hello.stream.into(), why }),
            // Of another stream or program.
            Err(_) => Ok(Response::Nothing),
        }
    }

    /// What an error reveals about the path.
    fn interpret(&mut self, error: io::Error) -> Result<Response, UdpError> {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => {
                self.unreachable = true;
                Ok(Response::Nothing)
            }
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted => Ok(Response::Nothing),
            // A filter may refuse some and let others pass.
            io::ErrorKind::PermissionDenied => {
                self.forbidden = Some(error);
                Ok(Response::Nothing)
            }
            _ if is_too_big(&error) => Ok(Response::AtMost(self.max_bytes()?)),
            _ => Err(self.failed(Error::new("talk to", self.peer.to_string(), error))),
        }
    }
}

/// `EMSGSIZE`: from the kernel's own knowledge, or from an ICMP error.
fn is_too_big(error: &io::Error) -> bool {
    error.raw_os_error() == Some(narrows_sys::udp::TOO_BIG)
}
