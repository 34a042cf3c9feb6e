//! # tester-limited
//!
//! narrows itself, or its machine, is the limit.
//!
//! **Shows**: all cores of a host are busy, or the engine's loopback ceiling matches the measured goodput.
//!
//! **Mistaken for**: any limit of the path. A result at this limit is no evidence against the path.
//!
//! **Fix**: more cores, more streams, another machine.
//!
//! Source: RFC 6349 section 3 (the test host must itself carry the full rate of the path); `/proc/stat`, proc_stat(5).

use crate::causes::shared::bound::cpu_innocent;
use crate::causes::shared::cpu::cpu_ceiling;
use crate::causes::shared::rule::*;
use crate::causes::shared::words::no_more;
use crate::evidence::tcp::{BEYOND, EndView};
use crate::experiments::tcp::MORE_STREAMS;
use super::random_loss;
use super::path_capacity::least_of_sawtooth;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "tester-limited",
    about: "the tester itself is the limit",
    roles: &[Role::Sender, Role::Receiver],
    needs: &[keys::NIC_KIND, keys::NIC_SPEED],
    ceiling,
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["app-core-saturated", "softirq-core-saturated", "path-capacity"],
    fix: |_, _| advice(
        "measure from a machine with more or faster cores; the result is a lower bound for the path",
    ),
    rank: 3,
    ..Cause::COMMON
};

/// Cores are full when this part of all their time is gone: sampling ticks and the gaps between threads leave the rest.
const FULL: f64 = 0.93;

