//! What the judge asks of the evidence of TCP.
//!
//! Some verdicts are reached by exclusion: that the path is at capacity, shaped or policed, or that an application is slow,
//! is known only where the hosts' own limits are known not to bind. Where the evidence that would exclude them is missing,
//! such a verdict is open: missing evidence makes no verdict, and never another one.
//!
//! Found by taking evidence away from runs of the fault bank, whose truth is known: without the times of the CPUs a full core
//! looks like a slow application, without the limited-time counters a slow reader like a shaper, as a slow writer does without the
//! memory of its socket; without the facts of a host its slow link, its MTU or its own shaper like the path.

use super::TcpEvidence;
use crate::causes::shared::bound::LONG_QUEUE_US;
use crate::causes::shared::response;
use crate::causes::shared::words::{cannot_tell, contradicts};
use crate::causes::tcp::capacity_changed::full_in_each_phase;
use crate::evidence::cores::{NO_TIME_LEFT, may_encrypt};
use crate::evidence::profile::PathProfile;
use crate::evidence::tcp::{AT_CAPACITY, BEYOND, DISTURBS};
use crate::experiments::profile::REVERSE_PROFILE;
use crate::experiments::{self, tcp::AGAIN, tcp::MORE_STREAMS};
use crate::judge::{Assessment, Baseline, EXTRAPOLATION, Evidence, Excludes, Experiment, Holds, Losses};
use crate::role::Role;
use narrows_model::{FactKey, Finding, Flow, LoadPlan, Place, Snapshot, Status, keys, words::units};

const ENDS: [Role; 2] = [Role::Sender, Role::Receiver];

impl TcpEvidence {
    /// The host that lost most CPU time to other guests, where that disturbs a measurement, and the part of it.
    fn stolen(&self) -> Option<(f64, Place)> {
        let part = |role: Role| Some((self.end(role)?.stolen(), self.place(role)));
        ENDS.into_iter().filter_map(part).max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(part, _)| *part >= DISTURBS)
    }

    /// The end whose packets leave a core no time. What UDP carries of a path ends at the same core, so a path that is full by its profile
    /// says nothing then. Where one kernel is both ends, its cores work for the path between them, too: there only a backlog that overflows
    /// is an end's. No core makes packets wait for long.
    pub fn full_of_packets(&self) -> Option<Role> {
        let full = |role: &Role| {
            self.softirq_core(*role).is_some_and(|core| core.softirq >= NO_TIME_LEFT)
                && (!self.same_machine() || self.grew(*role, keys::SOFTNET_DROPPED).is_some_and(|dropped| dropped > 0))
        };
        ENDS.into_iter().find(full).filter(|_| self.queue_us().is_none_or(|us| us < LONG_QUEUE_US) && !self.at_link())
    }
}

/// Four times the streams that carry less than this much more carry no more: what two trials of one path differ by
/// anyway.
pub const NO_MORE: f64 = 1.1;

/// A load that reaches this part of what the slower link carries is at it, as for [`TcpEvidence::at_link`].
const FULL_LINK: f64 = 0.95;

