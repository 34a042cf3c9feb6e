//! What needs no network: stored runs and records through the product, and rules that hold across crates.

mod climb;
mod keys;
mod recorded;
mod sweep;
