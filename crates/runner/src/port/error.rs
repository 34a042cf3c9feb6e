//! What keeps a port from being used.

use crate::remote::RemoteError;
use narrows_sys::Error;
use narrows_traffic::frames::FrameError;

#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// The tester's port on this device cannot be used: why, and what to do.
    #[error("the tester's port {0} cannot be used: {1}")]
    Unfit(String, String),
    /// A port of the tester on another host.
    #[error("the tester's host {host}: {why}")]
    Far {
        /// The plan's word for the host.
        host: String,
        /// What is wrong and what to do about it.
        #[source]
        why: RemoteError,
    },
    /// The helper with privileges, in its words.
    #[error("{0}")]
    Helper(String),
    #[error(transparent)]
    Frames(#[from] FrameError),
    #[error(transparent)]
    System(#[from] Error),
}