impl Evidence for TcpEvidence {
    const EXPERIMENTS: &'static [&'static Experiment] = experiments::TCP;
    const TELLS_HARMLESS: bool = true;

    fn flow(&self) -> Flow {
        self.flow
    }

    fn goodput_bps(&self) -> f64 {
        self.base.goodput_bps
    }

    /// A load costs less per byte the larger it is, as long as nothing is full: its thread, the core that processes its packets, the whole
    /// machine, where what moves the packets of a virtual path is one of the other programs.
    fn reach_bps(&self) -> f64 {
        let busy = |role: Role| {
            let end = self.end(role)?;
            let softirq = self.softirq_core(role).map(|core| core.softirq);
            [end.thread_share, softirq, end.machine_busy()].into_iter().flatten().reduce(f64::max)
        };
        let fullest = ENDS.into_iter().map(|role| busy(role).unwrap_or(1.0 / EXTRAPOLATION)).fold(0.0, f64::max);
        let shown = self.experiments.values().map(|view| view.goodput_bps).fold(self.base.goodput_bps, f64::max);
        shown.max(self.base.goodput_bps / fullest.clamp(1e-3, 1.0))
    }

    fn carries_at_least_bps(&self) -> Option<f64> {
        self.carries_bps().filter(|_| self.capacity_goodput_bps().is_none())
    }

    fn unreached_label_bps(&self) -> Option<f64> {
        let most = self.more_connections_bps().map_or(self.base.goodput_bps, |more| more.max(self.base.goodput_bps));
        self.link_goodput_bps().filter(|link| self.profile.is_none() && most < FULL_LINK * link)
    }

    fn more_connections_bps(&self) -> Option<f64> {
        self.made(&MORE_STREAMS).map(|more| more.goodput_bps)
    }

    fn losses_leave(&self, holds: Holds) -> Option<Losses> {
        response::losses_leave(self, holds)
    }

    fn without_queue(&self) -> Self {
        let mut other = self.clone();
        other.base.rtt_us = self.window_rtt_us().or(self.base.rtt_us);
        other
    }

    fn host(&self, role: Role) -> Option<&Snapshot> {
        match role {
            Role::Sender => Some(&self.sender),
            Role::Receiver => Some(&self.receiver),
            Role::Path => None,
        }
    }

    fn baseline(&self) -> Baseline<'_> {
        Baseline {
            load: LoadPlan::Tcp(self.load.clone()),
            flow: self.flow,
            goodput_bps: self.base.goodput_bps,
            sender: &self.sender,
            congestion_control: self.base.congestion_control.as_deref(),
            acks_bps: self.acks_bps().map(|(sent, _)| sent),
            min_rtt_us: self.min_rtt_us,
            lost: self.base.worst_loss().map(|loss| loss.rate()),
            carries_bps: self.profile.as_ref().map(PathProfile::sustains_bps),
        }
    }

    fn experiment_bps(&self, id: &str) -> Option<f64> {
        // Do not repeat a profile that produced nothing.
        let carried_bps = || self.reverse_path.as_ref().map_or(0.0, |back| back.shape.carried_bps);
        let back = || (id == REVERSE_PROFILE.id && self.reverse_tried).then(carried_bps);
        let paced = || Some(self.paced_udp.get(id)?.goodput_bps);
        self.experiments.get(id).map(|view| view.goodput_bps).or_else(paced).or_else(back)
    }

    fn more_connections_say(&self) -> Option<Assessment> {
        let more = self.made(&MORE_STREAMS)?;
        let ends = [&more.sender, &more.receiver];
        let busy = ends.iter().any(|end| end.machine_busy().is_some_and(|busy| busy > 0.9) || end.waits_for_core());
        // Where the machine or the path has no room for more, more connections say nothing.
        let says = !busy
            && more.goodput_bps < NO_MORE * self.base.goodput_bps
            && self.filled().is_none_or(|part| part < AT_CAPACITY);
        says.then(|| {
            let (more, one) = (units::bps(more.goodput_bps), units::bps(self.base.goodput_bps));
            let says = format!("four times the connections carried {more}, no more than {one}");
            if ends.iter().all(|end| end.machine_busy().is_some()) {
                contradicts(format!("{says}: the limit is not per connection"))
            } else {
                cannot_tell(format!("{says}, and whether a full machine held them back is not known of both ends"))
            }
        })
    }

    fn repeat(&self) -> Option<&'static Experiment> {
        (self.stolen().is_some() && self.made(&AGAIN).is_none()).then_some(&AGAIN)
    }

    fn more_connections(&self) -> Option<&'static Experiment> {
        (self.carries_bps().is_none() || !self.path_has_room()).then_some(&MORE_STREAMS)
    }

    fn scaled(&self, factor: f64) -> Self {
        let mut other = self.clone();
        other.base.goodput_bps *= factor;
        other
    }

    fn headline(&self, status: Status, first: Option<&Finding>) -> String {
        let goodput = units::bps(self.base.goodput_bps);
        match (status, first) {
            (Status::Healthy, Some(cause)) if cause.at != Place::Path => {
                format!("healthy: the link is full at {goodput}")
            }
            (Status::Healthy, _) => {
                let plateau = self.profile.as_ref().filter(|profile| profile.shape.plateau.is_some());
                // What the path carried less of, once the load was over, is not what the load met.
                let fell = self.capacity_goodput_bps().is_some_and(|bps| self.base.goodput_bps > BEYOND * bps);
                let kind = match plateau {
                    Some(profile) if fell => {
                        format!("; in the profile after it {}: the capacity is not constant", profile.words())
                    }
                    Some(profile) => format!("; {}", profile.words()),
                    None if self.at_link() => "; the slower link is full".to_owned(),
                    None => String::new(),
                };
                format!("healthy: at capacity, {goodput}{kind}")
            }
            (Status::Limited, Some(Finding { id, at, summary, .. })) => {
                format!("limited to {goodput} by {id} at {at}: {summary}")
            }
            (_, Some(Finding { id, at, summary, .. })) => {
                format!("{goodput}; {id} at {at} is suspected ({summary}); only one piece of evidence supports it")
            }
            (_, None) => match self.stolen() {
                Some((part, at)) => format!(
                    "{goodput}; what limits it is unknown, and the hypervisor took {} of the CPU time of the {at}: repeat the test when \
                     that machine is idle",
                    units::percent(part)
                ),
                None => format!("{goodput}; what limits it is unknown"),
            },
        }
    }

    fn grew(&self, role: Role, key: FactKey) -> Option<u64> {
        self.end(role)?.counts.get(key.name).copied()
    }

    /// The latest that is known, from the end of the baseline or the inventory.
    fn number(&self, role: Role, key: FactKey) -> Option<f64> {
        let known = self.end(role).and_then(|end| end.facts.get(key.name).copied());
        let is_none = || key.name == keys::QDISC_RATE.name && self.end(role).is_some_and(|end| end.is_unshaped);
        known.or_else(|| self.host(role).filter(|_| !is_none())?.number(key))
    }

    /// A goodput above the speed of the link says that the speed was never enforced.
    fn fills_link(&self) -> bool {
        if self.full_of_packets().is_some() {
            return false;
        }
        self.at_link()
            || (self.filled().is_some_and(|part| (AT_CAPACITY..=self.beyond()).contains(&part))
                && !self.has_room_beside_others())
            || full_in_each_phase(self).is_ok()
    }

    fn no_more_passes(&self) -> bool {
        self.fills_link() && (!self.policed() || self.at_link())
    }

    fn cannot_exclude(&self, what: Excludes, role: Role) -> Option<String> {
        match what {
            Excludes::Nothing => None,
            Excludes::FullCore => without_cpu_times(self, role),
            Excludes::Hosts => hosts(self),
        }
    }

    fn settled(&self, _: f64) -> bool {
        self.fills_link()
    }
}

