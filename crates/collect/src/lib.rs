//! Collectors: a host, live or recorded, becomes facts. One collector per file below `collectors/`, one line in its table.
//!
//! ```text
//! Host (live | recorded)  ->  Collector*  ->  Snapshot { facts, absent, collectors }
//! ```
//!
//! Nothing here changes a host or interprets a fact.

pub mod bpf_watch;
pub mod collector;
mod collectors;
mod connections;
mod cpu_times;
mod device_state;
pub mod drop_watch;
pub mod host;
mod interfaces;
pub mod kernel;
mod layers;
mod link_counters;
mod missing;
mod parse;
mod run;
mod watch;

pub use bpf_watch::BpfWatch;
pub use collector::{Class, Collector, Context, Peer, Sink};
pub use collectors::COLLECTORS;
pub use connections::{Connections, control_groups, owners};
pub use cpu_times::cpu_times;
pub use device_state::{boot_id, device_state};
pub use drop_watch::DropWatch;
pub use host::{CaptureError, Host, Keep, Live, Meta, Recorded, Recording, record};
pub use interfaces::interfaces;
pub use kernel::fib::networks_known;
pub use link_counters::{LinkCounters, drops_by_reason, link_counters};
pub use missing::Missing;
pub use run::{counters, cpu_quota, inventory};
pub use watch::{Watch, Watched};
