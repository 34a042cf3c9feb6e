//! The connection of a test: WebSocket, over TLS or not.
//!
//! Every call ends at its time, however slowly bytes come or leave: what is below TLS looks at the clock. Bytes are counted above TLS as
//! they pass, for a message may take seconds.

use super::Server;
use crate::{Stop, lock};
use narrows_model::{Flow, Place, TcpPlan};
use narrows_sys::{clock, net, tcp};
use narrows_traffic::{CALL_LIMIT, DataStream, Layer, Socket, fill, tcp::prepare};
use narrows_wire::ndt7::{MESSAGE_MAX, PROTOCOL, Said, header_bytes, message_bytes, path};
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConnection, StreamOwned};
use tungstenite::client::{ClientRequestBuilder, client_with_config};
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Bytes, Error, HandshakeError, Message, WebSocket};

/// For a connection, and for all steps of its greeting together.
const STEP: Duration = Duration::from_secs(10);
/// For the last words.
const GOODBYE: Duration = Duration::from_secs(1);
/// More words than a server has for ten seconds, ten a second.
const SAID_MAX: usize = 1_000;
/// What is received at once.
const AHEAD_BYTES: usize = 64 << 10;
/// What is read at once: two records of TLS.
const READ_BYTES: usize = 32 << 10;
/// Messages that are taken before the next one is sent.
const AHEAD_MAX: usize = 16;

/// What is known of the other end of a test.
#[derive(Debug, Default)]
pub(super) struct Other {
    /// What it said of itself, in its order.
    pub(super) said: Vec<Said>,
    /// How the connection broke, if it did.
    pub(super) broken: Option<String>,
    /// Whether it ended the test in order.
    pub(super) has_ended: bool,
}

pub(super) type Words = Arc<Mutex<Other>>;

/// How long calls of a connection may take.
#[derive(Debug, Clone)]
enum Until {
    /// What fails then, or when the user stops.
    Greeted(Instant, Stop),
    /// What goes on at the next call.
    Called(Instant),
    /// At once.
    Now,
}

/// A connection, whose calls end at their time.
#[derive(Debug)]
struct Timed {
    stream: TcpStream,
    until: Arc<Mutex<Until>>,
    /// What was received and not read: TLS reads 4 KiB at a time.
    ahead: Vec<u8>,
    /// Of it, bytes that were read.
    at: usize,
}

impl Timed {
    fn call<T>(&mut self, mut call: impl FnMut(&mut TcpStream) -> io::Result<T>) -> io::Result<T> {
        let until = lock(&self.until).clone();
        match until {
            Until::Now => {
                self.stream.set_nonblocking(true)?;
                let done = call(&mut self.stream);
                self.stream.set_nonblocking(false)?;
                done
            }
            Until::Called(at) if clock::now() >= at => Err(ErrorKind::WouldBlock.into()),
            Until::Called(_) => call(&mut self.stream),
            Until::Greeted(at, stop) => loop {
                if stop.is_set() {
                    return Err(io::Error::new(ErrorKind::ConnectionAborted, "interrupted"));
                }
                if clock::now() >= at {
                    let why = format!("no answer within {} s", STEP.as_secs());
                    return Err(io::Error::new(ErrorKind::TimedOut, why));
                }
                match call(&mut self.stream) {
                    Err(error) if is_pause(&error) => {}
                    done => return done,
                }
            },
        }
    }
}

impl Read for Timed {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.at == self.ahead.len() {
            let mut ahead = std::mem::take(&mut self.ahead);
            ahead.resize(AHEAD_BYTES, 0);
            let count = self.call(|stream| stream.read(&mut ahead));
            ahead.truncate(*count.as_ref().unwrap_or(&0));
            (self.ahead, self.at) = (ahead, 0);
            count?;
        }
        let count = (self.ahead.len() - self.at).min(bytes.len());
        bytes[..count].copy_from_slice(&self.ahead[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.call(|stream| stream.write(bytes))
    }

    fn write_vectored(&mut self, all: &[IoSlice<'_>]) -> io::Result<usize> {
        self.call(|stream| stream.write_vectored(all))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a call only took its time.
fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

trait Stream: Read + Write + Send + Sync + std::fmt::Debug {}
impl Stream for Timed {}
impl Stream for StreamOwned<ClientConnection, Timed> {}

/// What passes between WebSocket and what is below it.
#[derive(Debug)]
struct Counted {
    below: Box<dyn Stream>,
    read: u64,
    written: u64,
}

impl Read for Counted {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.below.read(bytes)?;
        self.read += count as u64;
        Ok(count)
    }
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.below.write(bytes)?;
        if count == 0 && !bytes.is_empty() {
            // TLS takes nothing while it is full; for WebSocket that would be the end of the connection.
            return Err(ErrorKind::WouldBlock.into());
        }
        self.written += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.below.flush()
    }
}

/// The layer between the connection and the data.
#[derive(Debug)]
struct Messages {
    socket: WebSocket<Counted>,
    until: Arc<Mutex<Until>>,
    message: Bytes,
    /// A message was taken that has not left.
    is_full: bool,
    /// The other end has ended the test.
    is_over: bool,
    /// Of what was written, bytes that were no data; of what was read, those of whole messages.
    done_bytes: u64,
    /// Bytes of answers to pings that were written, or will be.
    pong_bytes: u64,
    /// Bytes of data of whole messages that were read.
    data_bytes: u64,
    /// Bytes of data that were told.
    told: u64,
    method: &'static str,
    words: Words,
}

/// An error of the connection, as calls of sockets have it.
fn plain(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        error => io::Error::other(error),
    }
}

impl Messages {
    fn may_last(&self, until: Until) {
        *lock(&self.until) = until;
    }

