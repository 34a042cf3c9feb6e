//! The columns that the sender's kernel adds to an interval of TCP.

use crate::load::tcp_info::TcpInfo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a column makes one value of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// By how much a counter grew, of several streams the sum.
    Growth,
    /// The value at the end, of several streams the sum.
    Sum,
    /// The value at the end, of several streams the median.
    Median,
}

/// What a column counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnUnit {
    /// A number of events.
    Count,
    /// Microseconds.
    Micros,
    /// Bytes.
    Bytes,
}

/// One column.
#[derive(Debug)]
pub struct Column {
    /// Its heading.
    pub heading: &'static str,
    /// Its unit.
    pub unit: ColumnUnit,
    /// How it makes one value of an interval.
    pub over: Over,
    /// Takes it from the kernel's view of the sender.
    pub of: fn(&TcpInfo) -> Option<u64>,
    /// Its value in an interval.
    pub value: fn(&TcpColumns) -> Option<u64>,
}

macro_rules! columns {
    ($($(#[$doc:meta])* $key:ident: $heading:literal, $unit:ident, $over:ident, $of:expr;)*) => {
        /// The columns of an interval; `None` where the sender's record is missing or its kernel does not say.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
        pub struct TcpColumns {
            $($(#[$doc])* pub $key: Option<u64>,)*
        }

        impl TcpColumns {
            /// All columns, the most important first.
            pub const TABLE: &'static [Column] = &[$(Column {
                heading: $heading,
                unit: ColumnUnit::$unit,
                over: Over::$over,
                of: $of,
                value: |columns| columns.$key,
            },)*];

            /// The columns by the value of each.
            pub fn from_each(of: impl FnMut(&Column) -> Option<u64>) -> Self {
                let mut values = Self::TABLE.iter().map(of);
                Self { $($key: values.next().flatten(),)* }
            }
        }
    };
}

// One line a column: its key in JSON, its heading, its unit, how it makes one value, and where it comes from.
columns! {
    /// Segments that the sender retransmitted; `None` where the sender's record is missing.
    retransmits: "Retr", Count, Growth, |tcp| tcp.total_retrans;
    /// The sender's smoothed RTT at the end; of several streams the median.
    rtt_us: "RTT", Micros, Median, |tcp| tcp.rtt_us;
    /// The sender's congestion window at the end, in bytes; of several streams the sum.
    cwnd_bytes: "Cwnd", Bytes, Sum, |tcp| tcp.snd_cwnd.zip(tcp.snd_mss_bytes).map(|(n, mss)| n.saturating_mul(mss));
}
