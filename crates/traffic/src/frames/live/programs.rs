//! The XDP programs, built from `bpf/` by clang (see `build.rs`).

pub(super) const GENERATE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/generate.o"));
pub(super) const RECEIVE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/receive.o"));

/// Why a program could not be loaded.
pub(super) fn load_error(error: &narrows_sys::Error) -> String {
    match error.errno() {
        Some(1 | 13) => "it needs root (CAP_BPF and CAP_NET_ADMIN)".to_owned(),
        _ => error.to_string(),
    }
}
