//! The faults that a lab can have: each is one file with its documentation, and one line in the table.
//!
//! A fault has the id of the cause that it produces, so that the truth of a scenario is the fault's own id. Those of a device
//! under test (`forward-*`, `flowtable`) are not causes: they are what a forwarding benchmark must find or compare. A fault
//! at a host affects that host alone and ends with the lab, however the lab ends. These causes have therefore no fault here:
//!
//! - *udp-receive-buffer*: `net.core.rmem_max` and `rmem_default` belong to the machine. A host of a lab can read but not
//!   write them (net/core/sysctl_net_core.c makes them read-only in every network namespace but the first), and lowering them
//!   for the machine would affect the other host and every other program. The load fixes its own socket's buffer instead
//!   (`UdpPlan::receive_buffer_bytes`).
//! - *udp-memory*: `net.ipv4.udp_mem` is also per machine. It needs a recorded host.
//! - *conntrack-full*: `net.netfilter.nf_conntrack_max` is per machine too, and read-only in every other network namespace.
//! - *stale-metrics*: entries of `ip tcp_metrics` cannot be set, and connections did not begin with the `ssthresh` of their route (tried
//!   on 6.18, locked and not).
//! - *tcp-limit-output*: the limit is of the host, but TUN and veth give a packet's memory back at once (`skb_orphan`), so that it is
//!   never reached.
//! - *small-datagrams*: it is a property of the load, not of the network.
//!
//! `net.core.netdev_max_backlog` is per machine too: *softnet-backlog* fills the queue instead of shortening it.

mod costly_core;
mod fault;
mod undo;
mod value;

pub use fault::{ActiveFault, Fault, Parameter, Way};
pub use undo::Undo;
pub use value::{Unit, Value};

use crate::{Error, Result};
use fault::{HOSTS, PATH, ROUTER, takes};

/// Declares the modules of the faults and lists them.
macro_rules! faults {
    ($($module:ident),* $(,)?) => {
        $(mod $module;)*
        /// All faults, sorted by id.
        pub const ALL: &[Fault] = &[$($module::FAULT),*];
    };
}

faults! {
    bpf_programs,
    burst_loss,
    checksum_errors,
    codel,
    congestion_control,
    delay,
    filter_drop,
    flowtable,
    forward_drop_nth,
    forward_police,
    forward_rules,
    forward_shape,
    heavy_ruleset,
    ip_fragmentation,
    link_speed,
    local_shaper,
    mtu_black_hole,
    mtu_mismatch,
    offloads_off,
    path_capacity,
    path_outage,
    path_policer,
    path_shaper,
    qdisc_drop,
    random_loss,
    receive_autotuning_off,
    reordering,
    sack_off,
    send_filter,
    shallow_queue,
    softirq_core_saturated,
    softnet_backlog,
    tcp_receive_window,
    tcp_send_buffer,
    udp_send_queue,
    window_scaling_off,
}

/// The fault with that id.
/// Errors: no fault has that id; the message lists all ids.
pub fn find(id: &str) -> Result<&'static Fault> {
    ALL.iter().find(|fault| fault.id == id).ok_or_else(|| Error::UnknownFault {
        id: id.chars().take(64).collect(),
        known: ALL.iter().map(|fault| fault.id).collect::<Vec<_>>().join(", "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Site;
    use narrows_model::Flow;
    use narrows_model::lab::Impairment;

    #[test]
    fn the_table_is_sorted_and_each_fault_has_a_place() {
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
    fn the_path_with_a_fault_is_valid() {
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
    fn invalid_values_are_refused_with_a_message() {
        let error = find("gremlins").expect_err("no such fault").to_string();
        assert!(error.contains("gremlins") && error.contains("random-loss"), "{error}");
        let loss = find("random-loss").expect("it is there");
        let error = loss.value(Site::Server, None).expect_err("of the path").to_string();
        assert!(error.contains("random-loss") && error.contains("path"), "{error}");
        let error = loss.value(Site::Path, Some("plenty")).expect_err("no number").to_string();
        assert!(error.contains("`plenty`") && error.contains("1%"), "{error}");
        let error = find("sack-off").expect("there").value(Site::Client, Some("7")).expect_err("none").to_string();
        assert!(error.contains("sack-off"), "{error}");
    }
}
