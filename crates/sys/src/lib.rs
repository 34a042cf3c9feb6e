//! The one room for `unsafe`, system calls, clocks, sockets and files. Every other crate forbids unsafe and asks here.
//!
//! Each module wraps one part of the kernel's interface in safe functions whose errors name the operation and the object.

#![allow(clippy::disallowed_methods)] // the bans of clippy.toml point here

pub mod clock;
pub mod error;
pub mod ethtool;
pub mod files;
pub mod kernel_file;
pub mod netlink;
pub mod path_mtu;
pub mod process;
pub mod sysctl;

pub use error::{Error, Result};
