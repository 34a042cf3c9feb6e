//! A connection of a test. The thread that moves its data also drives its protocol, so that its CPU time is that of the stream.

use super::Server;
use super::counting::{Acked, factory};
use crate::{Stop, lock};
use bytes::Bytes;
use narrows_model::{Flow, Limit, StreamSpec, TcpInfo, TcpPlan};
use narrows_sys::udp::{self, socket};
use narrows_sys::{clock, net};
use narrows_traffic::{CALL_LIMIT, DataStream, Layer, Socket, Witness, fill};
use narrows_wire::quic::{ENDLESS, request};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connection, ConnectionError, Endpoint, EndpointConfig, IdleTimeout, RecvStream, SendStream};
use quinn::{TokioRuntime, TransportConfig, VarInt};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// For the handshake with one address.
const STEP: Duration = Duration::from_secs(5);
/// How often an interruption is looked for meanwhile.
const LOOK: Duration = Duration::from_millis(50);
/// A server that says nothing for so long is lost.
const IDLE: Duration = Duration::from_secs(4);
/// For the last words, which leave at once: connections are closed one after the other.
const GOODBYE: Duration = Duration::from_millis(20);
/// What a sender may hold that is not acknowledged, in congestion windows, as the kernel's buffers grow …
const AHEAD: u64 = 2;
/// … and no less than this.
const AHEAD_BYTES: u64 = 128 << 10;
/// What a server may have sent of a stream before it is read: more than passes in 100 ms at 5 Gbit/s …
const WINDOW_BYTES: u32 = 64 << 20;
/// … and of all streams together.
const WINDOWS_BYTES: u32 = 512 << 20;
/// Of the socket, which is read between two bursts of work.
const SOCKET_BYTES: u32 = 4 << 20;
/// Pieces that are taken at once.
const PIECES: usize = 64;

/// How the connections of a test ended.
#[derive(Debug, Default)]
pub(super) struct Other {
    /// How one broke, if one did.
    pub(super) broken: Option<String>,
    /// Whether the server ended one in order before its time.
    pub(super) has_ended: bool,
}

pub(super) type Broken = Arc<Mutex<Other>>;

/// What tells of a connection.
#[derive(Debug)]
struct Told {
    connection: Connection,
    local: SocketAddr,
    sends: bool,
    congestion_control: &'static str,
    acked: Arc<Acked>,
}

impl Witness for Told {
    fn addresses(&self) -> [SocketAddr; 2] {
        [self.local, self.connection.remote_address()]
    }

    fn congestion_control(&self) -> &'static str {
        self.congestion_control
    }

    fn info(&self) -> TcpInfo {
        let stats = self.connection.stats();
        let path = stats.path;
        let us = |time: Duration| u64::try_from(time.as_micros()).ok();
        let size = u64::from(path.current_mtu.max(1));
        TcpInfo {
            snd_mss_bytes: Some(size),
            rtt_us: us(path.rtt),
            min_rtt_us: us(path.min_rtt),
            snd_cwnd: Some(path.cwnd / size),
            total_retrans: Some(path.lost_packets),
            bytes_retrans: Some(path.lost_bytes),
            bytes_acked: self.sends.then(|| self.acked.data()),
            segs_out: Some(stats.udp_tx.datagrams),
            segs_in: Some(stats.udp_rx.datagrams),
            ..TcpInfo::default()
        }
    }
}

/// The layer between the connection and the data.
#[derive(Debug)]
struct Stream {
    // Dropped in this order: the driver of a connection ends with its runtime.
    sending: SendStream,
    receiving: RecvStream,
    connection: Connection,
    endpoint: Endpoint,
    runtime: Runtime,
    /// What has not left of the request.
    request: Bytes,
    /// This side of the stream has ended.
    is_finished: bool,
    message: Bytes,
    pieces: Vec<Bytes>,
    acked: Arc<Acked>,
    /// Bytes of data that are still to pass, and of all; `None`: time ends it.
    left: Option<u64>,
    total: u64,
    /// What the connection lets this end hold now.
    window: u64,
    broken: Broken,
}

impl Stream {
    /// A call that takes no longer than calls of sockets.
    fn call<T, E: Into<io::Error>>(runtime: &Runtime, call: impl Future<Output = Result<T, E>>) -> io::Result<T> {
        match runtime.block_on(async { timeout(CALL_LIMIT, call).await }) {
            Ok(done) => done.map_err(Into::into),
            Err(_) => Err(ErrorKind::WouldBlock.into()),
        }
    }

