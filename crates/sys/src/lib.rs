//! System calls, clocks, sockets and files. Only this crate may use `unsafe`; every other crate forbids it.
//!
//! Each module wraps one part of the kernel's interface in safe functions whose errors name the operation and the object.

#![allow(clippy::disallowed_methods)] // the bans of clippy.toml point here

#[cfg(feature = "xdp")]
pub mod bpf;
pub mod bpf_programs;
pub mod channel;
pub mod clock;
pub mod confine;
pub mod cpu;
pub mod cpu_clocks;
pub mod deputy;
pub mod device;
pub mod drops;
pub mod error;
pub mod ethtool;
pub mod event;
pub mod exchange;
pub mod files;
pub mod fulfil;
pub mod interrupt;
pub mod journald;
pub mod kernel_file;
mod lock;
pub mod mount;
pub mod mptcp;
pub mod names;
pub mod nanos;
pub mod neighbour;
pub mod net;
pub mod netdev;
pub mod netlink;
pub mod netns;
pub mod network_id;
pub mod nftables;
mod open_file;
pub mod packet_io;
pub mod packet_ring;
pub mod packet_tap;
pub mod pages;
pub mod path_mtu;
pub mod perf;
pub mod probe;
pub mod process;
pub mod pty;
pub mod random;
mod raw;
pub mod rtnl;
mod shared;
pub mod sock_diag;
pub mod sysctl;
pub mod tcp;
#[cfg(feature = "xdp")]
mod tcp_sockets;
pub mod thread;
pub mod tracefs;
pub mod tun;
pub mod udp;
pub mod xsk;

pub use error::{Error, Result};
