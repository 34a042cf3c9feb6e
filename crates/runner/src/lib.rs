//! The orchestration: the only crate that knows everyone. Client, server, and one run from begin to end.

pub mod audit;
mod books;
pub mod campaign;
pub mod capture;
pub mod command;
pub mod compare;
mod conductor;
pub mod connections;
pub mod demo;
pub mod diagnosis;
pub mod ends;
pub mod fleet;
pub mod foreign;
pub mod frames;
pub mod helper;
mod instruments;
pub mod iperf3;
pub mod known;
pub mod live;
mod liveness;
mod loopback;
pub mod mcp;
pub mod measure;
pub mod mesh;
pub mod ndt7;
pub mod optimise;
pub mod port;
pub mod quic;
pub mod remote;
mod reports;
pub mod responsiveness;
pub mod scenarios;
pub mod search;
pub mod server;
pub mod stamp;
pub mod state;
pub mod stored;
pub mod sweep;
pub mod tokens;
pub mod trace;
pub mod trust;
pub mod trusted;
pub mod tune;
pub mod verify;
pub mod watch;
pub mod web;
mod workers;

pub use books::{document, live, measurement, nothing_arrived};
pub use narrows_diagnose::report;
pub use narrows_lab as emulated;
pub use narrows_sys::interrupt;
pub use narrows_traffic::Stop;
pub use narrows_views::both_directions::of_runs as both_directions;
pub use narrows_views::measure::udp::ledgers;
pub use narrows_views::mesh::report as mesh_report;
pub use narrows_views::search::of_run as search_report;
pub use narrows_views::sweep::of_run as sweep_report;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Result as Joined;

/// The version of this program.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The server's port where none is named.
pub const DEFAULT_PORT: u16 = 5220;

/// A word to whoever runs the server, cleaned of what others may have put in it.
pub(crate) fn say(sentence: &str) {
    eprintln!("narrows serve: {}", narrows_model::words::show::clean(sentence));
}

/// Locks plain data: what a panic left there is as valid as before.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The result of a thread; its panic goes on in this one.
pub fn result_of<T>(joined: Joined<T>) -> T {
    joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
