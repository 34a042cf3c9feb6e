//! The results of each procedure: a file and a line in the table for each.

mod back_to_back;
mod entry;
mod frmol;
mod latency;
mod loss;
mod outages;
mod throughput;

use entry::Entry;

/// Every procedure, in the order of the manual.
pub(super) const ALL: &[Entry] = &[
    throughput::ENTRY,
    latency::ENTRY,
    loss::ENTRY,
    back_to_back::ENTRY,
    outages::RECOVERY,
    outages::RESET,
    frmol::ENTRY,
];
