//! What clients of responsiveness tests can cause at most. They have no token.

use crate::server::places::Windows;
use std::time::Duration;

/// From the acceptance of a connection to the end of its TLS handshake.
pub(super) const GREETING: Duration = Duration::from_secs(5);
/// A connection without a request is closed after so many of these: clients leave those of their probes open.
pub(super) const TICK: Duration = Duration::from_secs(1);
pub(super) const IDLE_TICKS: u32 = 3;
/// The longest connection, whatever it does: two loads of a test are shorter.
pub(super) const MAX_CONNECTION: Duration = Duration::from_secs(150);
/// A connection is probed at this interval …
pub(super) const PING: Duration = Duration::from_secs(5);
/// … and closed if it does not answer within this one.
pub(super) const PING_ANSWER: Duration = Duration::from_secs(10);
/// Requests of a connection at the same time.
pub(super) const MAX_STREAMS: u32 = 32;
/// Bytes of a request's header.
pub(super) const MAX_HEADER: u32 = 8 << 10;
/// Bytes of the large object, and the most that one upload may have: the draft wants 8 GB.
pub(super) const LARGE: u64 = 8_000_000_000;
/// Receive windows of connections, which are also those of their streams.
pub(super) const WINDOWS: Windows = Windows { each: 4 << 20, all: 128 << 20 };
/// Unsent bytes in the kernel and in TLS: more would be a queue of this host.
pub(super) const UNSENT: u32 = 8 << 10;
