//! The flag that ends a trial early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends the trial that it was given to: Ctrl-C, a stop by the peer, a lost control connection. All clones are one flag.
///
/// Takes effect within about 100 ms even on blocked streams: no call lasts longer than [`crate::CALL_LIMIT`].
#[derive(Debug, Clone, Default)]
pub struct Stop {
    raised: Arc<AtomicBool>,
    above: Option<Arc<AtomicBool>>,
}

impl Stop {
    /// A flag that is not raised.
    pub fn new() -> Self {
        Self::default()
    }

    /// A flag of its own that counts as raised when this one is. A flag below another one stays below that one.
    pub fn below(&self) -> Self {
        Self { raised: Arc::default(), above: Some(self.above.clone().unwrap_or_else(|| self.raised.clone())) }
    }

    /// Raises it for good. Safe to call from anywhere, any number of times.
    pub fn stop(&self) {
        self.raised.store(true, Ordering::Relaxed);
    }

    /// Whether it was raised.
    pub fn is_set(&self) -> bool {
        self.raised.load(Ordering::Relaxed) || self.above.as_ref().is_some_and(|above| above.load(Ordering::Relaxed))
    }
}
