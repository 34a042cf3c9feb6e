//! # congestion-control
//!
//! The congestion control in use does not fill this path: it reduces its rate at each rare loss and recovers slowly.
//!
//! **Shows**: the congestion window limits the sender without a queue and with little loss; another congestion control
//! carries clearly more over the same path.
//!
//! **Mistaken for**: random loss (then loss is high), reordering (then segments arrive after later ones), a path at capacity (then no
//! other one carries more, or a short queue causes each loss).
//!
//! **Fix**: `net.ipv4.tcp_congestion_control`.
//!
//! Source: RFC 9438 section 1; Cardwell et al., *BBR*, ACM Queue 14(5), 2016.

use crate::causes::shared::rule::*;
use crate::evidence::profile::PathProfile;
use crate::causes::shared::tcp_stage::{COMMON, beside_others};
use crate::causes::shared::window::window_share;
use crate::experiments::tcp::{AGAIN, OTHER_CONGESTION_CONTROL};
use super::{ecn_marking, path_capacity, random_loss, reordering};

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "congestion-control",
    about: "the congestion control in use does not fill this path",
    roles: &[Role::Sender],
    needs: &[
        keys::TCP_CONGESTION_CONTROL,
        keys::TCP_CONGESTION_CONTROL_AVAILABLE,
        keys::NIC_COUNTER_TX_BYTES,
        keys::NIC_COUNTER_RX_BYTES,
    ],
    ceiling,
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["random-loss", "path-capacity", "path-policer", "tcp-receive-window", "tcp-send-buffer"],
    fix,
    rank: 4,
    predicts: false,
    removed_by: Some(&OTHER_CONGESTION_CONTROL),
    per_connection: true,
    ..Cause::COMMON
};

/// Another congestion control must carry this much more before the one in use is blamed.
const GAIN: f64 = 1.3;

/// A loss-based congestion control that lost a packet at an unlucky time differs from itself by less than this.
const CLEAR: f64 = 2.0;

/// Round trips that a trial must have before it says anything of the congestion control: slow start takes about a
/// dozen on a long fat path. A transfer that was over before that compares with a longer trial as a start with a
/// steady state.
const ROUND_TRIPS: f64 = 30.0;

fn too_short(evidence: &TcpEvidence) -> bool {
    evidence.min_rtt_us.is_some_and(|rtt| evidence.base.counted_s < ROUND_TRIPS * rtt / 1e6)
}

fn ceiling(evidence: &TcpEvidence, role: Role) -> Option<Ceiling> {
    // BBR's window is twice what its rate needs, and limits nothing.
    let paces = evidence.base.congestion_control.as_deref().is_some_and(|name| name.starts_with("bbr"));
    // Where nothing arrived the window fell for that reason.
    let nothing = evidence.base.goodput_bps <= 0.0;
    if nothing || paces || window_share(evidence)? < 0.5 || evidence.queue_stood()? {
        return None;
    }
    let window = evidence.base.cwnd_bytes?;
    let how = format!(
        "median congestion window {} / RTT {}",
        units::bytes(window as u64),
        units::micros(evidence.window_rtt_us()? as u64)
    );
    ceiling_at(CAUSE.id, evidence, role, evidence.window_bps(window)?, [0.8, 1.2], Method::Inferred, how)
}

fn assess(evidence: &TcpEvidence, _: Role) -> Ruling {
    let (share, queue) = known(window_share(evidence).zip(evidence.queue_stood()), "the sender's kernel does not report what limited it")?;
    if share < 0.5 {
        return Err(contradicts(format!(
            "the congestion window limited the sender only {} of the time",
            units::percent(share)
        )));
    }
    if queue && !evidence.path_has_room() {
        return Err(contradicts("the congestion window is large enough to fill a queue on the path"));
    }
    if too_short(evidence) {
        return Err(cannot_tell("the transfer was too short for a congestion control"));
    }
    let in_use = evidence.base.congestion_control.as_deref().unwrap_or("the one in use");
    if in_use.starts_with("bbr") {
        return Err(cannot_tell(match others(evidence) {
            others if others.is_empty() => "BBR is in use, and the sender has no other congestion control".to_owned(),
            others => format!("BBR is in use; {} would slow down at each loss and were not tried", others.join(" and ")),
        }));
    }
    refuted(answers(evidence))?;
    let looks_alike = |profile: &PathProfile| {
        let shape = &profile.shape;
        shape.by_totals && shape.plateau.is_none() && shape.capacity.is_some()
    };
    if evidence.profile.as_ref().is_some_and(looks_alike) && evidence.base.loss_whole.is_some_and(|loss| loss.lost() > 0) {
        return Err(cannot_tell("a policer, whose drops it answers, and a short queue look alike by totals of steps"));
    }
    let lossy = evidence.base.loss.is_some_and(|loss| loss.moments >= 2) && !queue;
    if lossy && evidence.profile.is_none() {
        return Err(cannot_tell("segments were lost without a queue: without a path profile random loss cannot be excluded"));
    }
    let unmeasured = "the congestion window limits the sender; no other congestion control was measured";
    let other = made(evidence, &OTHER_CONGESTION_CONTROL, unmeasured)?;
    if let Some(([before, after], _)) = evidence.gave_way() {
        let [before, after] = [before, after].map(units::bps);
        return Err(contradicts(format!(
            "what BBR gains it takes from other traffic of the two hosts, which went from {before} to {after}"
        )));
    }
    let again = evidence.made(&AGAIN).map(|again| again.goodput_bps);
    let gain = other.goodput_bps / again.unwrap_or(0.0).max(evidence.goodput_bps());
    if gain < GAIN {
        let best = again.map_or_else(String::new, |again| format!("; {in_use} again: {}", units::bps(again)));
        return Err(contradicts(format!("BBR carries no more ({}{best})", units::bps(other.goodput_bps))));
    }
    if let Some(why) = beside_others(evidence) {
        return Err(cannot_tell(format!("BBR carried {gain:.1} times as much, which it may have taken from others: {why}")));
    }
    // A queue that stood may have been that of others, who were gone later.
    if (gain < CLEAR || queue) && again.is_none() {
        return Err(ask(&AGAIN, format!("BBR carried {gain:.1} times as much; {in_use} was not measured again")));
    }
    let how = if queue { "below what the path carries" } else { "without a queue on the path" };
    let witnesses = [
        counter(format!("the congestion window limited the sender {} of the time {how}", units::percent(share))),
        experiment(format!("BBR carries {}, {gain:.1} times what {in_use} does", units::bps(other.goodput_bps))),
    ];
    supports(share * 0.8, witnesses)
}

