//! What keeps a forwarding benchmark from being made.

use narrows_runner::port::PortError;
use thiserror::Error;

/// Why it cannot be made, or could not go on.
#[derive(Debug, Error)]
pub enum ForwardingError {
    /// A port of the tester.
    #[error(transparent)]
    Port(#[from] PortError),
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
    #[error(transparent)]
    System(#[from] narrows_sys::Error),
    /// A search or a procedure got what it cannot use.
    #[error(transparent)]
    Search(#[from] narrows_search::SearchError),
}