/// Why the hosts cannot be excluded as the limit.
fn hosts(evidence: &TcpEvidence) -> Option<String> {
    // A host that holds the load back does not do so at the very speed of the other one's link.
    if evidence.at_link() {
        return None;
    }
    let is_unseen = |role: &Role| evidence.text(*role, keys::NIC_KIND).is_none();
    // A host that shows nothing at all, where UDP meets the same limit.
    let meets = evidence.udp_meets_it();
    let is_excused = |role: &Role| meets && evidence.host(*role).is_none_or(|host| host.facts.is_empty());
    let seems = |role: &Role| is_unseen(role) && !is_excused(role) && !waits_before(evidence, *role);
    if let Some(role) = ENDS.into_iter().find(seems) {
        let at = evidence.place(role);
        return Some(format!("nothing is known of the device of the {at}, so a limit there cannot be excluded"));
    }
    if evidence.text(Role::Sender, keys::QDISC_ROOT_KIND).is_none() && !is_excused(&Role::Sender) {
        let at = evidence.place(Role::Sender);
        return Some(format!(
            "nothing is known of the queueing discipline of the {at}, so a shaper there cannot be excluded"
        ));
    }
    if let Some(role) = ENDS.into_iter().find(|role| encrypts_at_full_speed(evidence, *role)) {
        return Some(format!(
            "a core of the {} is full beside the load's own work: what its tunnel needs to encrypt cannot be excluded",
            evidence.place(role)
        ));
    }
    if ENDS.iter().any(is_excused) {
        return ENDS.into_iter().filter(|role| !is_excused(role)).find_map(|role| without_cpu_times(evidence, role));
    }
    // At the rate of the slower link no host can be what holds it back.
    if evidence.fills_link() {
        return None;
    }
    if evidence.base.shares.is_none() {
        return Some("the sender's kernel does not report what limited it, so its ends cannot be excluded".to_owned());
    }
    if evidence.base.window_full_share.is_none() {
        return Some(
            "the window that the receiver announced could not be read, so a slow reader cannot be excluded".to_owned(),
        );
    }
    if evidence.base.buffer_room_share.is_none() {
        return Some(
            "the memory of the sender's socket could not be read, so a slow writer cannot be excluded".to_owned(),
        );
    }
    ENDS.into_iter().filter(|role| !is_unseen(role)).find_map(|role| without_cpu_times(evidence, role))
}

