//! The emulated network: hosts in namespaces, the path between them, and faults with a known truth.

mod accuracy;
mod agent;
pub mod bench;
pub mod emulator;
mod error;
pub mod faults;
mod holder;
mod host;
mod network;
mod probe;
mod processes;
pub mod protocol;
mod registry;
mod remote;
mod site;
pub mod spec;
pub mod topology;

pub use accuracy::{Row, Watch, accuracy};
pub use agent::{Agent, AgentStatus};
pub use error::{Error, Result};
pub use faults::ActiveFault;
pub use holder::hold;
pub use host::{Host, PortStatus};
pub use network::{Lab, can_run, enter_user_namespace};
pub use protocol::{DirectionStatus, Status};
pub use registry::Registry;
pub use remote::{Labs, Launcher};
pub use site::Site;
pub use spec::LabSpec;
pub use topology::Topology;
