//! The path between two hosts: what is sent into one TUN device comes out of the other, later or never.
//!
//! `line` and what it is made of are pure: a packet in at an instant, a departure or a drop out. `relay` is the thread that
//! moves the bytes. A [`Path`] is two of them.

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
    /// Begins to carry packets between the client's and the server's device, on other cores than the reserved ones.
    /// `seed` makes its chances repeatable.
    ///
    /// # Errors
    /// Out of descriptors or threads.
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

    /// What the path does to the packets of one direction.
    #[must_use]
    pub fn impairment(&self, flow: Flow) -> Impairment {
        self.relay(flow).impairment()
    }

    /// Changes what it does, from now on.
    pub fn set(&self, flow: Flow, impairment: Impairment) {
        self.relay(flow).set(impairment);
    }

    /// What it did so far.
    #[must_use]
    pub fn counters(&self, flow: Flow) -> PathCounters {
        self.relay(flow).counters()
    }

    /// Why a direction stopped by itself, where it did.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.up.failure().or_else(|| self.down.failure())
    }
}