/// Whether data waits for so long on its way to a receiver of which nothing is known (iperf3, another program) that no core and no reader
/// there can be why, and four times the streams carry no more: what is full lies before it, or is its link.
fn waits_before(evidence: &TcpEvidence, role: Role) -> bool {
    let long = evidence.queue_us().is_some_and(|us| us >= LONG_QUEUE_US);
    let no_more = evidence.made(&MORE_STREAMS).is_some_and(|more| more.goodput_bps < NO_MORE * evidence.goodput_bps());
    role == Role::Receiver && long && no_more
}

/// Whether a tunnel of that host may be what fills a core. One kernel that is both ends runs the path as well.
fn encrypts_at_full_speed(evidence: &TcpEvidence, role: Role) -> bool {
    let (Some(end), Some(host)) = (evidence.end(role), evidence.host(role)) else { return false };
    !evidence.same_machine() && may_encrypt(host, &end.cores, end.thread_share.unwrap_or(0.0))
}

fn without_cpu_times(evidence: &TcpEvidence, role: Role) -> Option<String> {
    let end = evidence.end(role)?;
    let at = evidence.place(role);
    (end.thread_share.is_none() && end.cores.is_empty())
        .then(|| format!("the times of the {at}'s CPUs could not be read, so a full core cannot be excluded"))
}

#[cfg(test)]
mod tests {
    use crate::diagnose;
    use crate::testing::profile::ProfiledPath;
    use crate::testing::{Hidden, Scene, core, fact, no_more, tcp_end, verdict, virtual_hosts, with};
    use narrows_model::{Status, Unit, Verdict};

    /// A path that carries 300 Mbit/s behind a queue, between hosts whose links are not known.
    fn queued() -> Scene {
        virtual_hosts(Scene { goodput_bps: 300e6, early_peak_bps: 300e6, ..Scene::default() })
    }

    #[track_caller]
    fn assert_open(verdict: &Verdict, why: &str) {
        assert_eq!(verdict.status, Status::Unknown, "{verdict:#?}");
        assert!(verdict.missing.iter().any(|missing| missing.contains(why)), "{:?}", verdict.missing);
    }

    #[test]
    fn a_queue_is_capacity_only_where_both_ends_can_be_excluded() {
        let queued = queued();
        assert_eq!(verdict(&queued, &no_more(&queued)).status, Status::Healthy);
        for (hidden, why) in [
            (&[Hidden::LimitedTimes] as &[Hidden], "the sender's kernel does not report what limited it"),
            (&[Hidden::SocketMemory], "a slow writer"),
            (&[Hidden::Cores, Hidden::Threads], "the client's CPUs"),
        ] {
            let hidden = Scene { hidden, ..queued.clone() };
            assert_open(&verdict(&hidden, &no_more(&hidden)), why);
        }
        for hidden in [&[Hidden::Cores] as &[Hidden], &[Hidden::Threads]] {
            let hidden = Scene { hidden, ..queued.clone() };
            assert_eq!(verdict(&hidden, &no_more(&hidden)).status, Status::Healthy, "the other one tells");
        }
    }

