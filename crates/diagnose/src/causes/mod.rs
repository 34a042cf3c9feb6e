//! The causes: one file each in the folder of its protocol, one line each in the folder's table.

pub mod tcp;
pub mod udp;
