//! The causes of a goodput of TCP: one file each, one line each in the table.
//!
//! A cause's file holds its documentation (what it is, how it shows, what it is mistaken for and what separates them,
//! the fix, the source), its rule and its tests.

use crate::evidence::tcp::TcpEvidence;
use crate::judge::Cause;

/// The table drives the diagnosis, `narrows list causes` and the manual.
macro_rules! causes {
    ($($module:ident),* $(,)?) => {
        $(pub mod $module;)*
        pub static TABLE: &[&Cause<TcpEvidence>] = &[$(&$module::CAUSE),*];
    };
}

causes! {
    app_core_saturated,
    app_small_writes,
    bond_reordering,
    bpf_programs,
    capacity_changed,
    cgroup_cpu_throttle,
    cgroup_memory,
    checksum_errors,
    cloud_allowance,
    competing_traffic,
    congestion_control,
    conntrack_full,
    cpu_contention,
    cpu_frequency,
    device_drop,
    duplex_mismatch,
    ecn_marking,
    filter_drop,
    flow_limit,
    heavy_ruleset,
    host_queue_delay,
    idle_restart,
    interrupt_coalescing,
    link_errors,
    link_speed,
    local_shaper,
    mtu_black_hole,
    mtu_mismatch,
    nagle_delayed_ack,
    nic_ring_overrun,
    numa_remote,
    offloads_off,
    pacing_cap,
    path_capacity,
    path_member,
    path_outage,
    path_policer,
    path_shaper,
    pause_frames,
    pcie_width,
    qdisc_drop,
    random_loss,
    receive_autotuning_off,
    receiver_app_slow,
    reordering,
    reverse_path_congested,
    rp_filter,
    sack_off,
    sender_app_slow,
    single_queue,
    softirq_core_saturated,
    softnet_backlog,
    stale_metrics,
    swapping,
    tcp_limit_output,
    tcp_memory_pressure,
    tcp_proxy,
    tcp_receive_buffer_fixed,
    tcp_receive_window,
    tcp_send_buffer,
    tcp_send_buffer_fixed,
    tester_limited,
    vm_steal,
    wifi_rate,
    wifi_retries,
    window_scaling_off,
}
