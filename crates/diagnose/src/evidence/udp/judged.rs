//! What the judge asks of the evidence of UDP.

use super::UdpEvidence;
use crate::causes::shared::udp::PART;
use crate::evidence::cores::{NO_TIME_LEFT, may_encrypt};
use crate::evidence::profile::PathProfile;
use crate::experiments;
use crate::judge::{Baseline, Evidence, Excludes, Experiment};
use crate::role::Role;
use narrows_model::{FactKey, Finding, Flow, LoadPlan, Snapshot, Status, keys, words::units};

/// Loss below this is what long paths have, as the rules of TCP take it.
const COMMON: f64 = 1e-4;

/// A sender that stalled for more of its time offered another load.
const MAX_STALLED: f64 = 0.25;

/// A sender's thread or core that is busy for so much of the time is full.
const FULL: f64 = 0.85;

/// Bytes of a frame on Ethernet beside its IP packet: header, check sequence, preamble and gap.
const ON_THE_WIRE: f64 = 38.0;

/// A sender that is behind its plan by less is on time.
const BEHIND: f64 = 0.02;

/// Where proven causes explain this part of the loss, experiments on the path would add little.
const EXPLAINED: f64 = 0.75;

/// If arrivals last this much longer than the load, a queue is draining.
const DRAINS: f64 = 1.01;

