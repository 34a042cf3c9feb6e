//! The UDP engine: both ends in one process, over loopback and between network namespaces; and each end against a fake one.
#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests may do as tests do

mod common;
mod ends;
mod handshake;
mod hosts;
mod order;
mod path;
mod profile;
