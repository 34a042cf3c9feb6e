//! The counts of one stream at the receiver.

/// The counts of one stream.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StreamSeen {
    pub(super) stream: u16,
    pub(super) received: u64,
    pub(super) duplicates: u64,
    pub(super) reordered: u64,
    /// How often its numbers restarted.
    pub(super) restarts: u64,
    /// One above the highest sequence number.
    pub(super) next: u64,
}
