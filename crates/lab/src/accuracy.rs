//! Accuracy of the emulator: a table of requested against measured values, taken with plain sockets.

use crate::probe::{self, Datagrams};
use crate::{Host, Lab, LabSpec, Result};
use narrows_model::lab::Impairment;
use narrows_model::{Family, Flow, words::units};
use narrows_sys::rtnl::Links;
use std::time::Duration;

/// One property of the emulated path and its measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What was measured, as a phrase.
    pub what: String,
    /// The requested value, in `unit`.
    pub requested: f64,
    /// The measured value, in `unit`.
    pub measured: f64,
    /// The unit of both.
    pub unit: &'static str,
    /// The tolerance, as a phrase.
    pub tolerance: &'static str,
    /// Whether the measured value is within the tolerance.
    pub met: bool,
}

/// Receives the rows as they are measured.
pub trait Watch {
    /// A row begins; `what` describes it. It takes up to a minute.
    fn begins(&mut self, what: &str);

    /// A row is complete; returning false ends the run.
    fn row(&mut self, row: &Row) -> bool;
}

/// Bytes on the Ethernet wire of an IP packet of 1500 bytes, with preamble, header, FCS and gap.
const WIRE_BYTES: f64 = 1538.0;

fn lab(change: impl FnOnce(&mut LabSpec)) -> Result<Lab> {
    let mut spec = LabSpec { name: "verify".to_owned(), ..LabSpec::default() };
    change(&mut spec);
    Lab::up(&spec)
}

type Measure = Box<dyn Fn() -> Result<Row>>;

/// Measures every property and passes on each row as soon as it is complete. Takes about a minute.
/// Errors: a lab cannot be built on this machine; a probe's socket failed.
pub fn accuracy(watch: &mut dyn Watch) -> Result<()> {
    let mut all: Vec<(String, Measure)> = Vec::new();
    for rate in [10_000_000_u64, 100_000_000, 1_000_000_000] {
        for flow in [Flow::Up, Flow::Down] {
            let what = format!("rate {}, {}", units::bps(rate as f64), flow.direction());
            all.push((what, Box::new(move || rate_row(rate, flow))));
        }
    }
    for round_trip_ms in [1_u32, 35, 100] {
        for family in [Family::Ipv4, Family::Ipv6] {
            let what = format!("round trip {round_trip_ms} ms, {family:?}");
            all.push((what, Box::new(move || round_trip_row(round_trip_ms, family))));
        }
    }
    all.push(("loss 1 %".to_owned(), Box::new(loss_row)));
    all.push(("queue of packets".to_owned(), Box::new(|| queue_row(20, 0))));
    all.push(("queue of bytes".to_owned(), Box::new(|| queue_row(0, 20))));
    for family in [Family::Ipv4, Family::Ipv6] {
        all.push((format!("TCP, delay only, {family:?}"), Box::new(move || speed_row(family))));
    }
    all.push(("TCP at 1 Gbit/s".to_owned(), Box::new(gigabit_row)));
    for (what, measure) in all {
        watch.begins(&what);
        if !watch.row(&measure()?) {
            break;
        }
    }
    Ok(())
}

fn ends(lab: &Lab, flow: Flow) -> Result<(&Host, &Host)> {
    Ok((lab.host(flow.sender().word())?, lab.host(flow.receiver().word())?))
}

fn rate_row(rate: u64, flow: Flow) -> Result<Row> {
    let lab = lab(|spec| {
        spec.up.rate_bps = rate;
        spec.down.rate_bps = rate;
    })?;
    let (from, to) = ends(&lab, flow)?;
    // A third more than the rate, for 2 s.
    let per_call = if rate < 100_000_000 { 1 } else { 20 };
    let every = Duration::from_secs_f64(f64::from(per_call) * WIRE_BYTES * 8.0 / rate as f64 * 0.75);
    let calls = (2.0 / every.as_secs_f64()) as u64;
    let load = Datagrams { calls, per_call, bytes: 1472, every };
    let arrivals = probe::datagrams(from, to, Family::Ipv4, load, Duration::from_millis(500))?;
    let bits = arrivals.count.saturating_sub(1) as f64 * WIRE_BYTES * 8.0;
    let measured = bits / arrivals.time.as_secs_f64();
    let requested = rate as f64;
    let met = (measured / requested - 1.0).abs() < 0.01;
    let what = format!("rate {}, {}", units::bps(requested), flow.direction());
    Ok(Row { what, requested: requested / 1e6, measured: measured / 1e6, unit: "Mbit/s", tolerance: "within 1 %", met })
}

