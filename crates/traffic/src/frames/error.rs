//! What keeps frames from being sent or counted.

use thiserror::Error;

/// Why no frames can be sent or counted.
#[derive(Debug, Error)]
pub enum FrameError {
    /// The plan is unsound.
    #[error("cannot send these frames: {0}")]
    Plan(String),
    /// The device is not fit for it.
    #[error("cannot use device {device}: {why}")]
    Device {
        device: String,
        /// What is wrong and what to do about it.
        why: String,
    },
    #[error("cannot use interface {device}: no mode works: {}", .why.join("; "))]
    NoMode {
        device: String,
        /// Why not, a sentence for each mode.
        why: Vec<String>,
    },
    /// The kernel refused something on the way.
    #[error(transparent)]
    System(#[from] narrows_sys::Error),
    /// A thread could not be started.
    #[error("cannot start worker {worker}: {source}; use fewer workers or raise the limit of threads")]
    Thread {
        worker: u32,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

impl FrameError {
    pub(super) fn device(device: &str, why: impl Into<String>) -> Self {
        Self::Device { device: device.to_owned(), why: why.into() }
    }
}
