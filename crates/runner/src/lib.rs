//! The orchestration: the only crate that knows everyone. Client, server, and one run from begin to end.

pub mod advise;
pub mod audit;
mod books;
pub mod capture;
pub mod demo;
pub mod diagnosis;
pub mod ends;
pub mod forwarding;
pub mod frames;
pub mod instruments;
pub mod known;
pub mod live;
mod liveness;
mod loopback;
pub mod measure;
pub mod remote;
pub mod scenarios;
pub mod search;
pub mod server;
pub mod state;
pub mod stop;
pub mod stored;
pub mod sweep;
pub mod trust;
pub mod tune;
pub mod verify;
pub mod watch;
mod workers;

pub use books::{ledgers, live, measurement, search_report, sweep_report};
pub use narrows_diagnose::report;
pub use narrows_lab as emulated;
pub use narrows_sys::interrupt;
