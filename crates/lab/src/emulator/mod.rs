//! The path between two hosts: packets sent into one TUN device come out of the other, or are dropped.
//!
//! `line` and its parts are pure: a packet arrives at an instant and gets a departure time or a drop. `relay` is the thread
//! that moves the bytes. A [`Path`] is two of them.

pub mod codel;
pub mod corrupt;
pub mod cut;
pub mod frame;
pub mod gilbert_elliott;
pub mod line;
pub mod meter;
pub mod pool;
pub mod queue;
pub mod random;
pub mod relay;
pub mod reserved;
pub mod too_big;
pub mod wake;

#[cfg(test)]
mod line_tests;

use narrows_model::Flow;
use narrows_model::lab::{Impairment, PathCounters};
use narrows_sys::tun::Tun;
use relay::Relay;
use reserved::Reserved;
use std::sync::Arc;

/// A running path between the devices of two hosts.
#[derive(Debug)]
pub struct Path {
    up: Relay,
    down: Relay,
}

impl Path {
    /// Starts to carry packets between the client's and the server's TUN device, on cores other than the reserved
    /// ones. `seed` makes the random drops repeatable.
    /// Errors: out of descriptors or threads.
    pub fn start(
        client: &Arc<Tun>,
        server: &Arc<Tun>,
        up: Impairment,
        down: Impairment,
        seed: u64,
        reserved: &Arc<Reserved>,
    ) -> narrows_sys::Result<Self> {
        Ok(Self {
            up: Relay::start("path-up", [client, server], up, seed, reserved)?,
            down: Relay::start("path-down", [server, client], down, !seed, reserved)?,
        })
    }

    const fn relay(&self, flow: Flow) -> &Relay {
        match flow {
            Flow::Up => &self.up,
            Flow::Down => &self.down,
        }
    }

    /// The impairment of one direction.
    pub fn impairment(&self, flow: Flow) -> Impairment {
        self.relay(flow).impairment()
    }

    /// Replaces the impairment, from now on.
    pub fn set(&self, flow: Flow, impairment: Impairment) {
        self.relay(flow).set(impairment);
    }

    /// The counters so far.
    pub fn counters(&self, flow: Flow) -> PathCounters {
        self.relay(flow).counters()
    }

    /// Why a direction stopped by itself, if it did.
    pub fn failure(&self) -> Option<String> {
        self.up.failure().or_else(|| self.down.failure())
    }
}
