//! The connection of a test: WebSocket, over TLS or not.

use super::Server;
use crate::lock;
use narrows_model::{Flow, Place, TcpPlan};
use narrows_sys::{clock, net, tcp};
use narrows_traffic::{CALL_LIMIT, DataStream, Layer, Socket, fill, tcp::prepare};
use narrows_wire::ndt7::{MESSAGE_MAX, PROTOCOL, Said, message_bytes, path};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConnection, StreamOwned};
use tungstenite::client::{ClientRequestBuilder, client_with_config};
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Bytes, Error, HandshakeError, Message, WebSocket};

/// For each step of a connection.
const STEP: Duration = Duration::from_secs(10);
/// For the last words.
const GOODBYE: Duration = Duration::from_secs(1);
/// More words than a server has for ten seconds, ten a second.
const SAID_MAX: usize = 1_000;

/// What is known of the other end of a test.
#[derive(Debug, Default)]
pub(super) struct Other {
    /// What it said of itself, in its order.
    pub(super) said: Vec<Said>,
    /// How the connection broke, if it did.
    pub(super) broken: Option<String>,
}

pub(super) type Words = Arc<Mutex<Other>>;

trait Stream: Read + Write + Send + Sync + std::fmt::Debug {}
impl Stream for TcpStream {}
impl Stream for StreamOwned<ClientConnection, TcpStream> {}

/// The layer between the connection and the data.
#[derive(Debug)]
struct Messages {
    socket: WebSocket<Box<dyn Stream>>,
    /// The same connection, to look whether something came.
    raw: TcpStream,
    message: Bytes,
    /// A message was taken that is not sent yet.
    is_full: bool,
    method: &'static str,
    words: Words,
}

/// An error of the connection, as calls of sockets have it.
fn plain(error: Error) -> io::Error {
    match error {
        Error::Io(error) if error.kind() == ErrorKind::TimedOut => ErrorKind::WouldBlock.into(),
        Error::Io(error) => error,
        error => io::Error::other(error),
    }
}

impl Messages {
    /// The bytes of data of a message; `None`: it had none.
    fn take(&mut self) -> io::Result<Option<usize>> {
        match self.socket.read() {
            Ok(Message::Binary(data)) => Ok(Some(data.len())),
            Ok(Message::Text(text)) => {
                let said = &mut lock(&self.words).said;
                if said.len() < SAID_MAX {
                    said.extend(Said::parse(text.as_str()));
                }
                Ok(None)
            }
            Ok(Message::Close(_)) | Err(Error::ConnectionClosed | Error::AlreadyClosed) => Ok(Some(0)),
            Ok(_) => Ok(None),
            Err(error) => Err(plain(error)),
        }
    }

    fn sent(&mut self) -> io::Result<usize> {
        // Reading would wait for what may never come.
        if tcp::queued_in(&self.raw).is_ok_and(|bytes| bytes > 0) {
            match self.take() {
                Ok(Some(0)) => return Ok(0),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        if !self.is_full {
            self.is_full = true;
            match self.socket.write(Message::Binary(self.message.clone())) {
                Ok(()) => {}
                Err(Error::ConnectionClosed | Error::AlreadyClosed) => return Ok(0),
                Err(error) => return Err(plain(error)),
            }
        }
        self.socket.flush().map_err(plain)?;
        self.is_full = false;
        Ok(self.message.len())
    }

    /// What a call gave; an error that is the end of the connection is kept.
    fn kept<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.inspect_err(|error| {
            if error.kind() != ErrorKind::WouldBlock {
                lock(&self.words).broken.get_or_insert_with(|| error.to_string());
            }
        })
    }
}

impl Layer for Messages {
    fn method(&self) -> &'static str {
        self.method
    }

    fn send(&mut self) -> io::Result<usize> {
        let sent = self.sent();
        self.kept(sent)
    }

    fn receive(&mut self) -> io::Result<usize> {
        let taken = self.take();
        self.kept(taken)?.ok_or_else(|| ErrorKind::WouldBlock.into())
    }

    fn close(&mut self) {
        // Nothing more can be read of a connection that broke.
        if lock(&self.words).broken.is_some() {
            return;
        }
        let began = clock::now();
        let mut last = self.socket.close(None).map(|()| None).map_err(plain);
        while began.elapsed() < GOODBYE {
            match last {
                Ok(Some(0)) => return,
                Err(error) if error.kind() != ErrorKind::WouldBlock => return,
                _ => last = self.take(),
            }
        }
    }
}