    /// Takes a message; its bytes of data, and all of its bytes.
    fn take(&mut self) -> io::Result<[u64; 2]> {
        // A server masks nothing.
        let whole = |bytes: usize| bytes as u64 + header_bytes(bytes) - 4;
        match self.socket.read() {
            Ok(Message::Binary(data)) => return Ok([data.len() as u64, whole(data.len())]),
            Ok(Message::Text(text)) => {
                let said = &mut lock(&self.words).said;
                if said.len() < SAID_MAX {
                    said.extend(Said::parse(text.as_str()));
                }
                return Ok([0, whole(text.len())]);
            }
            Ok(Message::Close(_)) | Err(Error::ConnectionClosed | Error::AlreadyClosed) => self.is_over = true,
            Ok(other) => {
                if matches!(other, Message::Ping(_)) {
                    self.pong_bytes += other.len() as u64 + header_bytes(other.len());
                }
                return Ok([0, whole(other.len())]);
            }
            Err(error) => return Err(plain(error)),
        }
        Ok([0; 2])
    }

    fn put(&mut self) -> io::Result<()> {
        if self.is_over {
            return Ok(());
        }
        self.may_last(Until::Now);
        for _ in 0..AHEAD_MAX {
            match self.take() {
                Ok(_) if self.is_over => return Ok(()),
                Ok(_) => {}
                Err(error) if is_pause(&error) => break,
                Err(error) => return Err(error),
            }
        }
        self.may_last(Until::Called(clock::now() + CALL_LIMIT));
        if !self.is_full {
            (self.is_full, self.done_bytes) = (true, self.done_bytes + header_bytes(self.message.len()));
            match self.socket.write(Message::Binary(self.message.clone())) {
                Err(Error::ConnectionClosed | Error::AlreadyClosed) => self.is_over = true,
                done => done.map_err(plain)?,
            }
        }
        self.socket.flush().map_err(plain)?;
        self.is_full = false;
        Ok(())
    }

    /// Errors: the connection broke at an earlier call, which had passed something before.
    fn is_whole(&self) -> io::Result<()> {
        lock(&self.words).broken.as_ref().map_or(Ok(()), |why| Err(io::Error::other(why.clone())))
    }

    /// What a call moved, which may have been too short for a message. `data`: all bytes of data so far.
    fn moved(&mut self, done: io::Result<()>, data: u64) -> io::Result<usize> {
        if let Err(error) = &done
            && !is_pause(error)
        {
            lock(&self.words).broken.get_or_insert_with(|| error.to_string());
        }
        let data = data.max(self.told);
        let new = data - self.told;
        self.told = data;
        match done {
            _ if new > 0 => Ok(usize::try_from(new).unwrap_or(usize::MAX)),
            Ok(()) if self.is_over => {
                lock(&self.words).has_ended = true;
                Ok(0)
            }
            Ok(()) => Err(ErrorKind::WouldBlock.into()),
            Err(error) => Err(error),
        }
    }
}

impl Layer for Messages {
    fn method(&self) -> &'static str {
        self.method
    }

    fn send(&mut self) -> io::Result<usize> {
        self.is_whole()?;
        let done = self.put();
        let data = self.socket.get_ref().written.saturating_sub(self.done_bytes + self.pong_bytes);
        self.moved(done, data)
    }

    fn receive(&mut self) -> io::Result<usize> {
        self.is_whole()?;
        self.may_last(Until::Called(clock::now() + CALL_LIMIT));
        let done = if self.is_over { Ok([0; 2]) } else { self.take() };
        let read = self.socket.get_ref().read;
        let done = done.map(|[data, all]| {
            self.data_bytes += data;
            // Messages in parts have more headers: no more than the buffer holds is still to be taken apart.
            self.done_bytes = (self.done_bytes + all).max(read.saturating_sub(READ_BYTES as u64));
        });
        // Of a message that is not whole yet; what waits in the buffer may be anything.
        let part = read.saturating_sub(self.done_bytes + READ_BYTES as u64);
        self.moved(done, self.data_bytes + part)
    }

    fn close(&mut self) {
        // Nothing more can be read of a connection that broke.
        if lock(&self.words).broken.is_some() {
            return;
        }
        let ends = clock::now() + GOODBYE;
        self.may_last(Until::Called(ends));
        let begun = self.socket.close(None).map_err(plain);
        let mut is_well = begun.as_ref().err().is_none_or(is_pause);
        while is_well && clock::now() < ends {
            // The frame waits behind what has not left; so does the answer to that of the other end.
            let left = self.socket.flush().map_err(plain);
            if left.is_ok() && self.is_over {
                return;
            }
            is_well = left.as_ref().err().is_none_or(is_pause);
            if is_well && !self.is_over {
                is_well = self.take().as_ref().err().is_none_or(is_pause);
            }
        }
    }
}

