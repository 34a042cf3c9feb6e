//! narrows runner

pub mod instruments;
pub mod remote;
pub mod server;
pub mod state;
pub mod stop;
pub mod trust;
pub mod tune;
