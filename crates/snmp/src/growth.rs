//! How much an interface's counters grew between two readings, and the counters of a hop derived from that.

use crate::counters::{Counter, PortCounters, SideCounters, Width};
use narrows_model::host::hop::{DropCount, HopCount};

/// The modulus of a 32-bit counter.
pub(crate) const WRAP: u64 = 1 << 32;
/// A sysUpTime above this is about to wrap (after 497 days), a day ahead.
const UP_TIME_WRAPS_ABOVE: u32 = u32::MAX - 24 * 3600 * 100;

/// One direction of an interface between two readings; `None` is what one of the two readings lacks, or what cannot be
/// derived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SideGrowth {
    pub unicast: Option<u64>,
    /// Multicast and broadcast frames: in a test with unicast frames these come from the device itself or its
    /// neighbours.
    pub others: Option<u64>,
    /// Bytes of all frames.
    pub octets: Option<u64>,
    pub discards: Option<u64>,
    /// Dropped for an error.
    pub errors: Option<u64>,
}

impl SideGrowth {
    /// All frames that were counted.
    pub fn frames(&self) -> Option<u64> {
        self.unicast.map(|unicast| unicast.saturating_add(self.others.unwrap_or(0)))
    }
}

/// An interface between two readings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Growth {
    pub interface: String,
    pub input: SideGrowth,
    pub output: SideGrowth,
    /// Why the counters are not usable, one sentence each: a restart, a 32-bit counter, one that decreased.
    pub trouble: Vec<String>,
}

impl Growth {
    /// From two readings of one interface.
    pub fn between(before: &PortCounters, after: &PortCounters) -> Self {
        let mut trouble = Vec::new();
        if is_restarted(before.up_time, after.up_time) {
            trouble.push("the device or its agent restarted between the samples: its counters were reset".to_owned());
        } else if before.discontinuity != after.discontinuity {
            trouble.push("its counters were reset between the samples (ifCounterDiscontinuityTime changed)".to_owned());
        }
        let anew = !trouble.is_empty();
        let input = side(&before.input, &after.input, anew, &mut trouble);
        let output = side(&before.output, &after.output, anew, &mut trouble);
        if before.width() == Some(Width::Bits32) || after.width() == Some(Width::Bits32) {
            let sides = [&after.input, &after.output].map(SideCounters::of_books);
            let narrow = sides.into_iter().flatten().find(|counter| counter.width() == Some(Width::Bits32));
            let object = narrow.map_or("its counter", Counter::object);
            trouble.push(format!(
                "{object} is a 32-bit counter that wraps at 4,294,967,296; it is not used for \
                    accounting"
            ));
        }
        Self { interface: after.interface.name.clone(), input, output, trouble }
    }
}

/// Whether the agent's clock, which counts hundredths of a second in 32 bits, went back and not past its end.
const fn is_restarted(before: u32, after: u32) -> bool {
    let wrapped = before > UP_TIME_WRAPS_ABOVE && after < u32::MAX - UP_TIME_WRAPS_ABOVE;
    after < before && !wrapped
}

fn side(before: &SideCounters, after: &SideCounters, anew: bool, trouble: &mut Vec<String>) -> SideGrowth {
    let mut grown = |before: &Counter, after: &Counter| if anew { None } else { grew(before, after, trouble) };
    let unicast = grown(&before.unicast, &after.unicast);
    let multicast = grown(&before.multicast, &after.multicast);
    let broadcast = grown(&before.broadcast, &after.broadcast);
    SideGrowth {
        unicast,
        others: multicast.zip(broadcast).map(|(multicast, broadcast)| multicast.saturating_add(broadcast)),
        octets: grown(&before.octets, &after.octets),
        discards: grown(&before.discards, &after.discards),
        errors: grown(&before.errors, &after.errors),
    }
}

/// The growth of one counter. A 32-bit counter is assumed to have wrapped at most once; more wraps cannot be detected.
fn grew(before: &Counter, after: &Counter, trouble: &mut Vec<String>) -> Option<u64> {
    let (from, to) = before.value().zip(after.value())?;
    match (after.width()?, before.width()?) {
        (Width::Bits32, Width::Bits32) => Some(to.wrapping_sub(from) % WRAP),
        (Width::Bits64, Width::Bits64) if to >= from => Some(to - from),
        (Width::Bits64, Width::Bits64) => {
            let object = after.object();
            trouble.push(if from < WRAP {
                format!("{object} decreased from {from} to {to}: it claims 64 bits but wraps at 4,294,967,296")
            } else {
                format!("{object} decreased from {from} to {to}")
            });
            None
        }
        _ => {
            trouble.push(format!("the agent answered {} with 64 bits and with 32 bits", after.object()));
            None
        }
    }
}

