//! The hazards. One that compares facts is an entry in `comparisons.rs`; one with a rule of its own is a file and a line.

mod comparisons;
mod tcp_buffers;

use super::Rule;

/// Declares the files and lists their rules.
macro_rules! hazards {
    ($($module:ident),* $(,)?) => {
        $(mod $module;)*
        /// The hazards with a rule of their own.
        const OWN: &[&Rule] = &[&tcp_buffers::RECEIVE, &tcp_buffers::SEND, $(&$module::HAZARD),*];
    };
}

hazards! {
    autonegotiation_off,
    big_tcp_off,
    channels_few,
    conntrack_nearly_full,
    interrupts_on_one_core,
    iommu_strict,
    layer_mtu,
    offloads_off,
    path_mtu_below_interface,
    pcie_narrow,
    taps_present,
    txqueuelen_unusual,
}

pub fn all() -> impl Iterator<Item = &'static Rule> {
    comparisons::COMPARISONS.iter().chain(OWN.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::all;
    use narrows_model::host::side_by_side::ROWS;
    use std::collections::BTreeSet;

    #[test]
    fn each_has_its_own_id_its_words_and_a_row() {
        let ids: BTreeSet<_> = all().map(|rule| rule.id).collect();
        assert_eq!(ids.len(), all().count());
        for rule in all() {
            assert!(!rule.needs.is_empty(), "{}", rule.id);
            for words in [rule.matters, rule.harmless] {
                assert!(words.ends_with('.') && words.len() > 10, "{}: {words}", rule.id);
            }
            assert!(ROWS.iter().any(|row| row.key() == rule.key.name), "{} marks no row", rule.id);
        }
    }
}
