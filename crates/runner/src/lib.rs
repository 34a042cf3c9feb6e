//! The orchestration: the only crate that knows everyone. Client, server, and one run from begin to end.

pub mod diagnosis;
pub mod ends;
//! narrows runner

pub mod state;
pub mod tune;
