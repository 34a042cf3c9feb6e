//! The client's side of the control API: connects to a server, opens sessions, and measures with them.

mod authority;
mod channel;
mod connection;
mod data;
mod error;
mod events;
mod pin;
mod session;
mod spec;
mod ssh;

pub(crate) use channel::words;
pub(crate) use connection::{connect_first, find_foreign, resolve};
pub(crate) use pin::Pin;
pub(crate) use spec::family_of;

pub use authority::{Trust, TrustError};
pub use connection::Remote;
pub use error::{RemoteError, TrialError};
pub use pin::any_key;
pub use session::Session;
pub use spec::{SshServer, TargetSpec};
pub use ssh::Options;
