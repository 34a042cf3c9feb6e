//! Current rate, peak and total from cumulative counters.

use narrows_model::Place;
use narrows_model::host::watch::{InterfaceSample, WatchEnd, WatchRow, WatchTraffic, WatchView};
use narrows_model::words::figures::float;
use std::collections::BTreeMap;

/// Maximum number of interfaces per end: data from the other end has a limit.
const MAX_INTERFACES: usize = 256;

/// The counters of both ends so far.
#[derive(Debug, Clone, Default)]
pub struct Accumulator {
    ends: BTreeMap<Place, End>,
}

#[derive(Debug, Clone, Default)]
struct End {
    host: String,
    silent: Option<String>,
    first_us: Option<u64>,
    newest_us: u64,
    interfaces: BTreeMap<String, Interface>,
}

#[derive(Debug, Clone)]
struct Interface {
    newest: InterfaceSample,
    rx: WatchTraffic,
    tx: WatchTraffic,
}

/// The counters of one direction: bytes, packets, drops.
type Counters = [u64; 3];

const fn rx(sample: &InterfaceSample) -> Counters {
    [sample.rx_bytes, sample.rx_packets, sample.rx_dropped]
}

const fn tx(sample: &InterfaceSample) -> Counters {
    [sample.tx_bytes, sample.tx_packets, sample.tx_dropped]
}

impl Accumulator {
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes all interfaces of one end at one instant. An interface that is gone is forgotten. One whose counters went
    /// backwards was created again, and starts over with its totals kept.
    pub fn push(&mut self, place: Place, host: &str, samples: &[InterfaceSample]) {
        let end = self.ends.entry(place).or_default();
        host.clone_into(&mut end.host);
        end.silent = None;
        let samples = &samples[..samples.len().min(MAX_INTERFACES)];
        if let Some(at_us) = samples.iter().map(|sample| sample.at_us).max() {
            end.first_us.get_or_insert(at_us);
            end.newest_us = end.newest_us.max(at_us);
        }
        end.interfaces.retain(|name, _| samples.iter().any(|sample| sample.name == *name));
        for sample in samples {
            match end.interfaces.get_mut(&sample.name) {
                Some(known) => known.take(sample),
                None => {
                    let (rx, tx) = (WatchTraffic::default(), WatchTraffic::default());
                    end.interfaces.insert(sample.name.clone(), Interface { newest: sample.clone(), rx, tx });
                }
            }
        }
    }

    /// Notes why an end gives no counters: its rates become unknown, its peaks and totals stay.
    pub fn silent(&mut self, place: Place, why: &str) {
        let end = self.ends.entry(place).or_default();
        end.silent = Some(why.to_owned());
        for interface in end.interfaces.values_mut() {
            for way in [&mut interface.rx, &mut interface.tx] {
                (way.now_bps, way.now_pps) = (None, None);
            }
        }
    }

    /// The view of both ends.
    pub fn view(&self) -> WatchView {
        let watched = |end: &End| end.newest_us.saturating_sub(end.first_us.unwrap_or(end.newest_us));
        WatchView {
            elapsed_s: float(self.ends.values().map(watched).max().unwrap_or(0)) / 1e6,
            ends: self
                .ends
                .iter()
                .map(|(place, end)| WatchEnd {
                    place: *place,
                    host: end.host.clone(),
                    interfaces: end
                        .interfaces
                        .iter()
                        .map(|(name, it)| WatchRow { name: name.clone(), rx: it.rx, tx: it.tx })
                        .collect(),
                    silent: end.silent.clone(),
                })
                .collect(),
        }
    }
}

impl Interface {
    fn take(&mut self, sample: &InterfaceSample) {
        let Some(us) = sample.at_us.checked_sub(self.newest.at_us).filter(|us| *us > 0) else { return };
        let seconds = float(us) / 1e6;
        add(&mut self.rx, rx(&self.newest), rx(sample), seconds);
        add(&mut self.tx, tx(&self.newest), tx(sample), seconds);
        self.newest = sample.clone();
    }
}

