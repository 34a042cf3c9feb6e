//! What the path profile says of the path, in the terms of the rules.

use crate::evidence::shaper::own_rate;
use crate::experiments::profile::PATH_PROFILE;
use crate::judge::Experiment;
use narrows_model::run::report::{PathProfileView, ProfileStepView};
use narrows_model::words::units;
use narrows_model::{Direction, FactKey, Flow, ProfilePlan, ProfileTrial, Run, keys};
use narrows_search::profile::{Plateau, Shape, StepView};

/// A path profile of the judged direction.
#[derive(Debug, Clone)]
pub struct PathProfile {
    /// What its steps showed.
    pub shape: Shape,
    /// Whether the sender's own shaper held the steps back: then of the path behind it only bursts are known.
    pub own_shaper: bool,
}

/// Probes of the idle path that were answered, of either size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probes {
    /// Those of a few bytes.
    pub small: u32,
    /// Those as large as the datagrams of the steps …
    pub full: u32,
    /// … which are as large as the path carries: bytes of their IP packets.
    pub packet_bytes: u32,
}

impl Probes {
    /// Those of the latest profile of a flow's direction up to a round, whatever came of its steps.
    pub fn of(run: &Run, round: u32, flow: Flow) -> Option<Self> {
        (0..=round).rev().find_map(|round| {
            let of_flow = |(id, _): &(&str, _)| *id == PATH_PROFILE.id;
            let (_, trial) = run.experiments::<ProfilePlan>(round).filter(of_flow).last()?;
            let probes = &trial.client.probes;
            let full = u32::try_from(probes.iter().filter(|probe| probe.bytes > 0).count()).unwrap_or(u32::MAX);
            let all = u32::try_from(probes.len()).unwrap_or(u32::MAX);
            let packet_bytes = trial.client.datagram_bytes.saturating_add(trial.client.header_bytes);
            (trial.plan.direction == flow.direction()).then(|| Self { small: all - full, full, packet_bytes })
        })
    }
}

/// Hosts that dropped this part of what the steps lost leave nothing to say of the path.
const BY_HOSTS: f64 = 0.2;

/// Packets that the two hosts themselves dropped during a profile, whoever's they were.
fn dropped_by_hosts(trial: ProfileTrial<'_>, flow: Flow) -> u64 {
    let grew = |place, keys: &[FactKey]| {
        let counts = trial.end(place).map(|end| end.after.counts_since(&end.before)).unwrap_or_default();
        keys.iter().filter_map(|key| counts.get(key.name)).sum::<u64>()
    };
    // A tunnel counts what was refused below it as dropped, too.
    let device = grew(flow.sender(), &[keys::NIC_COUNTER_TX_DROPPED, keys::NIC_COUNTER_TX_ERRORS]);
    grew(flow.sender(), &[keys::QDISC_DROPS]).max(device)
        + grew(
            flow.receiver(),
            &[keys::SOFTNET_DROPPED, keys::NIC_COUNTER_RX_MISSED_ERRORS, keys::NIC_COUNTER_RX_FIFO_ERRORS],
        )
}

/// Whether the steps met the sender's own shaper: it held packets back, and what passed is no less than its rate. A bucket of it lets short
/// steps pass faster, so that what lies behind it is not seen.
fn met_own_shaper(trial: ProfileTrial<'_>, flow: Flow, shape: &Shape) -> bool {
    let end = trial.end(flow.sender());
    let held = end.is_some_and(|end| {
        end.after.counts_since(&end.before).get(keys::QDISC_OVERLIMITS.name).is_some_and(|times| *times > 0)
    });
    let rate = end.and_then(|end| own_rate(&end.before, &end.after));
    // Without a capacity the steps ended where the sender could go no faster: its socket waits for what the shaper holds.
    let met = |rate: f64| shape.capacity.map_or(shape.carried_bps >= 0.8 * rate, |it| it.interval_bps[1] >= 0.9 * rate);
    held && rate.is_some_and(met)
}

/// A shaper whose bucket gives a transfer of a second less than this much more than its rate holds nobody back: it is the capacity.
pub(crate) const NOTICED: f64 = 0.15;

impl PathProfile {
    /// Bits of IP packets a second that the path is known to carry.
    pub fn sustains_bps(&self) -> f64 {
        self.shape.capacity.map_or(self.shape.carried_bps, |capacity| capacity.bps)
    }

    /// Whether a shaper on the path holds back what the path carried before: by how much a transfer of a second exceeds the sustained
    /// rate while the bucket lasts (RFC 2475 section 2.3.3.3). Small buckets let only bursts of milliseconds pass.
    pub fn shaper_limits(&self) -> bool {
        let shape = &self.shape;
        let (Some(capacity), Some(Plateau::Shaper { bucket_bytes })) = (shape.capacity, shape.plateau) else {
            return false;
        };
        let faster = shape.burst_bps.is_none_or(|burst| burst >= (1.0 + NOTICED) * capacity.bps);
        faster && bucket_bytes * 8.0 >= NOTICED * capacity.bps
    }

    /// The latest profile of a flow's direction up to a round; `None` where none was made.
    pub fn of(run: &Run, round: u32, flow: Flow) -> Option<Self> {
        Self::by(&PATH_PROFILE, run, round, flow)
    }