fn round_trip_row(round_trip_ms: u32, family: Family) -> Result<Row> {
    let lab = lab(|spec| {
        spec.up.delay_us = u64::from(round_trip_ms) * 500;
        spec.down.delay_us = spec.up.delay_us;
    })?;
    let (from, to) = ends(&lab, Flow::Up)?;
    let count = if round_trip_ms > 50 { 30 } else { 100 };
    let times = probe::round_trips(from, to, family, count)?;
    let at = |tenths: usize| times.get(times.len() * tenths / 10).copied().unwrap_or(f64::NAN) / 1e3;
    let measured = at(5);
    let requested = f64::from(round_trip_ms);
    let what = format!("round trip {round_trip_ms} ms, {family:?}, median (9 of 10: {:.3})", at(9));
    Ok(Row {
        what,
        requested,
        measured,
        unit: "ms",
        tolerance: "within 0.3 ms",
        met: (measured - requested).abs() < 0.3,
    })
}

fn loss_row() -> Result<Row> {
    let lab = lab(|spec| spec.up.loss = 0.01)?;
    let (from, to) = ends(&lab, Flow::Up)?;
    let count = |host: &Host| host.run(|| Links::open()?.get(host.device()));
    let (sent_before, received_before) = (count(from)??.tx_packets, count(to)??.rx_packets);
    // The interface counters are used, not the socket, whose buffer may overflow.
    let load = Datagrams { calls: 1_010_000, per_call: 1, bytes: 64, every: Duration::from_micros(6) };
    probe::datagrams(from, to, Family::Ipv4, load, Duration::from_millis(300))?;
    let (sent, received) = (count(from)??.tx_packets - sent_before, count(to)??.rx_packets - received_before);
    let measured = 100.0 * (1.0 - received as f64 / sent as f64);
    let what = format!("loss 1 % over {sent} packets");
    Ok(Row {
        what,
        requested: 1.0,
        measured,
        unit: "%",
        tolerance: "within 0.1 points",
        met: (measured - 1.0).abs() < 0.1,
    })
}

/// A burst of ten times the queue into a path so slow that nothing leaves meanwhile.
fn queue_row(packets: u64, packets_as_bytes: u64) -> Result<Row> {
    let lab = lab(|spec| {
        spec.up.rate_bps = 250_000;
        spec.up.queue_packets = packets;
        spec.up.queue_bytes = packets_as_bytes * 1538;
    })?;
    let (from, to) = ends(&lab, Flow::Up)?;
    let limit = packets.max(packets_as_bytes);
    let load = Datagrams { calls: 10 * limit, per_call: 1, bytes: 1472, every: Duration::ZERO };
    let arrivals = probe::datagrams(from, to, Family::Ipv4, load, Duration::from_millis(500))?;
    let (requested, measured) = (limit as f64, arrivals.count as f64);
    let what = if packets > 0 {
        format!("queue of {limit} packets")
    } else {
        format!("queue of {} bytes", packets_as_bytes * 1538)
    };
    Ok(Row { what, requested, measured, unit: "packets", tolerance: "exact", met: arrivals.count == limit })
}

fn speed_row(family: Family) -> Result<Row> {
    let lab = lab(|spec| {
        spec.up.delay_us = 500;
        spec.down.delay_us = 500;
    })?;
    let (from, to) = ends(&lab, Flow::Up)?;
    let stream = probe::tcp(from, to, family, Duration::from_secs(1), Duration::from_secs(4))?;
    let measured = stream.goodput_bps() / 1e9;
    let what = format!("TCP, one stream, 1 ms, delay only, {family:?}");
    Ok(Row { what, requested: 6.0, measured, unit: "Gbit/s", tolerance: "at least", met: measured >= 6.0 })
}

fn gigabit_row() -> Result<Row> {
    let path = Impairment { rate_bps: 1_000_000_000, delay_us: 500, ..Impairment::default() };
    let lab = lab(|spec| {
        spec.up = path.clone();
        spec.down = path;
    })?;
    let (from, to) = ends(&lab, Flow::Up)?;
    let stream = probe::tcp(from, to, Family::Ipv4, Duration::from_secs(1), Duration::from_secs(4))?;
    let measured = stream.goodput_bps() / 1e6;
    let requested = 1000.0 * 1448.0 / WIRE_BYTES;
    let met = (measured / requested - 1.0).abs() < 0.01;
    let what = "TCP goodput at 1 Gbit/s, 1 ms".to_owned();
    Ok(Row { what, requested, measured, unit: "Mbit/s", tolerance: "within 1 %", met })
}