fn add(way: &mut WatchTraffic, before: Counters, after: Counters, seconds: f64) {
    let passed = |at: usize| after[at].checked_sub(before[at]);
    let (Some(bytes), Some(packets)) = (passed(0), passed(1)) else {
        (way.now_bps, way.now_pps) = (None, None);
        return;
    };
    let (bps, pps) = (float(bytes) * 8.0 / seconds, float(packets) / seconds);
    (way.now_bps, way.now_pps) = (Some(bps), Some(pps));
    way.peak_bps = Some(way.peak_bps.map_or(bps, |peak| peak.max(bps)));
    way.peak_pps = Some(way.peak_pps.map_or(pps, |peak| peak.max(pps)));
    way.total_bytes = way.total_bytes.saturating_add(bytes);
    way.total_packets = way.total_packets.saturating_add(packets);
    way.dropped = way.dropped.saturating_add(passed(2).unwrap_or(0));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_ms: u64, rx_bytes: u64) -> InterfaceSample {
        InterfaceSample {
            name: "eth0".into(),
            at_us: at_ms * 1000,
            rx_bytes,
            rx_packets: rx_bytes / 1000,
            rx_dropped: rx_bytes / 1_000_000,
            ..InterfaceSample::default()
        }
    }

    fn rx_of(accumulator: &Accumulator) -> WatchTraffic {
        accumulator.view().ends[0].interfaces[0].rx
    }

    #[test]
    fn now_peak_and_total() {
        let mut it = Accumulator::new();
        it.push(Place::Client, "a", &[sample(5_000, 7_000_000)]);
        assert_eq!(rx_of(&it), WatchTraffic::default(), "one sample has no rate");
        it.push(Place::Client, "a", &[sample(6_000, 9_000_000)]);
        it.push(Place::Client, "a", &[sample(6_500, 9_500_000)]);
        let rx = rx_of(&it);
        assert_eq!((rx.now_bps, rx.peak_bps), (Some(8e6), Some(16e6)));
        assert_eq!((rx.now_pps, rx.peak_pps), (Some(1_000.0), Some(2_000.0)));
        assert_eq!((rx.total_bytes, rx.total_packets, rx.dropped), (2_500_000, 2_500, 2));
        assert!((it.view().elapsed_s - 1.5).abs() < 1e-9);
    }

    #[test]
    fn counters_that_go_backwards_give_no_rate_and_the_totals_stay() {
        let mut it = Accumulator::new();
        for (at, bytes) in [(0, 0), (1_000, 1_000_000), (2_000, 500)] {
            it.push(Place::Server, "b", &[sample(at, bytes)]);
        }
        assert_eq!((rx_of(&it).now_bps, rx_of(&it).total_bytes), (None, 1_000_000));
        it.push(Place::Server, "b", &[sample(3_000, 1_500)]);
        assert_eq!((rx_of(&it).now_bps, rx_of(&it).total_bytes), (Some(8_000.0), 1_001_000));
        it.push(Place::Server, "b", &[sample(3_000, 9_999)]);
        assert_eq!(rx_of(&it).total_bytes, 1_001_000, "no time passed");
        it.silent(Place::Server, "it does not answer");
        assert_eq!((rx_of(&it).now_bps, rx_of(&it).peak_bps), (None, Some(8e6)));
        it.push(Place::Server, "b", &[]);
        assert!(it.view().ends[0].interfaces.is_empty(), "gone");
    }

    #[test]
    fn the_other_end_cannot_fill_the_memory() {
        let mut it = Accumulator::new();
        let many: Vec<_> = (0..10_000).map(|n| InterfaceSample { name: n.to_string(), ..sample(0, 0) }).collect();
        it.push(Place::Server, "b", &many);
        assert_eq!(it.view().ends[0].interfaces.len(), MAX_INTERFACES);
    }
}