    /// The same of an experiment.
    pub(crate) fn by(experiment: &Experiment, run: &Run, round: u32, flow: Flow) -> Option<Self> {
        (0..=round).rev().find_map(|round| {
            let of_flow = |(id, _): &(&str, _)| *id == experiment.id;
            let (_, trial) = run.experiments::<ProfilePlan>(round).filter(of_flow).last()?;
            let direction = flow.direction();
            let fits = trial.plan.direction == direction && direction != Direction::Both;
            let shape = fits.then(|| Shape::of(trial.plan, trial.client)).flatten()?;
            let dropped = dropped_by_hosts(trial, flow);
            let lost: u64 = shape.steps.iter().map(|step| u64::from(step.lost)).sum();
            let by_host = lost > 0 && dropped as f64 >= BY_HOSTS * lost as f64;
            let own_shaper = met_own_shaper(trial, flow, &shape);
            let shape = if by_host || own_shaper { shape.limited_by_host() } else { shape };
            Some(Self { shape, own_shaper })
        })
    }

    /// The view of it in a report; steps in the order of their rates.
    pub fn view(&self) -> PathProfileView {
        let shape = &self.shape;
        let (limit, bucket_bytes) = match shape.plateau {
            None => (None, None),
            Some(Plateau::Queue) => (Some("queue"), None),
            Some(Plateau::ShortQueue) => (Some("short-queue"), None),
            Some(Plateau::Shaper { bucket_bytes }) => (Some("shaper"), Some(bucket_bytes)),
            Some(Plateau::Policer { bucket_bytes }) => (Some("policer"), Some(bucket_bytes)),
        };
        let step = |view: &StepView| ProfileStepView {
            offered_bps: view.offered_bps,
            delivered_bps: view.delivered_bps(),
            loss: view.sustained_loss,
            queue_us: view.queue_us,
        };
        let mut steps: Vec<ProfileStepView> =
            shape.steps.iter().filter(|view| !view.disturbed || view.far_behind()).map(step).collect();
        steps.sort_by(|a, b| a.offered_bps.total_cmp(&b.offered_bps));
        PathProfileView {
            summary: self.words(),
            capacity_bps: shape.capacity.map(|capacity| capacity.bps),
            capacity_interval_bps: shape.capacity.map(|capacity| capacity.interval_bps),
            limit: limit.map(str::to_owned),
            bucket_bytes,
            carried_bps: shape.carried_bps,
            burst_bps: shape.burst_bps,
            idle_rtt_us: shape.idle_rtt_us.map(|rtt| [rtt.min, rtt.median, rtt.p95]),
            jitter_us: shape.jitter_us,
            queue_us: shape.queue_us,
            lost_below: [shape.sent_below, shape.lost_below],
            reordered: shape.reordered,
            duplicated: shape.duplicated,
            steps,
        }
    }

    /// The bucket, and how fast it is emptied.
    fn bucket_words(&self, bucket_bytes: f64) -> String {
        let fast = self.burst_words().map_or_else(String::new, |words| format!(" {words}"));
        format!(" (bursts of at least {} pass{fast})", units::bytes(bucket_bytes as u64))
    }

    /// How fast bursts pass: what passes as fast as it was sent shows no more than that.
    pub fn burst_words(&self) -> Option<String> {
        let more = if self.shape.burst_slowed { "" } else { " or more" };
        Some(format!("at {}{more}", units::bps(self.shape.burst_bps?)))
    }

    /// The rate that a policer sustains, whatever its bucket lets pass at first; `None` where no policer was seen.
    pub fn policed_words(&self) -> Option<String> {
        let Plateau::Policer { .. } = self.shape.plateau? else { return None };
        Some(format!("{}, headers included", units::bps(self.shape.capacity?.bps)))
    }

    /// What it is in a few words.
    pub fn words(&self) -> String {
        let shape = &self.shape;
        match (&shape.capacity, &shape.plateau) {
            (Some(capacity), Some(plateau)) => {
                let what = match plateau {
                    Plateau::Queue => "behind a queue".to_owned(),
                    Plateau::Shaper { bucket_bytes } => {
                        format!("behind a shaper{}", self.bucket_words(*bucket_bytes))
                    }
                    Plateau::Policer { bucket_bytes } => {
                        format!("by a policer{}", self.bucket_words(*bucket_bytes))
                    }
                    Plateau::ShortQueue => "behind a short queue".to_owned(),
                };
                let beside = shape.shared.map_or_else(String::new, |shared| {
                    format!(" beside {} of other traffic", units::bps(shared.others_bps))
                });
                format!("the path sustains {} {what}{beside}", units::bps(capacity.bps))
            }
            _ if shape.carried_bps <= 0.0 => {
                "the capacity is not known: every step was disturbed or lost packets".to_owned()
            }
            _ if self.own_shaper => {
                let carried = units::bps(shape.carried_bps);
                format!("the path carries at least {carried}; the sender's own shaper held the steps back above that")
            }
            _ if shape.host_limited => {
                format!(
                    "the path carries at least {}; a host could not send or receive UDP faster, so the test stopped there",
                    units::bps(shape.carried_bps)
                )
            }
            _ => format!("the path carries at least {}", units::bps(shape.carried_bps)),
        }
    }
}

/// The last profile of a round's judged flow, where one was made.
pub fn of_run(run: &Run, round: u32) -> Option<PathProfile> {
    [Flow::Up, Flow::Down].into_iter().find_map(|flow| PathProfile::of(run, round, flow))
}
