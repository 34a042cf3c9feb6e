//! The hazards: one file each, one line each in the table.

mod buffers;

use super::Rule;

/// The table drives the audit and the manual.
macro_rules! hazards {
    ($($module:ident),* $(,)?) => {
        $(mod $module;)*
        /// Every hazard.
        pub static TABLE: &[&Rule] = &[$(&$module::HAZARD),*];
    };
}

hazards! {
    autonegotiation_off,
    channels_few,
    congestion_control_differs,
    conntrack_nearly_full,
    core_rmem_below_tcp,
    core_wmem_below_tcp,
    cpu_quota,
    governor_not_performance,
    half_duplex,
    link_below_maximum,
    metrics_saved,
    mtu_differs,
    offloads_off,
    path_mtu_below_interface,
    pcie_narrow,
    qdisc_shapes,
    receive_autotuning_off,
    receive_drops,
    receive_errors,
    receive_missed,
    rx_ring_small,
    sack_off,
    swap_in_use,
    taps_present,
    tcp_rmem_small,
    tcp_wmem_small,
    timestamps_off,
    tx_ring_small,
    txqueuelen_unusual,
    window_scaling_off,
}

#[cfg(test)]
mod tests {
    use super::TABLE;
    use narrows_model::host::side_by_side::ROWS;
    use std::collections::BTreeSet;

    #[test]
    fn each_has_its_own_id_its_words_and_a_row() {
        let ids: BTreeSet<_> = TABLE.iter().map(|rule| rule.id).collect();
        assert_eq!(ids.len(), TABLE.len());
        for rule in TABLE {
            assert!(!rule.needs.is_empty(), "{}", rule.id);
            for words in [rule.matters, rule.harmless] {
                assert!(words.ends_with('.') && words.len() > 10, "{}: {words}", rule.id);
            }
            assert!(ROWS.iter().any(|row| row.key() == rule.key), "{} marks no row", rule.id);
        }
    }
}