/// Opens the connection of a test.
/// Errors: a sentence that names the server.
pub(super) fn open(server: &Server, flow: Flow, plan: &TcpPlan, words: &Words) -> Result<DataStream, String> {
    let asked = &server.asked;
    let began = clock::now();
    let raw = connect(server, flow, plan)?;
    let connect_ns = u64::try_from(began.elapsed().as_nanos()).ok();
    let cannot = |what: &str, why: String| format!("cannot {what} {asked}: {why}");
    let of_socket = |error: io::Error| cannot("use the connection to", error.to_string());
    tcp::set_call_limit(&raw, STEP).map_err(|error| cannot("connect to", error.to_string()))?;
    let own = raw.try_clone().map_err(of_socket)?;
    let (stream, method): (Box<dyn Stream>, _) = match &server.trust {
        None => (Box::new(own), "websocket"),
        Some(trust) => {
            // Without ALPN, as the tool's own clients: HTTP/1.1 then.
            let config = trust.config(&[]).map_err(|error| error.to_string())?;
            let name = ServerName::try_from(server.host.clone()).map_err(|error| cannot("name", error.to_string()))?;
            let mut tls =
                ClientConnection::new(config, name).map_err(|error| cannot("connect to", error.to_string()))?;
            tls.set_buffer_limit(Some(2 * message_bytes(plan)));
            let mut own = own;
            while tls.is_handshaking() {
                tls.complete_io(&mut own).map_err(|error| cannot("connect by TLS to", error.to_string()))?;
            }
            (Box::new(StreamOwned::new(tls, own)), "websocket over TLS")
        }
    };
    let message = message_bytes(plan);
    let config = WebSocketConfig::default()
        .max_message_size(Some(MESSAGE_MAX))
        .max_frame_size(Some(MESSAGE_MAX))
        .write_buffer_size(0)
        .max_write_buffer_size(4 * message);
    let host = if server.host.contains(':') { format!("[{}]", server.host) } else { server.host.clone() };
    let scheme = if server.trust.is_some() { "wss" } else { "ws" };
    let uri = format!("{scheme}://{host}:{}{}", server.port, path(flow));
    let uri = uri.parse().map_err(|error| cannot("name", format!("{error}")))?;
    let request = ClientRequestBuilder::new(uri)
        .with_sub_protocol(PROTOCOL)
        .with_header("User-Agent", format!("narrows/{}", crate::VERSION));
    let (socket, _) = client_with_config(request, stream, Some(config)).map_err(|error| match error {
        HandshakeError::Failure(Error::Http(answer)) => cannot("test with", format!("it answers {}", answer.status())),
        HandshakeError::Failure(error) => cannot("test with", error.to_string()),
        HandshakeError::Interrupted(_) => cannot("test with", format!("no answer within {} s", STEP.as_secs())),
    })?;
    tcp::set_call_limit(&raw, CALL_LIMIT).map_err(|error| cannot("connect to", error.to_string()))?;
    let mut data = vec![0; message];
    fill(&mut data);
    let seen = raw.try_clone().map_err(of_socket)?;
    let layer = Messages { socket, raw: seen, message: data.into(), is_full: false, method, words: Arc::clone(words) };
    Ok(DataStream { id: 0, flow, socket: Socket::Layered(raw, Box::new(layer)), connect_ns })
}

/// Connects to the first address that answers; the error is of the first one that failed.
fn connect(server: &Server, flow: Flow, plan: &TcpPlan) -> Result<TcpStream, String> {
    struct Why(String);
    impl From<narrows_sys::Error> for Why {
        fn from(error: narrows_sys::Error) -> Self {
            Self(error.to_string())
        }
    }
    let mut first = None;
    for address in &server.addresses {
        let prepare =
            |own: BorrowedFd<'_>| prepare(own, Place::Client, flow, plan).map_err(|error| Why(error.to_string()));
        match net::connect(*address, STEP, prepare) {
            Ok(stream) => return Ok(stream),
            Err(Why(why)) => _ = first.get_or_insert(why),
        }
    }
    Err(first.unwrap_or_else(|| format!("{} has no address", server.asked)))
}