    #[test]
    fn what_waits_for_long_waits_before_a_receiver_that_shows_nothing() {
        let unseen = |rtt_us| Scene { receiver_facts: Vec::new(), rtt_us, ..queued() };
        let (long, short) = (unseen(86_000), unseen(60_000));
        assert_eq!(verdict(&long, &no_more(&long)).status, Status::Healthy);
        assert_open(&verdict(&short, &no_more(&short)), "the device of the server");
        let slow_reader = Scene { rwnd: 0.9, rcvbuf_filled: 0.9, ..long };
        assert_ne!(verdict(&slow_reader, &no_more(&slow_reader)).status, Status::Healthy);
    }

    #[test]
    fn a_core_that_encrypts_all_the_time_may_be_the_limit() {
        let of = |kind: &str, busy: f64| {
            let facts = with(queued().sender_facts, fact("nic.kind", kind, Unit::Text));
            let scene = Scene { sender_facts: facts, other_core: core(0.02, busy), ..queued() };
            verdict(&scene, &no_more(&scene))
        };
        assert_open(&of("wireguard", 0.96), "what its tunnel needs to encrypt");
        assert_eq!(of("wireguard", 0.5).status, Status::Healthy);
        assert_eq!(of("veth", 0.96).status, Status::Healthy);
    }

    #[test]
    fn a_core_that_packets_fill_makes_no_path_healthy() {
        let path = ProfiledPath { rate_bps: 312e6, burst_bps: 312e6, ..ProfiledPath::default() };
        let of = |softirq: f64| {
            let scene = Scene { receiver_core: core(softirq, 0.02), profile: Some(path), rtt_us: 36_000, ..queued() };
            verdict(&scene, &no_more(&scene))
        };
        assert_eq!(of(0.7).status, Status::Healthy);
        let full = of(0.95);
        assert_eq!(
            (full.status, full.causes[0].id.as_str()),
            (Status::Suspected, "softirq-core-saturated"),
            "{full:#?}"
        );
    }

    #[test]
    fn a_full_link_of_one_host_needs_nothing_else() {
        let hidden = &[Hidden::LimitedTimes, Hidden::Cores, Hidden::Threads];
        assert_eq!(verdict(&Scene { hidden, ..Scene::default() }, &[]).status, Status::Healthy);
        // The link of either host is full, whatever the other one has.
        let silent = Scene { receiver_facts: Vec::new(), ..Scene::default() };
        assert_eq!(verdict(&silent, &[]).status, Status::Healthy);
        let below = Scene { goodput_bps: 850e6, early_peak_bps: 850e6, ..silent };
        assert_ne!(verdict(&below, &no_more(&below)).status, Status::Healthy);
    }

    #[test]
    fn where_the_sender_shows_nothing_the_receiver_knows_the_size_of_a_segment() {
        let scene = Scene { sender_facts: Vec::new(), hidden: &[Hidden::Mss], ..Scene::default() };
        let mut run = scene.run(&[]);
        assert_ne!(diagnose(&run, 0).expect("a baseline").verdict.status, Status::Healthy);
        for sample in &mut tcp_end(&mut run.trials[0].trial.server).streams[0].samples {
            sample.tcp.rcv_mss_bytes = Some(1_448);
        }
        assert_eq!(diagnose(&run, 0).expect("a baseline").verdict.status, Status::Healthy);
    }

    #[test]
    fn a_slow_writer_cannot_be_told_from_a_full_core_without_the_times_of_its_cpus() {
        let mut idle = Scene { goodput_bps: 200e6, rtt_us: 35_200, busy: 0.3, ..Scene::default() };
        idle.load.application.write_bps = 200_000_000;
        assert_eq!(verdict(&idle, &[]).causes[0].id, "sender-app-slow");
        assert_open(&verdict(&Scene { hidden: &[Hidden::Cores, Hidden::Threads], ..idle }, &[]), "a full core");
    }
}
