//! Frames made and counted inside the kernel by the programs of `bpf/`.

mod layout;
mod receive;
mod send;

pub(super) use receive::LiveReceiver;
pub(super) use send::prepare;

/// Built from `bpf/` by clang (see `build.rs`).
const GENERATE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/generate.o"));
const RECEIVE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/receive.o"));
