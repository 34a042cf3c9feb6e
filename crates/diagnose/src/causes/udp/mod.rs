//! The causes of lost datagrams: one file each, one line each in the table. A file holds its documentation, its rule and
//! its tests.

use crate::evidence::udp::UdpEvidence;
use crate::judge::Cause;

/// The table drives the diagnosis, `narrows list causes` and the manual.
macro_rules! causes {
    ($($module:ident),* $(,)?) => {
        $(pub mod $module;)*
        pub static TABLE: &[&Cause<UdpEvidence>] = &[$(&$module::CAUSE),*];
    };
}

causes! {
    checksum_errors,
    conntrack_full,
    filter_drop,
    ip_fragmentation,
    nic_ring_overrun,
    path_capacity,
    path_member,
    path_outage,
    path_policer,
    path_shaper,
    qdisc_drop,
    random_loss,
    shallow_queue,
    small_datagrams,
    softnet_backlog,
    udp_memory,
    udp_receive_buffer,
    udp_send_queue,
}
