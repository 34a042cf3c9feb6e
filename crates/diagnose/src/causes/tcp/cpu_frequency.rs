//! # cpu-frequency
//!
//! A full core runs far below its maximum frequency, because of heat or a frequency policy.
//!
//! **Shows**: a full core, and `package_throttle_total_time_ms` grows by a large share of the trial, or
//! `scaling_max_freq` is far below the processor's maximum.
//!
//! **Mistaken for**: a full core at full speed; a low frequency of an idle core, which is normal.
//!
//! **Fix**: cooling and the power profile of the BIOS; `cpupower frequency-set --max`.
//!
//! Source: kernel `Documentation/admin-guide/pm/cpufreq.rst`; `drivers/thermal/intel/therm_throt.c`.

use crate::causes::shared::bound::cpu_innocent;
use crate::causes::shared::cpu::full_core;
use crate::causes::shared::rule::*;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "cpu-frequency",
    about: "a full core runs far below its maximum frequency",
    roles: &[Role::Sender, Role::Receiver],
    needs: &[
        keys::CPU_FREQUENCY_LIMIT,
        keys::CPU_FREQUENCY_MAX,
        keys::CPU_THERMAL_THROTTLED_MS,
        keys::NIC_KIND,
        keys::NIC_SPEED,
    ],
    assess,
    look_alikes: &["app-core-saturated", "softirq-core-saturated", "tester-limited", "path-capacity"],
    fix,
    rank: 8,
    ..Cause::COMMON
};

/// A cap above this part of the maximum hardly costs anything …
const CAPPED: f64 = 0.8;

/// … as does a processor that was too hot for less of the time.
const HOT: f64 = 0.2;

/// The policy's cap and the processor's maximum in hertz, where the cap lies far below it.
fn cap(evidence: &TcpEvidence, role: Role) -> Option<(f64, f64)> {
    let pair = evidence.number(role, keys::CPU_FREQUENCY_LIMIT).zip(evidence.number(role, keys::CPU_FREQUENCY_MAX));
    pair.filter(|(limit, max)| *limit > 0.0 && *limit <= CAPPED * max)
}

fn assess(evidence: &TcpEvidence, role: Role) -> Assessment {
    let who = who(evidence, role);
    let Some((share, full)) = full_core(evidence, role) else {
        let unread = evidence.end(role).is_none_or(|end| end.cores.is_empty() && end.thread_share.is_none());
        return if unread {
            cannot_tell("the times of the cores could not be read")
        } else {
            contradicts(format!("no core of {who} is full"))
        };
    };
    if let Some(why) = cpu_innocent(evidence) {
        return contradicts(why);
    }
    let hot = evidence.grew(role, keys::CPU_THERMAL_THROTTLED_MS);
    if hot.is_none() && evidence.number(role, keys::CPU_FREQUENCY_LIMIT).is_none() {
        return cannot_tell(format!("neither a cap on the frequency of {who} nor its thermal throttling could be read"));
    }
    let hot = hot.map(|ms| ms as f64 / 1e3 / evidence.base.whole_s.max(1e-3)).filter(|part| *part >= HOT);
    let cap = cap(evidence, role);
    if hot.is_none() && cap.is_none() {
        return contradicts(format!("the processor of {who} was neither capped nor throttled"));
    }
    let witnesses = [
        Some(full),
        hot.map(|part| counter(format!("the processor of {who} throttled itself {} of the time (heat)", units::percent(part.min(1.0))))),
        cap.map(|(limit, max)| {
            parameter(format!("its frequency is capped at {:.2} GHz of {:.2} GHz", limit / 1e9, max / 1e9))
        }),
        path_has_room(evidence),
    ];
    Assessment::Supports { share: share.min(1.0), witnesses: witnesses.into_iter().flatten().collect() }
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    match cap(evidence, role) {
        Some((_, max)) => {
            let run = format!("cpupower frequency-set --max {:.0}MHz", max / 1e6);
            command_fix(evidence, role, "lift the cap on the processor's frequency", [run])
        }
        None => advice("improve the cooling (fans, dust, inlet temperature), and check the power profile of the BIOS"),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use super::*;

    fn capped(mhz: i64) -> Vec<Fact> {
        let facts = with(link(10_000, ordinary_host()), fact("cpu.frequency.max", 3_500_000_000_i64, Unit::Hertz));
        with(facts, fact("cpu.frequency.limit", mhz * 1_000_000, Unit::Hertz))
    }

    /// A writer that fills its core, so many milliseconds of the eight seconds too hot.
    fn truth(hot_ms: i64) -> Scene {
        Scene {
            goodput_bps: 4e9,
            rtt_us: 35_100,
            sender_thread: 0.98,
            sender_core: core(0.05, 0.94),
            sender_facts: capped(3_500),
            sender_counts: vec![("cpu.thermal.throttled_ms", hot_ms)],
            receiver_facts: link(10_000, ordinary_host()),
            ..Scene::default()
        }
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Sender, scene, &[])
    }

    #[test]
    fn a_full_core_that_is_too_hot_or_capped_is_named() {
        named(&truth(5_000), &[], "cpu-frequency", Place::Client);
        let finding = named(&Scene { sender_facts: capped(1_200), ..truth(0) }, &[], "cpu-frequency", Place::Client);
        assert_eq!(finding.fix.commands[0].run, "cpupower frequency-set --max 3500MHz");
    }

    #[test]
    fn heat_and_caps_of_cores_with_time_left_cost_nothing() {
        assert_contradicts(&of(&truth(1_500)), "was neither capped nor throttled");
        assert_contradicts(&of(&Scene { sender_facts: capped(2_900), ..truth(0) }), "was neither capped nor throttled");
        assert_contradicts(&of(&Scene { sender_thread: 0.5, ..truth(5_000) }), "no core of");
    }

    #[test]
    fn a_path_at_capacity_and_unknown_cores_accuse_no_one() {
        assert_contradicts(&of(&full_path(truth(5_000))), "capacity of the slower link");
        assert_eq!(verdict(&full_path(truth(5_000)), &[]).status, Status::Healthy);
        let silent = Scene { sender_facts: link(10_000, ordinary_host()), sender_counts: Vec::new(), ..truth(0) };
        assert_cannot_tell(&of(&silent), "could be read");
        assert_cannot_tell(&of(&Scene { hidden: &[Hidden::Cores, Hidden::Threads], ..truth(5_000) }), "times of the cores");
    }
}
