//! Signs of life of the other end while its beats are late: the data of the running trial. A queue that fills up on the path
//! delays the beats for as long as it is deep, but what drains out of it still arrives.

use crate::instruments::{DataStream, Socket};
use narrows_sys::{clock, sock_diag};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Between the two looks that tell whether data moves.
const PAUSE: Duration = Duration::from_millis(400);
/// After a sign of life, how long a beat is waited for before the next look.
pub(crate) const AGAIN: Duration = Duration::from_millis(200);

/// Where a stream shows that the other end's data arrives.
#[derive(Debug, Clone)]
enum Sign {
    /// The kernel's counters of a connection, by its addresses.
    Connection(SocketAddr, SocketAddr),
    /// The engine's own counter of what a UDP stream heard.
    Heard(Arc<AtomicU64>),
}

/// The streams of the running trial; none between trials.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signs(Arc<Mutex<Watched>>);

/// What is looked at.
#[derive(Debug, Default)]
struct Watched {
    streams: Vec<Sign>,
    /// When the last trial ended. Its load may have kept every beat away until then.
    ended: Option<Instant>,
}

impl Signs {
    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at these from now on.
    pub(crate) fn watch(&self, streams: &[DataStream]) {
        let sign = |stream: &DataStream| match &stream.socket {
            Socket::Tcp(socket) => Some(Sign::Connection(socket.local_addr().ok()?, socket.peer_addr().ok()?)),
            Socket::Udp(stream) => Some(Sign::Heard(stream.heard())),
        };
        self.watched().streams = streams.iter().filter_map(sign).collect();
    }

    /// The trial is over.
    pub(crate) fn forget(&self) {
        *self.watched() = Watched { streams: Vec::new(), ended: Some(clock::now()) };
    }

    /// What came in from the other end or was acknowledged by it, per connection.
    fn moved(&self) -> Vec<u64> {
        let signs = self.watched().streams.clone();
        let moved = |sign: Sign| match sign {
            Sign::Connection(local, remote) => {
                let info = sock_diag::tcp_info(local, remote).ok().flatten()?;
                Some(info.bytes_received.unwrap_or(0) + info.bytes_acked.unwrap_or(0))
            }
            Sign::Heard(count) => Some(count.load(Ordering::Relaxed)),
        };
        signs.into_iter().map(|sign| moved(sign).unwrap_or(0)).collect()
    }

    /// Whether anything moves just now, or a load ended less than `patience` ago. A kernel that alone still answers, for a
    /// process that hangs, moves nothing.
    pub(crate) async fn of_life(&self, patience: Duration) -> bool {
        if self.watched().ended.is_some_and(|end| end.elapsed() < patience) {
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