/// Fewer losses are rare on any path.
const FEW: u64 = 20;

/// What the congestion control answers to, where that is no rare loss: it does as it should, and its signal has a cause of its own.
fn answers(evidence: &TcpEvidence) -> Option<String> {
    if let Some(loss) = evidence.base.loss_whole.filter(|loss| reordering::seen_by_tcp(*loss)) {
        return Some(format!("{} segments arrived after later ones: the path reorders", loss.reordered));
    }
    if evidence.policed() && evidence.base.loss_whole.is_some_and(|loss| loss.lost() > 0) {
        return Some("a policer drops what exceeds its rate: it reduces its rate for that".to_owned());
    }
    if let Some(marked) = evidence.base.marked_share.filter(|marked| ecn_marking::are_common(evidence, *marked)) {
        let part = units::percent(marked);
        return Some(format!("{part} of the delivered segments had a congestion mark: it reduces its rate for that"));
    }
    if let Some(loss) = evidence.base.loss.filter(|loss| !loss.is_few(FEW) && loss.rate() >= COMMON) {
        let (part, span) = (units::percent(loss.rate()), evidence.after_start());
        return Some(format!("{part} of the segments were lost{span}: it reduces its rate for that, and not at rare losses"));
    }
    if evidence.base.loss.is_some_and(|loss| random_loss::is_rare(evidence, loss)) {
        return Some(format!("segments were lost again and again{} without a queue: it reduces its rate for that", evidence.after_start()));
    }
    path_capacity::is_sawtooth(evidence).then(|| {
        let filled = units::percent(evidence.filled().unwrap_or(0.0));
        format!("it fills the path until its queue drops or marks, and uses {filled} of it, as behind a short queue")
    })
}

