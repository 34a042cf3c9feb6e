//! The emulated network: hosts in namespaces, the path between them, and faults with a known truth.

pub mod emulator;
