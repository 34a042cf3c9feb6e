//! The faults that a lab can have: each is one file with its documentation, and one line in [`ALL`].
//!
//! Each is named as the cause that it makes, so that the truth of a scenario is the fault's own id. Those of a device under test
//! (`forward-*`, `flowtable`) are no causes: they are what a benchmark of forwarding is to find, or to compare. A fault at a host is in
//! that host alone, and gone when the lab is, however it ends. Three causes have therefore no fault here:
//!
//! - *udp-receive-buffer*: `net.core.rmem_max` and `rmem_default` belong to the machine. A host of a lab may read and not write
//!   them (net/core/sysctl_net_core.c shows them read-only in every network namespace but the first), and to lower them for the
//!   machine would lower them for the other host and for all else that runs. The load fixes its own socket's buffer instead
//!   (`UdpPlan::receive_buffer_bytes`).
//! - *udp-memory*: `net.ipv4.udp_mem` too is the machine's; no other namespace has it. It needs a recorded host.
//! - *small-datagrams*: it is in the load, not in the network.
//!
//! `net.core.netdev_max_backlog` is the machine's as well: *softnet-backlog* fills the queue instead of shortening it.

mod burst_loss;
mod checksum_errors;
mod congestion_control;
mod costly_core;
mod delay;
pub(crate) mod filter_drop;
mod flowtable;
pub(crate) mod forward_drop_nth;
mod forward_police;
mod forward_rules;
mod forward_shape;
mod ip_fragmentation;
mod link_speed;
mod local_shaper;
mod mtu_black_hole;
mod mtu_mismatch;
mod offloads_off;
mod path_capacity;
mod path_policer;
mod path_shaper;
mod qdisc_drop;
mod random_loss;
mod reordering;
mod sack_off;
pub(crate) mod send_filter;
mod shallow_queue;
mod softirq_core_saturated;
mod softnet_backlog;
mod tcp_receive_window;
mod tcp_send_buffer;
mod udp_send_queue;
mod undo;
mod value;
mod window_scaling_off;

pub use undo::Undo;
pub use value::{Unit, Value};

use crate::host::Host;
use crate::site::Site;
use crate::{Error, Result};
use narrows_model::lab::Impairment;
use narrows_model::{Direction, Flow};
use serde::{Deserialize, Serialize};

/// All faults, by their ids.
pub const ALL: &[Fault] = &[
    burst_loss::FAULT,
    checksum_errors::FAULT,
    congestion_control::FAULT,
    delay::FAULT,
    filter_drop::FAULT,
    flowtable::FAULT,
    forward_drop_nth::FAULT,
    forward_police::FAULT,
    forward_rules::FAULT,
    forward_shape::FAULT,
    ip_fragmentation::FAULT,
    link_speed::FAULT,
    local_shaper::FAULT,
    mtu_black_hole::FAULT,
    mtu_mismatch::FAULT,
    offloads_off::FAULT,
    path_capacity::FAULT,
    path_policer::FAULT,
    path_shaper::FAULT,
    qdisc_drop::FAULT,
    random_loss::FAULT,
    reordering::FAULT,
    sack_off::FAULT,
    send_filter::FAULT,
    shallow_queue::FAULT,
    softirq_core_saturated::FAULT,
    softnet_backlog::FAULT,
    tcp_receive_window::FAULT,
    tcp_send_buffer::FAULT,
    udp_send_queue::FAULT,
    window_scaling_off::FAULT,
];

/// The number that a fault takes.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// What kind of number.
    pub unit: Unit,
    /// In the user's words.
    pub default: &'static str,
    /// What it means.
    pub about: &'static str,
}

impl Parameter {
    /// What it takes, with an example.
    fn wanted(&self) -> String {
        format!("a {} such as {} ({})", self.unit, self.default, self.about)
    }
}

/// A fault that can be brought in and taken back.
#[derive(Debug)]
pub struct Fault {
    /// The id of the cause that it makes.
    pub id: &'static str,
    /// One sentence.
    pub about: &'static str,
    /// Where it can be.
    pub places: &'static [Site],
    /// Its number, where it takes one.
    pub parameter: Option<Parameter>,
    /// What it does to a host.
    pub host: Option<fn(&Host, &Value) -> Result<Undo>>,
    /// What it does to the path while it is in force, in the directions in which it is.
    pub path: Option<fn(&mut Impairment, &Value, Way)>,
}

