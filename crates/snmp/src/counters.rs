//! One reading of an interface's counters.

use crate::interface::InterfaceName;

/// The range of a counter before it wraps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// To 2^64: years at any rate.
    Bits64,
    /// To 2^32: 4,294,967,296 frames of 64 bytes pass in 289 s at 10 Gbit/s, as many octets in 3.4 s. Not used for
    /// accounting.
    Bits32,
}

/// A counter's value, or why it is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Counter {
    Read {
        /// The object, such as `ifHCInUcastPkts`.
        object: &'static str,
        /// Since the last discontinuity, usually the start of the agent.
        value: u64,
        width: Width,
    },
    /// It could not be read.
    Absent {
        object: &'static str,
        /// The reason, one sentence.
        why: String,
    },
}

impl Counter {
    /// The value, if it was read.
    pub const fn value(&self) -> Option<u64> {
        match self {
            Self::Read { value, .. } => Some(*value),
            Self::Absent { .. } => None,
        }
    }

    /// Its width, if it was read.
    pub const fn width(&self) -> Option<Width> {
        match self {
            Self::Read { width, .. } => Some(*width),
            Self::Absent { .. } => None,
        }
    }

    pub const fn object(&self) -> &'static str {
        match self {
            Self::Read { object, .. } | Self::Absent { object, .. } => object,
        }
    }
}

/// The counters of one direction of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideCounters {
    /// Bytes of frames; devices differ in whether they include the FCS.
    pub octets: Counter,
    pub unicast: Counter,
    pub multicast: Counter,
    pub broadcast: Counter,
    /// Frames without error that were dropped; always of 32 bits.
    pub discards: Counter,
    /// Frames dropped for an error; always of 32 bits.
    pub errors: Counter,
}

impl SideCounters {
    /// All frames counted so far; missing multicast and broadcast counters are left out. `None`: the unicast
    /// counter is missing.
    pub fn frames(&self) -> Option<u64> {
        let others = [&self.multicast, &self.broadcast].into_iter().filter_map(Counter::value);
        self.unicast.value().map(|unicast| others.fold(unicast, u64::saturating_add))
    }

    /// The counters that the accounting uses.
    pub const fn of_books(&self) -> [&Counter; 4] {
        [&self.octets, &self.unicast, &self.multicast, &self.broadcast]
    }
}

/// One reading of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortCounters {
    pub interface: InterfaceName,
    /// sysUpTime, hundredths of a second.
    pub up_time: u32,
    /// ifCounterDiscontinuityTime: the value of sysUpTime when these counters were last reset; `None`: not
    /// provided.
    pub discontinuity: Option<u32>,
    /// ifHighSpeed, Mbit/s; `None`: not provided.
    pub speed_mbps: Option<u32>,
    pub input: SideCounters,
    pub output: SideCounters,
}

impl PortCounters {
    /// The narrowest of the counters that the accounting uses; `None` if none was read.
    pub fn width(&self) -> Option<Width> {
        let sides = self.input.of_books().into_iter().chain(self.output.of_books());
        let widths: Vec<Width> = sides.filter_map(Counter::width).collect();
        if widths.contains(&Width::Bits32) { Some(Width::Bits32) } else { widths.first().copied() }
    }

    /// Whether all counters are equal, whatever the time of the readings.
    pub fn stands_at(&self, other: &Self) -> bool {
        self.input == other.input && self.output == other.output
    }
}
