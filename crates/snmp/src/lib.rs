//! Counters of switches and devices by SNMP (v2c and v3): IF-MIB (RFC 2863) read from an agent, how much they grew over a
//! trial, and checks that detect impossible counters.
//!
//! ```text
//! SnmpAgent -> Agent -> PortCounters (before, after) -> Growth -> HopCount
//! ```
//!
//! Reading blocks: each request takes up to the timeout given to [`Agent::open`]. The protocol is async-snmp's; its runtime
//! stays inside the agent, which may be used from any thread, including one that runs async code. The socket is opened in the
//! network namespace of the thread that calls [`Agent::open`]. Everything from [`Growth`] on is pure.

mod agent;
mod counters;
mod error;
mod growth;
mod interface;
mod mib;
mod session;
mod settle;
pub mod sizes;
mod state;
mod target;
pub mod testing;

pub use agent::{Agent, read_any};
pub use counters::{Counter, PortCounters, SideCounters, Width};
pub use error::SnmpError;
pub use growth::{Growth, SideGrowth, hop_count};
pub use interface::InterfaceName;
pub use settle::Settling;
pub use target::check;