    /// Says what is wanted, which is the first thing on a stream.
    fn ask(&mut self) -> io::Result<()> {
        while !self.request.is_empty() {
            let written = Self::call(&self.runtime, self.sending.write(&self.request))?;
            let _ = self.request.split_to(written);
        }
        Ok(())
    }

    fn finish(&mut self) {
        if !self.is_finished {
            self.is_finished = true;
            // It fails where it has ended already.
            let _ = self.sending.finish();
        }
    }

    fn put(&mut self) -> io::Result<usize> {
        self.ask()?;
        let most = self.left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
        let most = most.min(self.message.len());
        if most == 0 {
            self.finish();
            return match Self::call(&self.runtime, self.sending.stopped())? {
                None => {
                    self.acked.is_whole(self.total);
                    Ok(0)
                }
                Some(code) => Err(io::Error::other(format!("it wants no more data (code {code})"))),
            };
        }
        let window = (AHEAD * self.connection.stats().path.cwnd).max(AHEAD_BYTES);
        if window.abs_diff(self.window) > self.window / 8 {
            self.connection.set_send_window(window);
            self.window = window;
        }
        let mut piece = [self.message.slice(..most)];
        Self::call(&self.runtime, self.sending.write_chunks(&mut piece)).map(|written| written.bytes)
    }

    fn take(&mut self) -> io::Result<usize> {
        self.ask()?;
        self.finish();
        if self.left == Some(0) {
            return Ok(0);
        }
        let Some(count) = Self::call(&self.runtime, self.receiving.read_chunks(&mut self.pieces))? else {
            return match self.left {
                Some(left) => Err(io::Error::new(ErrorKind::UnexpectedEof, format!("{left} bytes are missing"))),
                None => {
                    lock(&self.broken).has_ended = true;
                    Ok(0)
                }
            };
        };
        Ok(self.pieces.iter_mut().take(count).map(|piece| std::mem::take(piece).len()).sum())
    }

    fn moved(&mut self, done: io::Result<usize>) -> io::Result<usize> {
        match &done {
            Ok(bytes) => self.left = self.left.map(|left| left.saturating_sub(*bytes as u64)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => _ = lock(&self.broken).broken.get_or_insert_with(|| cause(error)),
        }
        done
    }
}

impl Layer for Stream {
    fn method(&self) -> &'static str {
        "quic"
    }

    fn send(&mut self) -> io::Result<usize> {
        let done = self.put();
        self.moved(done)
    }

    fn receive(&mut self) -> io::Result<usize> {
        let done = self.take();
        self.moved(done)
    }

    fn close(&mut self) {
        // What is queued is dropped: the test is over.
        self.connection.close(VarInt::from_u32(0), b"");
        let endpoint = &self.endpoint;
        let _ = self.runtime.block_on(async { timeout(GOODBYE, endpoint.wait_idle()).await });
    }
}

/// Opens a stream of a test on a connection of its own; also gives the address that answered.
/// Errors: a sentence that names the server.
pub(super) fn open(
    server: &Server,
    tls: &Arc<QuicClientConfig>,
    spec: StreamSpec,
    plan: &TcpPlan,
    broken: &Broken,
    stop: &Stop,
) -> Result<(DataStream, SocketAddr), String> {
    let mut first = None;
    for address in server.addresses.iter().take_while(|_| !stop.is_set()) {
        match open_at((server, tls), *address, spec, plan, (broken, stop)) {
            Ok(stream) => return Ok((stream, *address)),
            Err(why) => _ = first.get_or_insert(why),
        }
    }
    Err(format!("cannot connect to {} by QUIC: {}", server.asked, first.unwrap_or_else(|| "no address".to_owned())))
}

