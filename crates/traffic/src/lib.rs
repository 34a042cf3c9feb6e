//! Engines that load a path: a plan and connected sockets in, one end's record out.
//!
//! - [`tcp`]: bulk data, [`udp`]: paced datagrams, [`rr`]: requests and responses, [`profile`]: steps that show what a path does; each has the same sampler (`common`).
//! - [`stamp`]: a STAMP session with any reflector.
//! - [`frames`]: raw Ethernet frames, generated and received.
//!
//! Plain threads and blocking calls, no async: one thread moves the data of one stream, the caller's thread takes the samples.

mod common;
mod engines;
pub mod frames;
pub mod profile;
pub mod rr;
pub mod stamp;
pub mod tcp;
pub mod udp;

pub use common::connections::{Connections, DataStream, Layer, PerTransaction, Socket, Witness};
pub use common::error::TrafficError;
pub use common::fill::fill;
pub use common::limits::{CALL_LIMIT, GRACE};
#[doc(hidden)]
pub use common::sequence_window::count_any;
pub use common::stop::Stop;
pub use engines::{accept_udp, answers, open_udp, run};

use common::engine::Engine;
use narrows_model::LoadPlan;

/// The table of engines: one line each.
const fn engine(plan: &LoadPlan) -> &dyn Engine {
    match plan {
        LoadPlan::Tcp(plan) => plan,
        LoadPlan::Udp(plan) => plan,
        LoadPlan::Rr(plan) => plan,
        LoadPlan::Profile(plan) => plan,
    }
}
