//! The network and the settings that all measurements of frames share.

use crate::args::Args;
use crate::network::Network;

/// Queues per end and direction, and workers or threads of each contender.
pub(super) const WORKERS: u32 = 2;
/// Nice value of all contenders: that of narrows' workers.
pub(super) const NICE: i32 = -15;

/// The settings that all frame measurements share.
pub(super) struct Bench<'a> {
    pub(super) args: &'a Args,
    pub(super) network: Network,
    /// The Ethernet address of the receiving end.
    pub(super) mac: String,
}
