//! # offloads-off
//!
//! Segmentation, coalescing or checksums are done packet by packet by the CPU, and the CPU is what ends the goodput.
//!
//! **Shows**: TSO, GSO, GRO or checksum offload is off in the device's features, and a core or the whole machine is
//! full.
//!
//! **Mistaken for**: a full core as such: with the offloads on the same core carries several times as much.
//!
//! **Fix**: turn them on.
//!
//! Source: Documentation/networking/segmentation-offloads.rst.

use super::{Cause, Testimony, cannot_tell, ceiling, counter, denies, parameter};
use crate::evidence::{EndView, Evidence, Seat};
use narrows_model::fact::Unit;
use narrows_model::{Ceiling, Command, Fact, Fix, Key, Method, Setting, Value, units};

/// See the file's head.
pub const CAUSE: Cause = Cause {
    id: "offloads-off",
    about: "offloads are off, so the CPU handles each packet by itself and has no time for more",
    seats: &[Seat::Sender, Seat::Receiver],
    needs: &[
        Key::new("nic.feature.tso", Unit::Flag),
        Key::new("nic.feature.gso", Unit::Flag),
        Key::new("nic.feature.gro", Unit::Flag),
        Key::new("nic.feature.tx_checksum", Unit::Flag),
        Key::new("nic.feature.rx_checksum", Unit::Flag),
        Key::new("nic.name", Unit::Text),
        Key::new("nic.feature.fixed_off", Unit::Text),
    ],
    ceiling: roof,
    witness: testify,
    look_alikes: &["app-core-saturated", "softirq-core-saturated", "tester-limited"],
    fix,
    healthy: false,
    rank: 8,
};

/// Which features matter at a seat: fact, and the word of `ethtool -K`.
const fn features(seat: Seat) -> &'static [(&'static str, &'static str)] {
    match seat {
        Seat::Sender => &[("nic.feature.tso", "tso"), ("nic.feature.gso", "gso"), ("nic.feature.tx_checksum", "tx")],
        _ => &[("nic.feature.gro", "gro"), ("nic.feature.rx_checksum", "rx")],
    }
}

/// What is off and could be on; what the device cannot do at all is no cause of anything that a user could mend.
fn off(evidence: &Evidence<'_>, seat: Seat) -> Vec<&'static str> {
    let fixed = |word: &str| match evidence.host(seat).and_then(|host| host.get("nic.feature.fixed_off")) {
        Some(Fact { value: Value::List(words), .. }) => words.iter().any(|fixed| fixed == word),
        _ => false,
    };
    let is_off = |(key, word): &&(&str, &str)| evidence.flag(seat, key) == Some(false) && !fixed(word);
    features(seat).iter().filter(is_off).map(|(_, word)| *word).collect()
}

/// The fullest that the CPU is at a seat: its data thread, its softirq core or the whole machine.
fn fullness(evidence: &Evidence<'_>, seat: Seat) -> Option<f64> {
    let end = evidence.end(seat)?;
    let softirq = end.softirq_core().map(|core| core.softirq);
    let core = end.cores.iter().map(|core| core.busy).reduce(f64::max);
    [end.thread_share, softirq, core, end.machine_busy()].into_iter().flatten().reduce(f64::max)
}

/// Segmentation in software, GSO, does nearly as well as TSO: only both off, or a checksum off, costs much; a
/// receiver without GRO always pays.
fn costly(off: &[&str]) -> bool {
    off.contains(&"gso") || off.contains(&"gro") || off.contains(&"tx") || off.contains(&"rx")
}

fn roof(evidence: &Evidence<'_>, seat: Seat) -> Option<Ceiling> {
    if !costly(&off(evidence, seat)) {
        return None;
    }
    let full = fullness(evidence, seat)?;
    if full < 0.5 {
        return None;
    }
    let how = format!("goodput / {} of the fullest core, with a packet at a time", units::percent(full));
    ceiling(CAUSE.id, evidence, seat, evidence.goodput_bps() / full.min(1.0), [0.88, 1.12], Method::Inferred, how)
}

fn testify(evidence: &Evidence<'_>, seat: Seat) -> Testimony {
    let known = features(seat).iter().any(|(key, _)| evidence.flag(seat, key).is_some());
    if !known {
        return cannot_tell("the device's features could not be read");
    }
    let off = off(evidence, seat);
    if !costly(&off) {
        return denies(format!("the offloads that matter are on at {}", super::who(evidence, seat)));
    }
    let Some(full) = fullness(evidence, seat) else { return cannot_tell("the times of the cores could not be read") };
    if full < 0.88 {
        return denies(format!(
            "{} are off, but the fullest core of {} had {} of its time left",
            off.join(", "),
            super::who(evidence, seat),
            units::percent(1.0 - full)
        ));
    }
    if evidence.queue_stood() == Some(true)
        && evidence.end(seat).and_then(EndView::machine_busy).is_some_and(|busy| busy < 0.6)
    {
        return denies("a queue stands on the path, so the CPU is not what ends the goodput");
    }
    Testimony::Says {
        share: full,
        witnesses: vec![
            parameter(format!("{} off at {}", off.join(", "), super::who(evidence, seat))),
            counter(format!("its fullest core or data thread was busy {} of the time", units::percent(full))),
        ],
    }
}

fn fix(evidence: &Evidence<'_>, seat: Seat) -> Fix {
    let device = evidence.text(seat, "nic.name").unwrap_or("DEVICE").to_owned();
    let at = evidence.place(seat);
    // Order matters: segmentation needs the checksum offload.
    let mut words = off(evidence, seat);
    words.sort_by_key(|word| match *word {
        "tx" | "rx" => 0,
        "gso" => 1,
        _ => 2,
    });
    let settings: Vec<_> = words
        .iter()
        .map(|word| (at, Setting::Offload { device: device.clone(), feature: (*word).to_owned(), on: true }))
        .collect();
    let commands = settings.iter().map(|(at, setting)| Command { at: *at, run: setting.to_string() }).collect();
    Fix { advice: format!("turn {} on", words.join(", ")), commands, settings, load: None }
}
