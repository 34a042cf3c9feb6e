//! The orchestration: the only crate that knows everyone. Client, server, and one run from begin to end.

pub mod bank;
pub mod diagnosis;
pub mod ends;
pub mod instruments;
pub mod known;
pub mod remote;
pub mod server;
mod signs;
pub mod state;
pub mod stored;
pub mod trust;
pub mod tune;

pub use narrows_traffic::Stop;