fn ceiling(evidence: &TcpEvidence, role: Role) -> Option<Ceiling> {
    let busy = evidence.end(role)?.machine_busy()?.min(1.0);
    let own = evidence.end(role)?.load_busy()?.min(busy);
    let others = busy - own;
    // The load could gain some of the CPU time of other programs; how much is up to the scheduler. If they use more than it, this is
    // no ceiling of the tester.
    if own < others {
        return None;
    }
    let part = own / (1.0 - others);
    let spread = if busy > 0.9 { [0.9, 1.1] } else { [0.6, 1.5] };
    let how = format!("goodput / {} of the CPU time that other programs leave", units::percent(part));
    cpu_ceiling(CAUSE.id, evidence, role, part, spread, how)
}

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    let busy = known(evidence.end(role).and_then(EndView::machine_busy), "the times of the cores could not be read")?;
    if busy < FULL {
        return Err(contradicts(format!(
            "the cores of {} were busy {} of the time",
            who(evidence, role),
            units::percent(busy)
        )));
    }
    refuted(cpu_innocent(evidence).or_else(|| random_loss::explains(evidence)))?;
    // A capacity that was measured, and that TCP makes what it can of, goes before a machine that is busy meanwhile.
    if let Some(filled) = evidence.filled().filter(|part| (least_of_sawtooth(evidence)..=BEYOND).contains(part)) {
        return Err(contradicts(format!("the goodput is {} of the measured capacity of the path", units::percent(filled))));
    }
    if evidence.end(role).is_some_and(EndView::others_fill) {
        return Err(cannot_tell(format!("other programs take most of the CPU time of {}", who(evidence, role))));
    }
    let unmeasured = format!("all cores of {} were busy; more streams were not measured", who(evidence, role));
    let more = made(evidence, &MORE_STREAMS, unmeasured)?;
    let gain = more.goodput_bps / evidence.goodput_bps();
    if gain > 1.3 {
        return Err(contradicts(format!("four times the streams carried {gain:.1} times as much")));
    }
    let witnesses = [
        counter(format!(
            "all cores of {} together were busy {} of the time",
            who(evidence, role),
            units::percent(busy)
        )),
        experiment(no_more(more.goodput_bps, evidence.goodput_bps())),
    ];
    supports(busy, witnesses)
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use crate::testing::profile::ProfiledPath;
    use narrows_model::CpuTimes;
    use super::*;

    fn full(part: f64) -> CpuTimes {
        let busy = (part * 8e6) as u64;
        CpuTimes { user_us: busy / 2, system_us: busy / 2, idle_us: 8_000_000 - busy, ..CpuTimes::default() }
    }

    /// A small machine that has no time left at 2 Gbit/s on a link of ten.
    fn truth() -> Scene {
        Scene {
            goodput_bps: 2e9,
            rtt_us: 35_300,
            sender_core: full(0.98),
            receiver_core: full(0.1),
            other_core: full(0.98),
            sender_facts: link(10_000, ordinary_host()),
            receiver_facts: link(10_000, ordinary_host()),
            ..Scene::default()
        }
    }

    fn more(goodput_bps: f64) -> Scene {
        Scene { goodput_bps, ..truth() }
    }

    #[test]
    fn a_machine_without_time_left_is_named_where_more_streams_carry_no_more() {
        let finding = named(&truth(), &[("more-streams", &more(2.05e9))], "tester-limited", Place::Client);
        assert_rejects(&finding, "app-core-saturated", "of a core");
        assert_rejects(&finding, "softirq-core-saturated", "in softirq");
        assert_rejects(&finding, "path-capacity", "a core is full");
        assert!(finding.fix.commands.is_empty());
    }

    #[test]
    fn it_is_not_guessed_but_tried() {
        assert_asks(&assessment(&CAUSE, Role::Sender, &truth(), &[]), &MORE_STREAMS);
        none_proven(&truth(), &[]);
    }

    #[test]
    fn more_streams_that_carry_a_third_more_speak_against_it() {
        let with = |bps| assessment(&CAUSE, Role::Sender, &truth(), &[("more-streams", &more(bps))]);
        assert_supports(&with(2.55e9));
        assert_contradicts(&with(2.65e9), "1.3 times as much");
    }

    #[test]
    fn a_measured_capacity_that_tcp_makes_what_it_can_of_goes_before_a_full_machine() {
        let at = |rate_bps| {
            let profile = Some(ProfiledPath { rate_bps, burst_bps: rate_bps, tried_bps: 2.0 * rate_bps, ..ProfiledPath::default() });
            assessment(&CAUSE, Role::Sender, &Scene { profile, ..truth() }, &[("more-streams", &more(2.05e9))])
        };
        assert_contradicts(&at(2.4e9), "of the measured capacity of the path");
        assert_supports(&at(4e9));
    }

    #[test]
    fn a_window_that_more_connections_refute_excuses_no_machine() {
        let busy = Scene { sender_core: full(0.98), other_core: full(0.98), ..crate::testing::small_buffer() };
        let of = |with: &[(&str, &Scene)]| assessment(&CAUSE, Role::Sender, &busy, with);
        assert_contradicts(&of(&[]), "tcp-receive-window limited the sender 100 % of the time, at its ceiling");
        let more = crate::testing::small_buffer();
        assert_supports(&of(&[("more-streams", &more)]));
    }

    #[test]
    fn a_load_of_little_cpu_time_has_no_ceiling_of_the_tester() {
        let of = |scene: &Scene| {
            let evidence = TcpEvidence::of(&scene.run(&[]), 0).expect("a baseline");
            ceiling(&evidence, Role::Sender).map(|ceiling| ceiling.bps)
        };
        // 76 Mbit/s take a tenth of a core of a machine that others fill.
        let slow = Scene { goodput_bps: 76e6, ..truth() };
        assert_eq!(of(&slow), None);
        // A quiet machine that the load uses little of says nothing, either; half of it does.
        let quiet = |sender_thread| Scene { sender_thread, sender_core: full(sender_thread), other_core: full(0.0), ..slow.clone() };
        assert_eq!(of(&quiet(0.6)), None);
        let half = of(&Scene { sender_thread: 0.9, sender_core: full(0.9), other_core: full(0.1), ..slow });
        assert!(half.is_some_and(|bps| (155e6..170e6).contains(&bps)), "{half:?}");
    }

    #[test]
    fn a_machine_with_a_tenth_of_its_time_left_is_not_full() {
        let at = |part| {
            let scene = Scene { sender_core: full(part), other_core: full(part), ..truth() };
            assessment(&CAUSE, Role::Sender, &scene, &[("more-streams", &more(2e9))])
        };
        assert_contradicts(&at(0.92), "were busy 92 %");
        assert_supports(&at(0.94));
    }

    #[test]
    fn cores_that_cannot_be_read_leave_it_open() {
        let scene = Scene { hidden: &[Hidden::Cores], ..truth() };
        assert_cannot_tell(&assessment(&CAUSE, Role::Sender, &scene, &[]), "times of the cores");
        assert_ne!(crate::testing::verdict(&scene, &[]).status, narrows_model::Status::Limited);
    }
}