/// The counters of a hop, from the growth of its two interfaces: received frames of the first, sent frames of the
/// second. Multicast and broadcast frames may be the device's own: the count may be off by as many. A hop with a
/// problem is silent: its counters are not used.
pub fn hop_count(hop: &str, agent: &str, input: &Growth, output: &Growth) -> HopCount {
    let mut reasons: Vec<String> = Vec::new();
    for growth in [input, output] {
        for sentence in &growth.trouble {
            let named = format!("{}: {sentence}", growth.interface);
            if !reasons.contains(&named) {
                reasons.push(named);
            }
        }
    }
    for (growth, side, what) in [(input, &input.input, "in"), (output, &output.output, "out")] {
        if side.unicast.is_none() && growth.trouble.is_empty() {
            reasons.push(format!("{}: the agent has no unicast counter in direction {what}", growth.interface));
        }
    }
    let drops = [
        (&input.interface, "ifInDiscards", input.input.discards),
        (&input.interface, "ifInErrors", input.input.errors),
        (&output.interface, "ifOutDiscards", output.output.discards),
        (&output.interface, "ifOutErrors", output.output.errors),
    ];
    let drops = drops.into_iter().filter_map(|(interface, object, frames)| {
        let frames = frames.filter(|frames| *frames > 0)?;
        Some(DropCount { reason: format!("{object} {interface}"), frames })
    });
    let others = [input.input.others, output.output.others];
    let blind = if others.contains(&None) { ", multicast not counted" } else { "" };
    HopCount {
        hop: hop.to_owned(),
        input: input.input.frames(),
        output: output.output.frames(),
        drops: drops.collect(),
        uncertainty: others.into_iter().flatten().max().unwrap_or(0),
        source: format!("SNMP {agent}: IF-MIB of {} and {}{blind}", input.interface, output.interface),
        silent: (!reasons.is_empty()).then(|| reasons.join("; ")),
        anomaly: input.trouble.iter().chain(&output.trouble).next().cloned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::InterfaceName;

    fn counters(width: Width, up_time: u32, [unicast, octets, discards]: [u64; 3]) -> PortCounters {
        let read = |object, value, width| Counter::Read { object, value, width };
        let side = || SideCounters {
            octets: read("ifHCInOctets", octets, width),
            unicast: read("ifHCInUcastPkts", unicast, width),
            multicast: read("ifHCInMulticastPkts", 3, width),
            broadcast: read("ifHCInBroadcastPkts", 2, width),
            discards: read("ifInDiscards", discards, Width::Bits32),
            errors: read("ifInErrors", 0, Width::Bits32),
        };
        let interface = InterfaceName { index: 1, name: "Gi0/5".into(), description: String::new() };
        PortCounters { interface, up_time, discontinuity: Some(0), speed_mbps: None, input: side(), output: side() }
    }

    #[test]
    fn growth_is_the_difference() {
        let before = counters(Width::Bits64, 100, [WRAP - 5, 6400, u64::from(u32::MAX)]);
        let after = counters(Width::Bits64, 350, [WRAP + 995, 70_400, 1]);
        let growth = Growth::between(&before, &after);
        assert_eq!(growth.trouble, Vec::<String>::new());
        let want = SideGrowth {
            unicast: Some(1000),
            others: Some(0),
            octets: Some(64_000),
            discards: Some(2),
            errors: Some(0),
        };
        assert_eq!(growth.input, want, "discards of 32 bits may pass their end");
        let hop = hop_count("switch", "sw1", &growth, &growth);
        assert_eq!((hop.input, hop.output, hop.uncertainty, &hop.silent), (Some(1000), Some(1000), 0, &None));
        assert_eq!(hop.drops[0], DropCount { reason: "ifInDiscards Gi0/5".into(), frames: 2 });
    }

    #[test]
    fn unusable_counters_are_silent() {
        let trouble = |before: &PortCounters, after: &PortCounters| {
            let growth = Growth::between(before, after);
            hop_count("switch", "sw1", &growth, &growth).silent.expect("silent")
        };
        let start = counters(Width::Bits64, 100, [WRAP - 5, 0, 0]);
        let back = trouble(&start, &counters(Width::Bits64, 200, [995, 1, 0]));
        assert!(back.contains("ifHCInUcastPkts decreased from 4294967291 to 995"), "{back}");
        assert!(back.contains("claims 64 bits but wraps at 4,294,967,296"), "{back}");
        let restarted = trouble(&start, &counters(Width::Bits64, 50, [WRAP + 5, 1, 0]));
        assert!(restarted.contains("restarted"), "{restarted}");
        let narrow = trouble(&counters(Width::Bits32, 1, [1, 0, 0]), &counters(Width::Bits32, 2, [2, 1, 0]));
        assert_eq!(narrow.matches("is a 32-bit counter").count(), 1, "{narrow}");
        let anew = PortCounters { discontinuity: Some(7), ..counters(Width::Bits64, 200, [WRAP, 1, 0]) };
        assert!(trouble(&start, &anew).contains("ifCounterDiscontinuityTime"));
    }

    #[test]
    fn the_clock_of_an_agent_wraps_after_497_days() {
        assert!(!is_restarted(u32::MAX - 49, 50));
        assert!(is_restarted(500_000, 50));
        assert!(!is_restarted(7, 7));
    }

    #[test]
    fn a_missing_counter_is_not_zero() {
        let before = counters(Width::Bits64, 1, [1, 1, 1]);
        let mut after = counters(Width::Bits64, 2, [2, 2, 2]);
        after.input.unicast = Counter::Absent { object: "ifHCInUcastPkts", why: String::new() };
        after.input.multicast = Counter::Absent { object: "ifHCInMulticastPkts", why: String::new() };
        let growth = Growth::between(&before, &after);
        assert_eq!((growth.input.frames(), growth.input.others), (None, None));
        let hop = hop_count("switch", "sw1", &growth, &growth);
        assert_eq!((hop.input, hop.output), (None, Some(1)));
        assert!(hop.silent.expect("silent").contains("no unicast counter in direction in"));
        assert!(hop.source.ends_with("multicast not counted"));
    }
}
