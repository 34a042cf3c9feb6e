//! The table of the figures that runs are listed with: name, unit, which way is better, and how the figures of each load are read.

use crate::measure::{tcp, udp};
use narrows_model::load::udp::report::{ReceivedTotal, UdpFlowSummary};
use narrows_model::run::campaign::Better::{self, Higher, Lower};
use narrows_model::run::history::Headline;
use narrows_model::run::measure::{EndCpu, FlowSummary};
use narrows_model::words::figures::float;
use narrows_model::{Distribution, Flow, Run, TcpPlan, UdpPlan, Unit};

/// A figure of the table.
#[derive(Debug)]
pub struct Figure {
    /// Its name; in a run a direction, a goal or a size may follow: `goodput up`.
    pub name: &'static str,
    pub unit: Unit,
    /// Which way it is better; `None` where neither is.
    pub better: Option<Better>,
    pub about: &'static str,
}

macro_rules! figures {
    ($($id:ident: $name:literal, $unit:ident, $better:expr, $about:literal;)*) => {
        $(pub const $id: Figure = Figure { name: $name, unit: Unit::$unit, better: $better, about: $about };)*
        pub const ALL: &[Figure] = &[$($id),*];
    };
}

figures! {
    GOODPUT: "goodput", BitsPerSecond, Some(Higher), "payload that the receiving program got";
    SENT: "sent", BitsPerSecond, None, "payload that a UDP sender's socket took";
    LOSS: "loss", Fraction, Some(Lower), "lost of all that should have arrived; of search at the bound found";
    JITTER: "jitter", Microseconds, Some(Lower), "jitter of UDP (RFC 3550) at the end";
    DELAY_VARIATION: "p99 delay variation", Microseconds, Some(Lower), "one-way delay of UDP above its minimum";
    REORDERED: "reordered", Count, Some(Lower), "datagrams that arrived after a later one";
    DUPLICATED: "duplicated", Count, Some(Lower), "further copies of datagrams";
    RETRANSMITS: "retransmits", Count, Some(Lower), "segments that the TCP sender retransmitted after the omitted seconds";
    MIN_RTT: "min RTT", Microseconds, Some(Lower), "smallest RTT that the TCP sender saw";
    MEAN_RTT: "mean RTT", Microseconds, Some(Lower), "mean of the TCP sender's smoothed RTT during the load";
    RTT: "RTT", Microseconds, Some(Lower), "smoothed RTT of TCP at the end; of stamp and trace the median";
    P99_RTT: "p99 RTT", Microseconds, Some(Lower), "of stamp: 99 of 100 round trips are not above it";
    IDLE_RTT: "idle RTT", Microseconds, Some(Lower), "median RTT before the load of a diagnosis";
    LOADED_RTT: "loaded RTT", Microseconds, Some(Lower), "median smoothed RTT during the load of a diagnosis";
    CAPACITY: "capacity", BitsPerSecond, Some(Higher), "capacity of the path by its profile";
    P50: "p50 latency", Microseconds, Some(Lower), "median latency of transactions (rr, crr) or frames; of responsiveness idle and working";
    P95: "p95 latency", Microseconds, Some(Lower), "95 of 100 are not above it";
    P99: "p99 latency", Microseconds, Some(Lower), "99 of 100 are not above it";
    MIN: "min latency", Microseconds, Some(Lower), "smallest latency";
    MEAN: "mean latency", Microseconds, Some(Lower), "mean latency";
    MAX: "max latency", Microseconds, Some(Lower), "largest latency";
    TRANSACTIONS: "transactions", Number, Some(Higher), "transactions per second; of crr connections per second";
    FAILURES: "failures", Count, Some(Lower), "requests without a response";
    CONNECT: "p50 connect", Microseconds, Some(Lower), "median time to connect";
    CLIENT_CPU: "client busy cores", Number, Some(Lower), "busy CPU cores of the client's host during the load";
    SERVER_CPU: "server busy cores", Number, Some(Lower), "busy CPU cores of the server's host during the load";
    LOWER: "lower bound", BitsPerSecond, Some(Higher), "highest load that passes a goal of search";
    UPPER: "upper bound", BitsPerSecond, Some(Higher), "lowest load that fails a goal of search";
    FORWARDED: "conditional throughput", BitsPerSecond, Some(Higher), "rate to expect at the bound that search found";
    LOSSLESS: "lossless", BitsPerSecond, Some(Higher), "highest lossless rate of a size in a sweep";
    FRAMES_SENT: "sent", Number, None, "frames per second that left";
    FRAMES_RECEIVED: "received", Number, Some(Higher), "frames per second that arrived";
    THROUGHPUT: "throughput", Number, Some(Higher), "throughput of a frame size in frames per second (rfc2544)";
    RPM: "RPM", Number, Some(Higher), "round trips per minute under load (responsiveness)";
    HOPS: "hops", Number, None, "hops of a trace";
    MTU: "path MTU", Bytes, Some(Higher), "path MTU of a trace";
}

