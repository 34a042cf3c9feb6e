//! Evidence: what trials say, in the terms that rules are written in. Nothing here decides.

pub(crate) mod cores;
pub mod paced;
pub mod ports;
pub mod profile;
pub(crate) mod shaper;
pub mod tcp;
pub mod udp;
