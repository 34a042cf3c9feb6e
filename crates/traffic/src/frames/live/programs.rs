//! The XDP programs, built from `bpf/` by clang (see `build.rs`).

pub(super) const GENERATE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/generate.o"));
pub(super) const RECEIVE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/receive.o"));
