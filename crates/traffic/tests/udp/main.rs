//! The UDP engine: both ends in one process, over loopback and between network namespaces; and each end against a fake one.

mod common;
mod ends;
mod handshake;
mod hosts;
mod order;
mod path;
