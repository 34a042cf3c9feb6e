//! What needs no network: stored runs and records through the product, and rules that hold across crates.

mod climb;
mod forwarding;
mod forwarding_ab;
mod fuzz;
mod keys;
mod recorded;
mod samples;
mod sweep;
