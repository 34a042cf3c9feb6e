//! Frames made and counted inside the kernel by the programs of `bpf/`.

mod layout;
mod programs;
mod receive;
mod send;

pub(super) use receive::LiveReceiver;
pub(super) use send::prepare;
