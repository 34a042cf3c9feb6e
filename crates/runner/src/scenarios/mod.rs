//! The scenario suite: every injectable cause and healthy paths, run in the lab and graded against the injected fault.

mod draw;
mod drawn;
mod judge;
mod run;
mod scenario;

pub use draw::{Drawn, DrawnPart, draw};
pub use drawn::{DrawnResult, Interventions, Outcome, outcome, table};
pub use judge::{Diagnosed, Grade, Tally, grade};
pub use run::{again, drawn_again, make_directory, run, run_drawn};
pub use scenario::{Case, CaseFault, ScenarioError, SeatWord, cases};

/// The table: one file, one line.
macro_rules! scenarios {
    ($($name:literal),* $(,)?) => {
        /// Every scenario that comes with the program: its name and its text.
        pub const TABLE: &[(&str, &str)] = &[$(($name, include_str!(concat!("../../scenarios/", $name, ".toml")))),*];
    };
}

scenarios! {
    "app-core-saturated-receiver",
    "app-core-saturated-sender",
    "app-small-writes",
    "bpf-programs",
    "checksum-errors",
    "competing-traffic",
    "congestion-control",
    "cpu-contention",
    "filter-drop",
    "healthy-1ms",
    "healthy-80ms",
    "healthy-at-capacity",
    "healthy-bbr",
    "healthy-buffers-above",
    "healthy-busy-cpu",
    "healthy-deep-queue",
    "healthy-four-streams",
    "healthy-idle-path",
    "healthy-ipv6",
    "healthy-ipv6-long",
    "healthy-pacing-above",
    "healthy-reno",
    "healthy-short-queue",
    "healthy-slow-link",
    "healthy-small-transfer",
    "healthy-small-writes",
    "healthy-udp",
    "healthy-udp-busy-cpu",
    "healthy-udp-full",
    "healthy-udp-ipv6",
    "healthy-udp-slow",
    "healthy-writer-above",
    "heavy-ruleset",
    "ip-fragmentation",
    "link-speed",
    "local-shaper",
    "mtu-black-hole",
    "mtu-mismatch",
    "offloads-off",
    "pacing-cap",
    "path-policer",
    "path-shaper",
    "qdisc-drop",
    "random-loss",
    "receive-autotuning-off",
    "receiver-app-slow",
    "reordering",
    "reverse-path-congested",
    "sack-off",
    "send-filter",
    "sender-app-slow",
    "softirq-core-saturated",
    "softnet-backlog",
    "tcp-receive-buffer-fixed",
    "tcp-receive-window",
    "tcp-receive-window-mild",
    "tcp-send-buffer",
    "tcp-send-buffer-fixed",
    "tester-limited",
    "udp-path-capacity",
    "udp-path-policer",
    "udp-qdisc-drop",
    "udp-random-loss",
    "udp-receive-buffer",
    "udp-send-queue",
    "window-scaling-off-receiver",
    "window-scaling-off-sender",
}

/// The cases of all scenarios that come with the program, in the order of the table.
pub fn all_cases() -> Result<Vec<Case>, ScenarioError> {
    TABLE.iter().map(|(name, text)| cases(name, text)).collect::<Result<Vec<_>, _>>().map(|cases| cases.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_of_the_table_reads_and_there_are_enough_healthy_ones() {
        let cases = all_cases().expect("sound scenarios");
        assert_eq!(
            cases
                .iter()
                .filter(|case| case.truth.is_none())
                .map(|case| &case.scenario)
                .collect::<std::collections::BTreeSet<_>>()
                .len(),
            24
        );
    }
}
