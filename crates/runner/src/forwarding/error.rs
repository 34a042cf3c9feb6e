//! What keeps a forwarding benchmark from being made.

use thiserror::Error;

/// Why it cannot be made, or could not go on.
#[derive(Debug, Error)]
pub enum ForwardingError {
    /// The tester's port on this device cannot be used: why, and what to do.
    #[error("the tester's port {0} cannot be used: {1}")]
    Port(String, String),
    /// A port of the tester on another host.
    #[error("the tester's host {host}: {why}")]
    Far {
        /// The plan's word for the host.
        host: String,
        /// What is wrong and what to do about it.
        #[source]
        why: crate::remote::RemoteError,
    },
    /// A step to another configuration of the device, or back from it.
    #[error("the device cannot be switched {way} `{configuration}`: {step}: {why}")]
    Switch {
        /// `to` or `back from`.
        way: &'static str,
        configuration: String,
        step: String,
        why: String,
    },
    /// A table of the device under test, and why it cannot be filled or emptied.
    #[error("the device under test cannot be measured with {0}: {1}")]
    Table(String, String),
    /// The helper with privileges, in its words.
    #[error("{0}")]
    Helper(String),
    #[error(transparent)]
    Frames(#[from] narrows_traffic::frames::FrameError),
    #[error(transparent)]
    System(#[from] narrows_sys::Error),
    /// A search or a procedure got what it cannot use.
    #[error(transparent)]
    Search(#[from] narrows_search::SearchError),
}
