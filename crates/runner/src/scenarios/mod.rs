//! The scenario suite: every injectable cause and healthy paths, run in the lab and graded against the injected fault.

mod draw;
mod drawn;
mod judge;
mod line;
mod run;
mod scenario;

pub use draw::{Drawn, DrawnPart, draw};
pub use drawn::{DrawnResult, Interventions, Outcome, outcome, table};
pub use judge::{Diagnosed, Grade, Tally, grade};
pub use line::{CaseLine, NamedCause};
pub use run::{again, drawn_again, make_directory, run, run_drawn};
pub use scenario::{Case, CaseFault, ScenarioError, SeatWord, cases};

/// A table: one file, one line.
macro_rules! scenarios {
    ($(#[$about:meta])* $table:ident: $($name:literal),* $(,)?) => {
        $(#[$about])*
        pub const $table: &[(&str, &str)] = &[$(($name, include_str!(concat!("../../scenarios/", $name, ".toml")))),*];
    };
}

scenarios! {
    /// The scenarios of each cause, and healthy paths: their names and texts.
    TABLE:
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

scenarios! {
    /// Paths as the field has them: early losses of a queue, bursts of loss, outages, buckets, narrow ways back, pairs of limits.
    FIELD:
    "field-black-hole",
    "field-codel-100m",
    "field-codel-40m-reno",
    "field-codel-bbr",
    "field-dsl",
    "field-far",
    "field-gilbert",
    "field-host-shaper",
    "field-idle-link",
    "field-loss-and-buffer",
    "field-outage",
    "field-policer",
    "field-policer-bbr",
    "field-reverse-narrow",
    "field-shallow-reno",
    "field-shaper-bucket",
    "field-slow-reader",
    "field-small-buffer",
    "field-udp-codel-over",
    "field-udp-codel-under",
    "field-udp-gilbert",
    "field-udp-policer",
    "field-window-then-shaper",
}

/// Named scenarios.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suite {
    Causes,
    Field,
}

impl Suite {
    const fn table(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Causes => TABLE,
            Self::Field => FIELD,
        }
    }

    /// The cases of its scenarios, in the order of its table.
    pub fn cases(self) -> Result<Vec<Case>, ScenarioError> {
        let all = self.table().iter().map(|(name, text)| cases(name, text));
        all.collect::<Result<Vec<_>, _>>().map(|cases| cases.concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_of_the_table_reads_and_there_are_enough_healthy_ones() {
        let field = Suite::Field.cases().expect("sound scenarios");
        assert!(field.iter().filter(|case| case.truth.is_none()).count() >= 7, "healthy ones among them");
        let cases = Suite::Causes.cases().expect("sound scenarios");
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
