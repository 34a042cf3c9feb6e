//! Frames on this host's devices for a forwarding benchmark of a client: sent and counted by jobs, which end with their session.
//! Raw frames can do harm, so the server offers this only with `--frames`; [`bounds`] has the limits.

pub(crate) mod bounds;
mod job;
mod requests;

pub(super) use job::{Jobs, Uses};
pub(super) use requests::{begin, end, links, look, qualify, stop, wait};
