//! What clients of iperf3 can cause at most. They have no token: all of them together are one guest.

use std::time::Duration;

/// For the cookie of a new connection.
pub(super) const COOKIE: Duration = Duration::from_secs(5);
/// For the parameters, for the end of the exchange of results, and for the last word.
pub(super) const ANSWER: Duration = Duration::from_secs(10);
/// For all streams of a test.
pub(super) const STREAMS: Duration = Duration::from_secs(20);
/// After its planned end, a test is given up.
pub(super) const GRACE: Duration = Duration::from_secs(10);
/// The longest test, whatever ends it.
pub(super) const MAX_TEST: Duration = Duration::from_secs(3600);
/// Tests at the same time …
pub(super) const MAX_TESTS: usize = 128;
pub(super) const MAX_OF_SOURCE: usize = 64;
/// … and their streams, each of which is a thread.
pub(super) const MAX_STREAMS: usize = 512;
/// A silent control connection is probed after this time: a client that is gone ends its test some seconds later.
pub(super) const IDLE: Duration = Duration::from_secs(5);
/// Datagrams of strangers that are looked at before other tasks have their turn.
pub(super) const DATAGRAMS_AT_ONCE: usize = 64;
/// From the parameters of a user who is not admitted to the answer.
pub(super) const REFUSAL: Duration = Duration::from_millis(500);
