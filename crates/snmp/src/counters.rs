//! One reading of an interface's counters.

use crate::interface::InterfaceName;

/// How far a counter counts before it begins again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// To 2^64: years at any rate.
    Bits64,
    /// To 2^32: 4,294,967,296 frames of 64 bytes pass in 289 s at 10 Gbit/s, as many octets in 3.4 s. Not trusted for books.
    Bits32,
}

/// A counter's value, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Counter {
    /// It was read.
    Read {
        /// The object, such as `ifHCInUcastPkts`.
        object: &'static str,
        /// Since the agent began.
        value: u64,
        /// How far it counts.
        width: Width,
    },
    /// It could not be.
    Absent {
        /// The object.
        object: &'static str,
        /// A sentence.
        why: String,
    },
}

impl Counter {
    /// The value, where there is one.
    #[must_use]
    pub const fn value(&self) -> Option<u64> {
        match self {
            Self::Read { value, .. } => Some(*value),
            Self::Absent { .. } => None,
        }
    }

    /// Its width, where it was read.
    #[must_use]
    pub const fn width(&self) -> Option<Width> {
        match self {
            Self::Read { width, .. } => Some(*width),
            Self::Absent { .. } => None,
        }
    }

    /// The object's name.
    #[must_use]
    pub const fn object(&self) -> &'static str {
        match self {
            Self::Read { object, .. } | Self::Absent { object, .. } => object,
        }
    }
}

/// The counters of one direction of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideCounters {
    /// Bytes of frames; whether with FCS differs between devices.
    pub octets: Counter,
    /// Frames to one station.
    pub unicast: Counter,
    /// Frames to a group.
    pub multicast: Counter,
    /// Frames to all.
    pub broadcast: Counter,
    /// Frames without error that were dropped; always of 32 bits.
    pub discards: Counter,
    /// Frames dropped for an error; always of 32 bits.
    pub errors: Counter,
}

impl SideCounters {
    /// All frames counted so far; what the agent does not count among those to groups and to all is left out. `None`: it does
    /// not count those to one station.
    #[must_use]
    pub fn frames(&self) -> Option<u64> {
        let others = [&self.multicast, &self.broadcast].into_iter().filter_map(Counter::value);
        self.unicast.value().map(|unicast| others.fold(unicast, u64::saturating_add))
    }

    /// The counters that the books are made from.
    #[must_use]
    pub const fn of_books(&self) -> [&Counter; 4] {
        [&self.octets, &self.unicast, &self.multicast, &self.broadcast]
    }

    /// All of them.
    #[must_use]
    pub const fn all(&self) -> [&Counter; 6] {
        [&self.octets, &self.unicast, &self.multicast, &self.broadcast, &self.discards, &self.errors]
    }
}

/// One reading of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortCounters {
    /// Whose counters these are.
    pub interface: InterfaceName,
    /// sysUpTime, hundredths of a second.
    pub up_time: u32,
    /// ifCounterDiscontinuityTime: the value of sysUpTime when these counters last began anew; `None`: the agent has it not.
    pub discontinuity: Option<u32>,
    /// ifHighSpeed, Mbit/s; `None`: the agent has it not.
    pub speed_mbps: Option<u32>,
    /// Frames that came in.
    pub input: SideCounters,
    /// Frames that went out.
    pub output: SideCounters,
}

impl PortCounters {
    /// The narrowest of the counters that the books are made from; `None` where none was read.
    #[must_use]
    pub fn width(&self) -> Option<Width> {
        let sides = self.input.of_books().into_iter().chain(self.output.of_books());
        let widths: Vec<Width> = sides.filter_map(Counter::width).collect();
        if widths.contains(&Width::Bits32) { Some(Width::Bits32) } else { widths.first().copied() }
    }

    /// Whether all counters stand where they stood, whatever the time.
    #[must_use]
    pub fn stands_at(&self, other: &Self) -> bool {
        self.input == other.input && self.output == other.output
    }
}
