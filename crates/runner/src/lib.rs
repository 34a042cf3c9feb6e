//! narrows runner

pub mod state;
pub mod tune;
