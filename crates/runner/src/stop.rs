//! The flag that ends a trial early: the engine's own, so that one word stops everything.

pub use narrows_traffic::Stop;
