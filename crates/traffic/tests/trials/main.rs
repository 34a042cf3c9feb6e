//! Trials of TCP and of requests and responses: both ends in one process, over loopback.

mod bytes;
mod common;
mod ends;
mod options;
mod rr;
mod rr_ends;
