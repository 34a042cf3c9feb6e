//! The flag that ends a trial early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends the trial that it was given to: Ctrl-C, a stop by the peer, a lost control connection. All clones are one flag.
///
/// Takes effect within about 100 ms even on blocked streams: no call lasts longer than [`crate::CALL_LIMIT`].
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// A flag that is not raised.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Raises it for good. Safe to call from anywhere, any number of times.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was raised.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
