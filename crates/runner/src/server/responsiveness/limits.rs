//! What clients of responsiveness tests can cause at most. They have no token.

use std::time::Duration;

/// Connections at the same time …
pub(super) const MAX_CONNECTIONS: usize = 256;
/// … and of one source: the load of a test, and probes that come and go.
pub(super) const MAX_OF_SOURCE: usize = 128;
/// From the acceptance of a connection to the end of its TLS handshake.
pub(super) const GREETING: Duration = Duration::from_secs(5);
/// From there to the first request.
pub(super) const FIRST_REQUEST: Duration = Duration::from_secs(5);
/// The longest connection, whatever it does: two loads of a test are shorter.
pub(super) const MAX_CONNECTION: Duration = Duration::from_secs(150);
/// A silent connection is probed after this time …
pub(super) const IDLE: Duration = Duration::from_secs(5);
/// … and closed if it does not answer within this one.
pub(super) const IDLE_ANSWER: Duration = Duration::from_secs(10);
/// Requests of a connection at the same time.
pub(super) const MAX_STREAMS: u32 = 32;
/// Bytes of a request's header.
pub(super) const MAX_HEADER: u32 = 8 << 10;
/// Bytes of the large object, and the most that one upload may have: the draft wants 8 GB.
pub(super) const LARGE: u64 = 8_000_000_000;
/// Receive window of a connection and of a stream: what a client can have waiting here.
pub(super) const WINDOW: u32 = 4 << 20;
/// Threads of the server.
pub(super) const THREADS: usize = 2;
/// Unsent bytes in the kernel and in TLS: more would be a queue of this host.
pub(super) const UNSENT: u32 = 16 << 10;
