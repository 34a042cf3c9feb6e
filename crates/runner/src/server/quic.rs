//! `narrows serve --quic`: a server of QUIC's protocol `perf` (draft-banks-quic-performance-00), on a UDP port of its own and without a token.
//! It has threads of its own: its load must not delay the control connections.

use super::bucket::{Rates, Threads};
use super::listen::tls_of;
use super::places::{Places, Windows};
use super::shared::source_of;
use crate::trust::Identity;
use bytes::Bytes;
use narrows_sys::clock;
use narrows_wire::quic::PROTOCOL;
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{
    Connection, Endpoint, IdleTimeout, Incoming, RecvStream, SendStream, ServerConfig, TransportConfig, VarInt,
};
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout};

/// Receive windows of connections: a test of 1 Gbit/s over 100 ms needs 12 MiB.
const WINDOWS: Windows = Windows { each: 16 << 20, all: 512 << 20 };
/// For a handshake, and for the first bytes of a stream.
const GREETING: Duration = Duration::from_secs(5);
/// A client that says nothing for so long is gone.
const IDLE: Duration = Duration::from_secs(10);
/// The longest connection, whatever it does.
const MAX_CONNECTION: Duration = Duration::from_secs(3600);
/// Streams of a connection at the same time.
const MAX_STREAMS: u32 = 16;
/// Handshakes at the same time, and what their clients can have waiting here.
const MAX_HANDSHAKES: usize = 256;
const HANDSHAKE_BYTES: u64 = 64 << 10;
/// What is sent at once, …
const PIECE: usize = 32 << 10;
static PIECES: [u8; PIECE] = [0; PIECE];
/// … and received.
const PIECE_TAKEN: usize = 64 << 10;

/// Its TLS side, and what a connection may do.
pub(super) fn config(identity: &Identity) -> Result<ServerConfig, rustls::Error> {
    let tls = QuicServerConfig::try_from(tls_of(identity, &[PROTOCOL])?);
    let tls = tls.map_err(|error| rustls::Error::General(error.to_string()))?;
    let mut config = ServerConfig::with_crypto(Arc::new(tls));
    config
        .migration(false)
        .max_incoming(MAX_HANDSHAKES)
        .incoming_buffer_size(HANDSHAKE_BYTES)
        .incoming_buffer_size_total(HANDSHAKE_BYTES * MAX_HANDSHAKES as u64);
    Ok(config)
}

/// Serves at this socket at this rate each way, bits per second.
pub(super) fn start(socket: UdpSocket, config: ServerConfig, bps: u64) -> std::io::Result<Threads> {
    let threads = Threads::start("narrows-quic")?;
    let endpoint = crate::quic::endpoint(&threads, socket, Some(config.clone()))?;
    threads.spawn(accept(endpoint, config, bps));
    Ok(threads)
}

async fn accept(endpoint: Endpoint, config: ServerConfig, bps: u64) {
    let (rates, places) = (Arc::new(Rates::new(bps)), Places::new(WINDOWS));
    while let Some(incoming) = endpoint.accept().await {
        if !incoming.remote_address_validated() {
            // A packet in another's name costs that host one small answer, and takes no place here.
            let _ = incoming.retry();
            continue;
        }
        let Some(place) = places.take(source_of(incoming.remote_address().ip())) else {
            incoming.refuse();
            continue;
        };
        let (id, rates, config) = (place.id, rates.clone(), with_window(&config, place.window));
        let task = tokio::spawn(async move {
            let _ = timeout(MAX_CONNECTION, attend(incoming, config, rates)).await;
            drop(place);
        });
        places.is_served_by(id, task.abort_handle());
    }
}

fn with_window(config: &ServerConfig, window: u32) -> ServerConfig {
    let window = VarInt::from_u32(window);
    let mut transport = TransportConfig::default();
    transport
        .max_idle_timeout(IdleTimeout::try_from(IDLE).ok())
        .receive_window(window)
        .stream_receive_window(window)
        // What waits here is always the same piece.
        .send_window(WINDOWS.each.into())
        .max_concurrent_bidi_streams(VarInt::from_u32(MAX_STREAMS))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .datagram_receive_buffer_size(None);
    let mut config = config.clone();
    config.transport_config(Arc::new(transport));
    config
}

/// Closes the connection however its task ends.
struct Closed(Connection);

impl Drop for Closed {
    fn drop(&mut self) {
        self.0.close(VarInt::from_u32(0), b"");
    }
}

async fn attend(incoming: Incoming, config: ServerConfig, rates: Arc<Rates>) {
    let Ok(connecting) = incoming.accept_with(Arc::new(config)) else { return };
    let Ok(Ok(connection)) = timeout(GREETING, connecting).await else { return };
    let connection = Closed(connection);
    let mut streams = JoinSet::new();
    loop {
        tokio::select! {
            // Their errors are the client's.
            stream = connection.0.accept_bi() => match stream {
                Ok((sending, receiving)) => _ = streams.spawn(serve(sending, receiving, rates.clone())),
                Err(_) => return,
            },
            Some(_) = streams.join_next() => {}
        }
    }
}

/// Takes what comes, then sends what was asked for, both at the rate of all. `None`: the client is gone.
async fn serve(mut sending: SendStream, mut receiving: RecvStream, rates: Arc<Rates>) -> Option<()> {
    let mut asked = [0; 8];
    timeout(GREETING, receiving.read_exact(&mut asked)).await.ok()?.ok()?;
    while let Some(chunk) = receiving.read_chunk(PIECE_TAKEN, true).await.ok()? {
        // What is not read takes window: its sender waits.
        sleep_until(rates.up.take(chunk.bytes.len(), clock::now()).into()).await;
    }
    let mut left = u64::from_be_bytes(asked);
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        let written = sending.write_chunks(&mut [Bytes::from_static(&PIECES[..most])]).await.ok()?.bytes;
        left -= written as u64;
        sleep_until(rates.down.take(written, clock::now()).into()).await;
    }
    sending.finish().ok()
}
