//! How long a load can wait in a queue of the path.

/// How long a load can wait on the path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PathWait {
    /// As long as any: the path queues what exceeds its capacity, and the load fills it.
    Any,
    /// No longer.
    AtMostUs(f64),
    /// Not profiled.
    Unknown,
}

impl PathWait {
    /// What of a rise of the RTT a queue of the path may be, microseconds.
    pub(super) fn limits(self, us: f64) -> f64 {
        if let Self::AtMostUs(most) = self { us.min(most) } else { us }
    }
}