impl Evidence for UdpEvidence {
    const EXPERIMENTS: &'static [&'static Experiment] = experiments::UDP;
    const TELLS_HARMLESS: bool = false;

    fn flow(&self) -> Flow {
        self.base.ledger.flow
    }

    fn goodput_bps(&self) -> f64 {
        self.base.goodput_bps
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
            load: LoadPlan::Udp(self.base.plan.clone()),
            flow: self.flow(),
            goodput_bps: self.base.goodput_bps,
            sender: &self.sender,
            congestion_control: None,
            acks_bps: None,
            min_rtt_us: None,
            lost: Some(self.base.loss()),
            carries_bps: self.profile.as_ref().map(PathProfile::sustains_bps),
        }
    }

    fn experiment_bps(&self, id: &str) -> Option<f64> {
        self.experiments.get(id).map(|view| view.goodput_bps)
    }

    fn scaled(&self, factor: f64) -> Self {
        let mut other = self.clone();
        other.base.goodput_bps *= factor;
        other
    }

    fn headline(&self, status: Status, first: Option<&Finding>) -> String {
        let base = &self.base;
        let goodput = units::bps(base.goodput_bps);
        // The rate is over the arrivals, which continue after the load while the queue drains.
        let drained = if base.arrival_seconds >= DRAINS * base.seconds {
            format!(" (over {}, until the queue was empty)", units::micros((base.arrival_seconds * 1e6) as u64))
        } else {
            String::new()
        };
        let outcome = if base.missing() > 0 {
            format!("{goodput} of UDP arrived{drained}, {} lost", units::percent(base.loss()))
        } else {
            format!("{goodput} of UDP, {} below the requested rate", units::percent(base.behind))
        };
        match (status, first) {
            (Status::Healthy, None) => {
                let (offered, missing) = (base.ledger.offered, base.missing());
                let lost = if missing == 0 { "none".to_owned() } else { format!("only {missing}") };
                let late = format!("; the sender itself stalled for {} of its time", units::percent(base.behind));
                let late = if base.behind > BEHIND { late } else { String::new() };
                format!("healthy: {goodput} of UDP, and {lost} of {offered} datagrams lost{late}")
            }
            (Status::Healthy, Some(_)) => {
                let (loss, offered) = (units::percent(base.loss()), units::bps(base.offered_bps));
                format!(
                    "healthy: at capacity, {goodput} of UDP arrived{drained}, {loss} lost because {offered} were offered"
                )
            }
            (Status::Limited, Some(Finding { id, at, summary, .. })) => format!("{outcome}: {id} at {at}, {summary}"),
            (_, Some(Finding { id, at, summary, .. })) => {
                format!("{outcome}; {id} at {at} is suspected ({summary}); only one piece of evidence supports it")
            }
            (_, None) if base.missing() > 0 => format!("{outcome}; it is unknown where datagrams were lost"),
            (_, None) => format!("{outcome}; the cause is unknown"),
        }
    }

    fn grew(&self, role: Role, key: FactKey) -> Option<u64> {
        self.end(role)?.counts.get(key.name).copied()
    }

    fn is_clean(&self) -> bool {
        let base = &self.base;
        let few = base.missing() as f64 <= COMMON * base.ledger.offered as f64;
        // A sender that stalled for moments says nothing against a path that carries all of it.
        let asked_bps = base.offered_bps / (1.0 - base.behind).max(0.1);
        let carried = self.profile.as_ref().is_some_and(|profile| profile.shape.carried_bps >= 1.05 * asked_bps);
        // One whose core is full does so all the time, and could send no more.
        let has_time = base.sender.busiest().is_none_or(|(share, _)| share < FULL);
        few && base.ledger.offered > 0 && (base.behind <= BEHIND || (carried && has_time && base.behind <= MAX_STALLED))
    }

    /// What UDP carries ends at a core that packets fill, or that encrypts them, as at a full path, and whatever a host that shows nothing
    /// drops seems lost on it. One kernel that is both ends runs the path as well.
    fn cannot_exclude(&self, what: Excludes, _: Role) -> Option<String> {
        let ends = [Role::Sender, Role::Receiver]
            .into_iter()
            .filter(|_| what == Excludes::Hosts && !self.base.accounting.one_kernel);
        ends.into_iter().find_map(|role| {
            let (end, host, at) = (self.end(role)?, self.host(role)?, self.place(role));
            if self.base.accounting.silent(at) && !self.exceeds_path_alone() {
                return Some(format!("the {at} gave no counters: loss there cannot be distinguished from loss on the path"));
            }
            if end.cores.iter().any(|core| core.softirq >= NO_TIME_LEFT) {
                return Some(format!("packets take all of a core of the {at}: what the path carries may end there as well"));
            }
            may_encrypt(host, &end.cores, end.thread_share.unwrap_or(0.0)).then(|| {
                format!("a core of the {at} is full beside the load's own work: what its tunnel needs to encrypt cannot be excluded")
            })
        })
    }

    fn settled(&self, share: f64) -> bool {
        share >= EXPLAINED
    }

    fn binds_beside_capacity(&self, share: f64) -> bool {
        share >= PART
    }

    fn unexplained(&self) -> Option<String> {
        let ledger = &self.base.ledger;
        let (count, uncertainty) = (ledger.unexplained.unsigned_abs(), ledger.uncertainty);
        match ledger.unexplained {
            0 => None,
            1.. => Some(format!("no counter accounts for {count} (± {uncertainty}) datagrams")),
            _ => Some(format!("the counters report {count} (± {uncertainty}) more drops than datagrams are missing")),
        }
    }

    /// All that the stages dropped arrives, unless a later stage is as narrow. What the path loses for want of capacity it
    /// loses after any advice.
    fn without_drops(&self, stages: &[&str]) -> Option<f64> {
        let base = &self.base;
        let saved: u64 = stages.iter().map(|id| base.dropped(id)).fold(0, u64::saturating_add);
        if saved == 0 || base.ledger.offered == 0 || stages == ["path"] {
            return None;
        }
        let each = base.offered_bps / base.ledger.offered as f64;
        let all = each * base.ledger.delivered.saturating_add(saved).min(base.ledger.offered) as f64;
        // Behind the sender's own shaper the path was not seen.
        let profile = self.profile.as_ref();
        if profile.is_some_and(|profile| profile.own_shaper) {
            return None;
        }
        let capacity = profile.and_then(|profile| profile.shape.capacity).map(|it| it.bps * base.payload_part(0.0));
        let link = self
            .number(Role::Sender, keys::NIC_SPEED)
            .filter(|_| self.text(Role::Sender, keys::NIC_KIND) == Some("physical"));
        let link = link.filter(|bps| *bps > 0.0).map(|bps| bps * base.payload_part(ON_THE_WIRE));
        let most = [capacity, link].into_iter().flatten().fold(f64::INFINITY, f64::min);
        Some(all.min(most.max(each * base.ledger.delivered as f64)))
    }
}
