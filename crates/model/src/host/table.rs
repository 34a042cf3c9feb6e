//! Tables of a device under test that a benchmark fills: routes (RFC 3222), filter rules, neighbours.

use crate::words::figures::grouped;
use crate::words::place::Family;
use crate::words::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

words! {
    /// A table that forwarding looks into.
    pub enum TableKind {
        /// The forwarding table: prefixes with a realistic distribution of lengths.
        Routes = "routes",
        /// Filter rules that each frame is compared with, and that none matches.
        Rules = "rules",
        /// Static neighbours on the output link, one for each destination.
        Neighbours = "neighbours",
    }
}

impl TableKind {
    /// The most entries that are added.
    pub const fn most(self) -> u32 {
        match self {
            Self::Routes => 1 << 20,
            Self::Rules => 100_000,
            Self::Neighbours => 1 << 16,
        }
    }

    /// So many entries: `1,000 routes`.
    pub fn entries(self, number: u32) -> String {
        let word = self.word();
        format!("{} {}", grouped(number), if number == 1 { word.trim_end_matches('s') } else { word })
    }
}

/// How a table is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct TableFill {
    /// The table.
    pub table: TableKind,
    /// Of the entries.
    pub family: Family,
    /// Entries that are added.
    pub entries: u32,
}

impl fmt::Display for TableFill {
    /// `1,000 routes`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.table.entries(self.entries))
    }
}