/// Opens the connection of a test; also gives the address that answered.
/// Errors: a sentence that names the server.
pub(super) fn open(
    server: &Server,
    flow: Flow,
    plan: &TcpPlan,
    words: &Words,
    stop: &Stop,
) -> Result<(DataStream, SocketAddr), String> {
    let asked = &server.asked;
    let (address, raw, connect_ns) = connect(server, flow, plan, stop)?;
    let cannot = |what: &str, why: String| format!("cannot {what} {asked}: {why}");
    tcp::set_call_limit(&raw, CALL_LIMIT).map_err(|error| cannot("connect to", error.to_string()))?;
    let until = Arc::new(Mutex::new(Until::Greeted(clock::now() + STEP, stop.clone())));
    let stream = raw.try_clone().map_err(|error| cannot("use the connection to", error.to_string()))?;
    let mut stream = Timed { stream, until: Arc::clone(&until), ahead: Vec::new(), at: 0 };
    // Without the zone of an address, which only this host knows.
    let host = server.host.split('%').next().unwrap_or_default();
    let (below, method): (Box<dyn Stream>, _) = match &server.trust {
        None => (Box::new(stream), "websocket"),
        Some(trust) => {
            // Without ALPN, as the tool's own clients: HTTP/1.1 then.
            let config = trust.config(&[]).map_err(|error| error.to_string())?;
            let name = ServerName::try_from(host.to_owned()).map_err(|error| cannot("name", error.to_string()))?;
            let mut tls =
                ClientConnection::new(config, name).map_err(|error| cannot("connect to", error.to_string()))?;
            while tls.is_handshaking() {
                tls.complete_io(&mut stream).map_err(|error| cannot("connect by TLS to", error.to_string()))?;
            }
            (Box::new(StreamOwned::new(tls, stream)), "websocket over TLS")
        }
    };
    let message = message_bytes(plan);
    let config = WebSocketConfig::default()
        .max_message_size(Some(MESSAGE_MAX))
        .max_frame_size(Some(MESSAGE_MAX))
        .read_buffer_size(READ_BYTES)
        .write_buffer_size(0)
        .max_write_buffer_size(4 * message);
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let scheme = if server.trust.is_some() { "wss" } else { "ws" };
    let uri = format!("{scheme}://{host}:{}{}", server.port, path(flow));
    let uri = uri.parse().map_err(|error| cannot("name", format!("{error}")))?;
    let request = ClientRequestBuilder::new(uri)
        .with_sub_protocol(PROTOCOL)
        .with_header("User-Agent", format!("narrows/{}", crate::VERSION));
    let below = Counted { below, read: 0, written: 0 };
    let (socket, _) = client_with_config(request, below, Some(config)).map_err(|error| match error {
        HandshakeError::Failure(Error::Http(answer)) => cannot("test with", format!("it answers {}", answer.status())),
        HandshakeError::Failure(Error::Io(error)) => cannot("test with", error.to_string()),
        HandshakeError::Failure(error) => cannot("test with", error.to_string()),
        HandshakeError::Interrupted(_) => cannot("test with", "no whole answer".to_owned()),
    })?;
    let mut data = vec![0; message];
    fill(&mut data);
    // What was read or written until here is the greeting; what came with it already is data, and is not counted.
    let done_bytes = if flow == Flow::Up { socket.get_ref().written } else { socket.get_ref().read };
    let layer = Messages {
        socket,
        until,
        message: data.into(),
        is_full: false,
        is_over: false,
        done_bytes,
        pong_bytes: 0,
        data_bytes: 0,
        told: 0,
        method,
        words: Arc::clone(words),
    };
    Ok((DataStream { id: 0, flow, socket: Socket::Layered(raw, Box::new(layer)), connect_ns }, address))
}

/// Connects to the first address that answers, and how long that took, ns; the error is of the first one that failed.
fn connect(
    server: &Server,
    flow: Flow,
    plan: &TcpPlan,
    stop: &Stop,
) -> Result<(SocketAddr, TcpStream, Option<u64>), String> {
    struct Why(String);
    impl From<narrows_sys::Error> for Why {
        fn from(error: narrows_sys::Error) -> Self {
            Self(error.to_string())
        }
    }
    let mut first = None;
    for address in server.addresses.iter().take_while(|_| !stop.is_set()) {
        let began = clock::now();
        let prepare =
            |own: BorrowedFd<'_>| prepare(own, Place::Client, flow, plan).map_err(|error| Why(error.to_string()));
        match net::connect(*address, STEP, prepare) {
            Ok(stream) => return Ok((*address, stream, u64::try_from(began.elapsed().as_nanos()).ok())),
            Err(Why(why)) => _ = first.get_or_insert(why),
        }
    }
    Err(first.unwrap_or_else(|| format!("{} has no address", server.asked)))
}