fn open_at(
    (server, tls): (&Server, &Arc<QuicClientConfig>),
    address: SocketAddr,
    spec: StreamSpec,
    plan: &TcpPlan,
    (broken, stop): (&Broken, &Stop),
) -> Result<DataStream, String> {
    let acked = Arc::<Acked>::default();
    let (congestion_control, control) = factory(plan.congestion_control.as_deref(), acked.clone());
    let all = u32::try_from(plan.streams as usize * plan.flows().len()).unwrap_or(u32::MAX).max(1);
    let window = VarInt::from_u32(WINDOW_BYTES.min(WINDOWS_BYTES / all));
    let mut transport = TransportConfig::default();
    transport
        .congestion_controller_factory(control)
        .max_idle_timeout(IdleTimeout::try_from(IDLE).ok())
        .receive_window(window)
        .stream_receive_window(window)
        .send_window(AHEAD_BYTES)
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .datagram_receive_buffer_size(None);
    let mut config = ClientConfig::new(tls.clone());
    config.transport_config(Arc::new(transport));
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    let socket = socket::bind_for(address).map_err(|error| error.to_string())?;
    let endpoint = endpoint(&runtime, socket, None).map_err(|error| error.to_string())?;
    let name = server.host.split('%').next().unwrap_or_default();
    let began = clock::now();
    let connecting = {
        let _inside = runtime.enter();
        endpoint.connect_with(config, address, name).map_err(|error| error.to_string())?
    };
    let port = address.port();
    let connection = runtime.block_on(async {
        tokio::select! {
            connected = timeout(STEP, connecting) => match connected {
                // The idle time of the connection ends before.
                Ok(Err(ConnectionError::TimedOut)) | Err(_) => Err(format!(
                    "no answer from UDP port {port} within {} s; is a server of QUIC there, as `narrows serve --quic`?",
                    IDLE.min(STEP).as_secs()
                )),
                Ok(connected) => connected.map_err(|error| words_of(&error)),
            },
            () = stopped(stop) => Err("interrupted".to_owned()),
        }
    })?;
    let connect_ns = u64::try_from(began.elapsed().as_nanos()).ok();
    let opened = runtime.block_on(async { timeout(STEP, connection.open_bi()).await });
    let (sending, receiving) = match opened {
        Ok(opened) => opened.map_err(|error| words_of(&error))?,
        Err(_) => return Err("it lets no stream be opened".to_owned()),
    };
    let local = endpoint.local_addr().map_err(|error| error.to_string())?;
    // The socket has all addresses; this is the one of the way there.
    let way = socket::connect(address).ok().and_then(|it| it.local_addr().ok());
    let local = way.map_or(local, |way| SocketAddr::new(way.ip(), local.port()));
    let StreamSpec { id, flow, .. } = spec;
    let is_up = flow == Flow::Up;
    let left = match plan.limit {
        Limit::BytesPerStream(bytes) => Some(bytes),
        Limit::DurationMs(_) => None,
    };
    let wanted = if is_up { 0 } else { left.unwrap_or(ENDLESS) };
    let mut message = vec![0; if is_up { plan.message_bytes as usize } else { 0 }];
    fill(&mut message);
    let told = Told {
        connection: connection.clone(),
        local: net::canonical(local),
        sends: is_up,
        congestion_control,
        acked: acked.clone(),
    };
    let layer = Stream {
        sending,
        receiving,
        connection,
        endpoint,
        runtime,
        request: Bytes::copy_from_slice(&request(wanted)),
        is_finished: false,
        message: message.into(),
        pieces: vec![Bytes::new(); if is_up { 0 } else { PIECES }],
        acked,
        left,
        total: left.unwrap_or(0),
        window: AHEAD_BYTES,
        broken: broken.clone(),
    };
    Ok(DataStream { id, flow, socket: Socket::Own(Arc::new(told), Box::new(layer)), connect_ns })
}

/// The innermost cause: what is around it says that the connection was lost, and not why.
fn cause(error: &io::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

async fn stopped(stop: &Stop) {
    while !stop.is_set() {
        tokio::time::sleep(LOOK).await;
    }
}

/// QUIC at a socket, of a client or of a server.
pub(crate) fn endpoint(
    runtime: &Runtime,
    socket: UdpSocket,
    server: Option<quinn::ServerConfig>,
) -> io::Result<Endpoint> {
    let _inside = runtime.enter();
    // Less is obtained where the host allows no more.
    let _ = udp::set_receive_buffer(&socket, SOCKET_BYTES);
    let _ = socket::set_send_buffer(&socket, SOCKET_BYTES);
    Endpoint::new(EndpointConfig::default(), server, socket, Arc::new(TokioRuntime))
}

/// Why a connection could not be made, in words of this program.
fn words_of(error: &ConnectionError) -> String {
    match error {
        ConnectionError::VersionMismatch => "the server has no version of QUIC that narrows has".to_owned(),
        // TLS alert 120 (RFC 7301 section 3.2).
        ConnectionError::ConnectionClosed(close) if u64::from(close.error_code) == 0x178 => {
            "the server of QUIC has no protocol perf".to_owned()
        }
        ConnectionError::TimedOut => "no answer".to_owned(),
        error => error.to_string(),
    }
}
