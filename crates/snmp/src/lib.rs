//! Counters of switches and devices by SNMP (v2c and v3): IF-MIB (RFC 2863) read from an agent, how much they grew over a
//! trial, and the checks that find an agent whose counters cannot be true.
//!
//! ```text
//! SnmpTarget -> Agent -> PortCounters (before, after) -> Growth -> HopCount -> doubts
//! ```
//!
//! Reading waits: each question blocks up to the time given to [`Agent::open`]. The protocol is async-snmp's; its runtime
//! stays inside of the agent, which may be used from any thread, also from one that runs async code. The socket is opened
//! in the network namespace of the thread that calls [`Agent::open`]. Everything from [`Growth`] on is pure.

mod agent;
mod counters;
mod error;
mod growth;
mod interface;
pub mod lies;
mod mib;
mod session;
mod settle;
pub mod sizes;
mod state;
mod target;
pub mod testing;

pub use agent::Agent;
pub use counters::{Counter, PortCounters, SideCounters, Width};
pub use error::SnmpError;
pub use growth::{Growth, SideGrowth, hop_count};
pub use interface::InterfaceName;
pub use lies::{Doubt, Side, doubts};
pub use settle::{Settled, Settling, State};
pub use target::{Access, Authentication, Cipher, Digest, Privacy, SnmpTarget};