impl Figure {
    /// Its value in a run; `of` says whose it is, or nothing.
    pub fn at(&self, of: impl std::fmt::Display, value: f64) -> Headline {
        Headline::new(format!("{} {of}", self.name).trim_end(), value, self.unit)
    }
}

/// The figure of the table that a run's figure is; `None` for names of users, sizes and other programs.
pub fn known(name: &str, unit: Unit) -> Option<&'static Figure> {
    let begins = |it: &&Figure| name.strip_prefix(it.name).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    let ends = |it: &&Figure| name.strip_suffix(it.name).is_some_and(|rest| rest.ends_with(' '));
    let of_unit = || ALL.iter().filter(move |it| it.unit == unit);
    of_unit().find(begins).or_else(|| of_unit().find(ends))
}

/// Which way a figure of a run is better: by the table, else by its unit.
pub fn better(name: &str, unit: Unit) -> Option<Better> {
    known(name, unit).map_or_else(
        || match unit {
            Unit::BitsPerSecond => Some(Higher),
            Unit::Microseconds | Unit::Fraction => Some(Lower),
            _ => None,
        },
        |it| it.better,
    )
}

/// The table for a manual page, one figure per line.
pub fn help() -> String {
    let line = |it: &Figure| {
        let better = match it.better {
            Some(Higher) => " (higher is better)",
            Some(Lower) => " (lower is better)",
            None => "",
        };
        format!("\n- {}: {}{better}", it.name, it.about)
    };
    ALL.iter().map(line).collect()
}

/// How a figure is read.
pub(crate) type Read<T> = (&'static Figure, fn(&T) -> Option<f64>);

pub(crate) const TCP: &[Read<FlowSummary>] = &[
    (&GOODPUT, |it| Some(it.total.goodput_bps)),
    (&RETRANSMITS, |it| it.total.columns.retransmits.map(float)),
    (&RTT, |it| it.total.columns.rtt_us.map(float)),
    (&MIN_RTT, |it| it.min_rtt_us.map(float)),
    (&MEAN_RTT, |it| it.mean_rtt_us),
];

const UDP: &[Read<UdpFlowSummary>] = &[
    (&GOODPUT, |it| Some(received(it)?.bps)),
    (&LOSS, |it| received(it)?.loss),
    (&SENT, |it| Some(it.total.sent.as_ref()?.bps)),
    (&JITTER, |it| Some(received(it)?.jitter_ns / 1e3)),
    (&REORDERED, |it| Some(float(received(it)?.reordered))),
    (&DUPLICATED, |it| Some(float(received(it)?.duplicates))),
    (&DELAY_VARIATION, |it| us(received(it)?.delay_variation_ns.as_ref()?, |of| float(of.p99))),
];

fn received(of: &UdpFlowSummary) -> Option<&ReceivedTotal> {
    of.total.received.as_ref()
}

/// A value of a distribution in microseconds; `None` of an empty one.
pub(crate) fn us(of: &Distribution, value: impl Fn(&Distribution) -> f64) -> Option<f64> {
    (of.count > 0).then(|| value(of) / 1e3)
}

/// Each figure of a table for each of `all`, which have a word each.
pub(crate) fn read<T, W: std::fmt::Display>(table: &[Read<T>], all: &[T], word: impl Fn(&T) -> W) -> Vec<Headline> {
    let of = |(figure, value): &Read<T>| -> Vec<Headline> {
        all.iter().filter_map(|it| Some(figure.at(word(it), value(it)?))).collect()
    };
    table.iter().flat_map(of).collect()
}

/// What a trial cost both ends.
pub(crate) fn cost<'a>(ends: [&'a Option<EndCpu>; 2], of: &'a str) -> impl Iterator<Item = Headline> + 'a {
    let cores = move |(figure, end): (&Figure, &Option<EndCpu>)| Some(figure.at(of, end.as_ref()?.busy_cores?));
    [&CLIENT_CPU, &SERVER_CPU].into_iter().zip(ends).filter_map(cores)
}

