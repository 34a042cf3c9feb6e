//! The times that bound every trial.

use std::time::Duration;

/// No call on a data socket blocks longer; it bounds how late a stop takes effect.
pub const CALL_LIMIT: Duration = Duration::from_millis(50);
/// After the planned end, how long an end waits for the last data of its peer.
pub const GRACE: Duration = Duration::from_secs(2);
/// A TCP stream that is limited by bytes is abandoned when none moved for this time.
pub(crate) const STALL: Duration = Duration::from_secs(30);