/// The congestion controls of the sender that are not BBR.
fn others(evidence: &TcpEvidence) -> Vec<String> {
    let available = evidence.host(Role::Sender).and_then(|host| host.get(keys::TCP_CONGESTION_CONTROL_AVAILABLE));
    let names = available.map(|fact| fact.value.to_string()).unwrap_or_default();
    names.split_whitespace().filter(|name| !name.starts_with("bbr")).map(str::to_owned).collect()
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    sysctl_fix(
        evidence,
        role,
        "use BBR (and fq as the queueing discipline where the kernel has it)".to_owned(),
        "net.ipv4.tcp_congestion_control",
        "bbr".to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use crate::testing::profile::{Excess, ProfiledPath};
    use narrows_model::load::tcp::TcpPlan;
    use super::*;

    /// Reno on 1 Gbit/s and 35 ms: after one loss it climbs for minutes.
    fn truth() -> Scene {
        Scene {
            goodput_bps: 300e6,
            rtt_us: 35_100,
            cwnd: 907,
            lost: 1,
            segments: 207_000,
            congestion_control: "reno",
            ..Scene::default()
        }
    }

    fn bbr(goodput_bps: f64) -> Scene {
        Scene { goodput_bps, congestion_control: "bbr", ..truth() }
    }

    const OTHER: &str = "other-congestion-control";

    #[test]
    fn it_is_named_where_bbr_carries_far_more() {
        let (bbr, more) = (bbr(850e6), Scene { load: TcpPlan { streams: 4, ..truth().load }, ..bbr(930e6) });
        let finding = named(&truth(), &[(OTHER, &bbr), ("more-streams", &more)], "congestion-control", Place::Client);
        assert_rejects(&finding, "random-loss", "only 1 of 207000");
        assert_rejects(&finding, "path-capacity", "four times the streams carried 930 Mbit/s");
        assert_rejects(&finding, "tcp-receive-window", "only 0 %");
        let prediction = finding.prediction.expect("what the experiment carried");
        assert_eq!(prediction.bps, bbr.goodput_bps);
    }

    #[test]
    fn it_is_not_guessed_but_tried() {
        assert_asks(&assessment(&CAUSE, Role::Sender, &truth(), &[]), &OTHER_CONGESTION_CONTROL);
        assert!(next(&truth(), &[]).contains(&OTHER_CONGESTION_CONTROL.id));
        none_proven(&truth(), &[]);
    }

    #[test]
    fn another_one_must_do_better_by_a_third() {
        let with = |goodput| assessment(&CAUSE, Role::Sender, &truth(), &[(OTHER, &bbr(goodput))]);
        assert_contradicts(&with(387e6), "BBR carries no more");
        assert_asks(&with(393e6), &AGAIN);
        assert_supports(&with(603e6));
        // The one in use may have been unlucky: what it does at another time counts, too.
        let twice = |goodput_bps| {
            let again = Scene { goodput_bps, ..truth() };
            assessment(&CAUSE, Role::Sender, &truth(), &[(OTHER, &bbr(500e6)), (AGAIN.id, &again)])
        };
        assert_supports(&twice(310e6));
        assert_contradicts(&twice(420e6), "reno again: 420 Mbit/s");
    }

    #[test]
    fn a_gain_beside_a_queue_must_last_and_what_others_lose_is_none() {
        let beside = |others_bps, rtt_us| {
            let path = ProfiledPath { others_bps, ..ProfiledPath::default() };
            Scene { rtt_us, profile: Some(path), ..truth() }
        };
        let of = |scene: &Scene, again: &[(&str, &Scene)]| {
            assessment(&CAUSE, Role::Sender, scene, &[&[(OTHER, &bbr(850e6))], again].concat())
        };
        assert_cannot_tell(&of(&beside(500e6, 35_100), &[]), "which it may have taken from others");
        let queue = beside(0.0, 40_000);
        assert_asks(&of(&queue, &[]), &AGAIN);
        let twice = of(&queue, &[(AGAIN.id, &queue)]);
        let Assessment::Supports { witnesses, .. } = &twice else { panic!("{twice:?}") };
        assert!(witnesses[0].says.ends_with("100 % of the time below what the path carries"), "{witnesses:?}");
    }

    #[test]
    fn what_a_policer_drops_is_no_rare_loss() {
        let path = ProfiledPath { rate_bps: 100e6, burst_bps: 900e6, excess: Excess::DroppedAfter(40), ..ProfiledPath::default() };
        let scene = Scene { goodput_bps: 30e6, segments: 20_700, cwnd: 91, lost: 2, profile: Some(path), ..truth() };
        assert_contradicts(&assessment(&CAUSE, Role::Sender, &scene, &[(OTHER, &bbr(90e6))]), "a policer drops what exceeds its rate");
    }

    #[test]
    fn loss_that_is_not_rare_has_a_cause_of_its_own() {
        let of = |lost| assessment(&CAUSE, Role::Sender, &Scene { lost, ..truth() }, &[(OTHER, &bbr(850e6))]);
        assert_contradicts(&of(30), "0.014 % of the segments were lost");
        assert_cannot_tell(&of(19), "without a path profile random loss cannot be excluded");
    }

    #[test]
    fn a_window_that_keeps_a_queue_or_is_not_the_limit_is_large_enough() {
        let of = |scene| assessment(&CAUSE, Role::Sender, &scene, &[(OTHER, &bbr(850e6))]);
        assert_contradicts(&of(Scene { rtt_us: 40_000, ..truth() }), "the congestion window is large enough to fill a queue on the path");
        assert_contradicts(&of(Scene { busy: 0.49, ..truth() }), "only 49 %");
        assert_supports(&of(Scene { busy: 0.51, ..truth() }));
    }

    #[test]
    fn a_short_transfer_an_old_kernel_and_bbr_itself_leave_it_open() {
        let of = |scene| assessment(&CAUSE, Role::Sender, &scene, &[(OTHER, &bbr(850e6))]);
        // Thirty round trips of 35 ms are 1.05 s.
        assert_cannot_tell(&of(Scene { span_us: 1_000_000, ..truth() }), "the transfer was too short for a congestion control");
        assert_supports(&of(Scene { span_us: 1_100_000, ..truth() }));
        assert_cannot_tell(&of(Scene { hidden: &[Hidden::LimitedTimes], ..truth() }), "does not report");
        let available = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let sender_facts = with(ordinary_host(), fact("tcp.congestion_control.available", names, Unit::Text));
            of(Scene { congestion_control: "bbr", sender_facts, ..truth() })
        };
        let words = "BBR is in use; reno and cubic would slow down at each loss and were not tried";
        assert_cannot_tell(&available(&["reno", "bbr", "cubic"]), words);
        assert_cannot_tell(&available(&["bbr"]), "BBR is in use, and the sender has no other congestion control");
    }
}