/// Where a fault is and which packets meet it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    /// Its place.
    pub at: Site,
    /// The direction of the packets.
    pub flow: Flow,
}

impl Way {
    /// Whether the packets go to the host that has the fault.
    #[must_use]
    pub fn leads_to_it(self) -> bool {
        Site::from(self.flow.receiver()) == self.at
    }
}

/// A fault that is in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InForce {
    /// The fault.
    pub id: String,
    /// Where.
    pub at: Site,
    /// Its value in words; empty where it takes none.
    pub value: String,
    /// For a fault of the path: the direction of the packets that meet it.
    pub direction: Direction,
    /// One sentence.
    pub about: String,
}

const HOSTS: &[Site] = &[Site::Client, Site::Server];
const PATH: &[Site] = &[Site::Path];
/// A device under test.
const ROUTER: &[Site] = &[Site::Router];

/// The fault with that id.
///
/// # Errors
/// There is none, and there are these.
pub fn find(id: &str) -> Result<&'static Fault> {
    ALL.iter().find(|fault| fault.id == id).ok_or_else(|| Error::UnknownFault {
        id: id.chars().take(64).collect(),
        known: ALL.iter().map(|fault| fault.id).collect::<Vec<_>>().join(", "),
    })
}

impl Fault {
    /// A value that looks right and cannot be.
    fn refused(&self, value: &str, cause: &str) -> Error {
        let wanted = self.parameter.map_or_else(|| "none".to_owned(), |parameter| parameter.wanted());
        Error::BadValue { id: self.id, value: value.to_owned(), wanted, cause: cause.to_owned() }
    }

    /// The value at a place: the user's words, or the default.
    ///
    /// # Errors
    /// It cannot be there, or takes no such value.
    pub fn value(&self, place: Site, words: Option<&str>) -> Result<Value> {
        if !self.places.contains(&place) {
            let places = self.places.iter().map(|place| place.word()).collect::<Vec<_>>().join(" or ");
            return Err(Error::WrongPlace { id: self.id, place, places });
        }
        let bad = |wanted: String, cause: String| {
            let value = words.unwrap_or_default().chars().take(64).collect();
            Error::BadValue { id: self.id, value, wanted, cause }
        };
        match (self.parameter, words) {
            (None, None) => Ok(Value::None),
            (None, Some(_)) => Err(bad("none".to_owned(), "leave it away".to_owned())),
            (Some(parameter), words) => {
                let parsed = Value::parse(parameter.unit, words.unwrap_or(parameter.default));
                parsed.map_err(|cause| bad(parameter.wanted(), cause))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_each_fault_can_be_somewhere() {
        assert!(ALL.is_sorted_by_key(|fault| fault.id));
        for fault in ALL {
            assert!(!fault.places.is_empty() && !fault.about.is_empty(), "{}", fault.id);
            assert!(fault.host.is_some() || !fault.places.iter().any(|place| *place != Site::Path), "{}", fault.id);
            assert!(fault.path.is_some() || !fault.places.contains(&Site::Path), "{}", fault.id);
            for place in fault.places {
                fault.value(*place, None).expect("the default is a value");
            }
        }
    }

    #[test]
    fn the_path_with_a_fault_is_a_path_that_can_be() {
        for fault in ALL {
            let Some(change) = fault.path else { continue };
            let mut path = Impairment::default();
            let at = *fault.places.last().expect("somewhere");
            for flow in [Flow::Up, Flow::Down] {
                change(&mut path, &fault.value(at, None).expect("the default"), Way { at, flow });
            }
            assert_ne!(path, Impairment::default(), "{} does something", fault.id);
            crate::spec::check_impairment(&path).expect(fault.id);
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_a_sentence() {
        let error = find("gremlins").expect_err("no such fault").to_string();
        assert!(error.contains("gremlins") && error.contains("random-loss"), "{error}");
        let loss = find("random-loss").expect("it is there");
        assert!(loss.value(Site::Server, None).expect_err("of the path").to_string().contains("it can be at path"));
        let error = loss.value(Site::Path, Some("plenty")).expect_err("no number").to_string();
        assert!(error.contains("`plenty`") && error.contains("1%"), "{error}");
        let error = find("sack-off").expect("there").value(Site::Client, Some("7")).expect_err("none").to_string();
        assert!(error.contains("takes none"), "{error}");
    }
}
