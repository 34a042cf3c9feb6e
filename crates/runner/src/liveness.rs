//! Liveness of the other end while its heartbeats are late: the data of the running trial. A full queue on the path delays the
//! heartbeats, but the data in it still arrives.

use crate::lock;
use narrows_sys::{clock, sock_diag};
use narrows_traffic::{DataStream, Socket};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Time between the two samples that show whether data moves.
const PAUSE: Duration = Duration::from_millis(400);
/// How long to wait for a heartbeat after data moved, before the next sample.
pub(crate) const AGAIN: Duration = Duration::from_millis(200);

/// The counter of the data that arrives in a stream.
#[derive(Debug, Clone)]
enum Counter {
    /// The kernel's counters of a connection, by its addresses.
    Connection(SocketAddr, SocketAddr),
    /// The engine's own counter of the datagrams that a UDP stream received.
    Received(Arc<AtomicU64>),
}

/// The streams of the running trial; none between trials.
#[derive(Debug, Clone, Default)]
pub(crate) struct Liveness(Arc<Mutex<Watched>>);

#[derive(Debug, Default)]
struct Watched {
    streams: Vec<Counter>,
    /// When the last trial ended. Its load may have delayed every heartbeat until then.
    ended: Option<Instant>,
}

impl Liveness {
    /// Samples these streams from now on.
    pub(crate) fn watch(&self, streams: &[DataStream]) {
        let counter = |stream: &DataStream| match &stream.socket {
            Socket::Tcp(socket) | Socket::Layered(socket, _) => {
                Some(Counter::Connection(socket.local_addr().ok()?, socket.peer_addr().ok()?))
            }
            Socket::Own(..) => None,
            Socket::Udp(stream) => Some(Counter::Received(Arc::clone(&stream.heard))),
        };
        lock(&self.0).streams = streams.iter().filter_map(counter).collect();
    }

    /// The trial is over.
    pub(crate) fn forget(&self) {
        *lock(&self.0) = Watched { streams: Vec::new(), ended: Some(clock::now()) };
    }

    /// Bytes or datagrams that the other end sent or acknowledged, per stream.
    fn moved(&self) -> Vec<u64> {
        let counters = lock(&self.0).streams.clone();
        let moved = |counter: Counter| match counter {
            Counter::Connection(local, remote) => {
                let info = sock_diag::tcp_info(local, remote).ok().flatten()?;
                Some(info.bytes_received.unwrap_or(0) + info.bytes_acked.unwrap_or(0))
            }
            Counter::Received(count) => Some(count.load(Ordering::Relaxed)),
        };
        counters.into_iter().map(|counter| moved(counter).unwrap_or(0)).collect()
    }

    /// Whether data moves now, or a load ended less than `patience` ago. If the process hangs and only its kernel answers, no data
    /// moves.
    pub(crate) async fn is_alive(&self, patience: Duration) -> bool {
        if lock(&self.0).ended.is_some_and(|end| end.elapsed() < patience) {
            return true;
        }
        let before = self.moved();
        if before.is_empty() {
            return false;
        }
        tokio::time::sleep(PAUSE).await;
        self.moved().iter().zip(&before).any(|(now, then)| now > then)
    }
}
