//! The ends of a flow, seen from the data.

/// Which end of the flow, or between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// The host that sends.
    Sender,
    /// The host that receives.
    Receiver,
    Path,
}
