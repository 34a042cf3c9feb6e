//! Signs of life of the other end while its beats are late: the data of the running trial. A queue that fills up on the path
//! delays the beats for as long as it is deep, but what drains out of it still arrives.

use crate::instruments::DataStream;
use narrows_sys::sock_diag;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Between the two looks that tell whether data moves.
const PAUSE: Duration = Duration::from_millis(400);
/// After a sign of life, how long a beat is waited for before the next look.
pub(crate) const AGAIN: Duration = Duration::from_millis(200);

/// The data connections of the running trial, by their addresses; none between trials.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signs(Arc<Mutex<Vec<(SocketAddr, SocketAddr)>>>);

impl Signs {
    fn set(&self, connections: Vec<(SocketAddr, SocketAddr)>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = connections;
    }

    /// Looks at these from now on.
    pub(crate) fn watch(&self, streams: &[DataStream]) {
        let ends = |stream: &DataStream| Some((stream.socket.local_addr().ok()?, stream.socket.peer_addr().ok()?));
        self.set(streams.iter().filter_map(ends).collect());
    }

    /// The trial is over.
    pub(crate) fn forget(&self) {
        self.set(Vec::new());
    }

    /// What came in from the other end or was acknowledged by it, per connection.
    fn moved(&self) -> Vec<u64> {
        let connections = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let moved = |(local, remote): (SocketAddr, SocketAddr)| {
            let info = sock_diag::tcp_info(local, remote).ok().flatten()?;
            Some(info.bytes_received.unwrap_or(0) + info.bytes_acked.unwrap_or(0))
        };
        connections.into_iter().map(|connection| moved(connection).unwrap_or(0)).collect()
    }

    /// Whether anything moves just now. A kernel that alone still answers, for a process that hangs, moves nothing.
    pub(crate) async fn of_life(&self) -> bool {
        let before = self.moved();
        if before.is_empty() {
            return false;
        }
        tokio::time::sleep(PAUSE).await;
        self.moved().iter().zip(&before).any(|(now, then)| now > then)
    }
}