/// Of a `measure tcp`.
pub fn tcp(run: &Run) -> Vec<Headline> {
    tcp::build(run).map(|report| of_tcp(&report.summary)).unwrap_or_default()
}

fn of_tcp(summary: &narrows_model::run::measure::SummaryView) -> Vec<Headline> {
    let mut figures = read(TCP, &summary.flows, |it| it.total.flow.direction());
    figures.extend(cost([&summary.client, &summary.server], ""));
    figures
}

/// Of a `measure udp`.
pub fn udp(run: &Run) -> Vec<Headline> {
    udp::build(run).map(|report| of_udp(&report.summary)).unwrap_or_default()
}

fn of_udp(summary: &narrows_model::load::udp::report::UdpSummary) -> Vec<Headline> {
    let mut figures = read(UDP, &summary.flows, |it| it.flow.direction());
    figures.extend(cost([&summary.client, &summary.server], ""));
    figures
}

/// Of the first load of a diagnosis.
pub(crate) fn baseline(run: &Run) -> Vec<Headline> {
    let tcp = run.baseline::<TcpPlan>(0).map(|trial| of_tcp(&tcp::summary(trial)));
    let udp = || run.baseline::<UdpPlan>(0).map(|trial| of_udp(&udp::summary(trial)));
    tcp.or_else(udp).unwrap_or_default()
}

/// The direction of a flow.
pub(crate) fn way(flow: Flow) -> &'static str {
    flow.direction().word()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_of_a_run_is_found_in_the_table_with_the_way_in_which_it_is_better() {
        let better_is = |name, unit| better(name, unit);
        assert_eq!(better_is("goodput up", Unit::BitsPerSecond), Some(Higher));
        assert_eq!(better_is("retransmits down", Unit::Count), Some(Lower));
        assert_eq!(better_is("client busy cores idle", Unit::Number), Some(Lower));
        assert_eq!(better_is("down RPM", Unit::Number), Some(Higher));
        assert_eq!(better_is("hops", Unit::Number), None);
        assert_eq!(known("sent", Unit::Number).unwrap().about, FRAMES_SENT.about);
        assert_eq!(known("min RTT up", Unit::Microseconds).unwrap().name, "min RTT");
        assert!(known("lost", Unit::Fraction).is_none() && known("RTTs", Unit::Microseconds).is_none());
        assert_eq!(better_is("TCP up 64 B", Unit::BitsPerSecond), Some(Higher), "by its unit");
        assert_eq!(better_is("value", Unit::Number), None);
    }

    #[test]
    fn no_figure_is_in_the_table_twice() {
        for (n, it) in ALL.iter().enumerate() {
            assert!(ALL[..n].iter().all(|other| (other.name, other.unit) != (it.name, it.unit)), "{}", it.name);
        }
    }
}
