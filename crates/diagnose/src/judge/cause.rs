//! A cause as the judge sees it: data and pure functions of the evidence.

use super::assessment::Assessment;
use super::experiment::{Baseline, Experiment};
use crate::role::Role;
use narrows_model::{Ceiling, FactKey, Finding, Fix, Flow, Place, Snapshot, Status};

/// A rate and where it should lie, bits a second.
pub type Within = (f64, [f64; 2]);

/// What limits a load and so hides the effect of losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// A window or a buffer of an end: the load itself met the losses of the path.
    End,
    /// A limit of the path, which drops packets itself: only what was sent below it met the others.
    Path,
}

/// What losses leave of a load, bits a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Losses {
    /// Were the next ones to come as soon as chance allows.
    pub least: f64,
    /// On average, where they are enough to have one.
    pub likely: Option<f64>,
    /// The cause that they are.
    pub id: &'static str,
}

/// A limit that narrows can name, judged by evidence of type `E`.
pub struct Cause<E: 'static> {
    /// The public id; it never changes its meaning. Causes of two protocols may share it.
    pub id: &'static str,
    /// One sentence for a reader who does not know the word.
    pub about: &'static str,
    /// Where it can be.
    pub roles: &'static [Role],
    /// The facts that its rule reads, with the unit that it expects.
    pub needs: &'static [FactKey],
    /// Goodput under this limit alone; `None` where it cannot be given a value.
    pub ceiling: fn(&E, Role) -> Option<Ceiling>,
    /// Whether the dynamic evidence supports it.
    pub assess: fn(&E, Role) -> Assessment,
    /// What it is mistaken for; the other cause's own words against itself are the reason given.
    pub look_alikes: &'static [&'static str],
    pub fix: fn(&E, Role) -> Fix,
    /// Whether a path that this binds is healthy.
    pub healthy: bool,
    /// Among causes that are equally supported the more specific one goes first: higher is more specific.
    pub rank: u8,
    /// What must be known not to bind before this cause is believed.
    pub excludes: Excludes,
    /// Whether it limits each connection by itself: then more connections carry more, where the path has room.
    pub per_connection: bool,
    /// Whether it says why a link that is full carries no more: a full link makes all other causes harmless.
    pub explains_link: bool,
    /// Whether its ceiling may be the next one after another cause is fixed. Not where it is read off the limited load.
    pub predicts: bool,
    /// Whether it is in a device of a host, so that below a tunnel the underlay suffers as well.
    pub device: bool,
    /// The experiment that removes the cause: its goodput is the prediction.
    pub removed_by: Option<&'static Experiment>,
    /// The goodput without it and the interval of that, where counters say what it takes.
    pub without: fn(&E, Role) -> Option<Within>,
    /// The experiment that would add the second witness where one alone supports the cause.
    pub confirmed_by: Option<&'static Experiment>,
    /// The experiment that tells whom a proven cause limits, and with it how to fix it.
    pub detailed_by: fn(&E) -> Option<&'static Experiment>,
    /// The experiment that would show its nearest look-alike: while it can be made and was not, a proof is a suspicion only.
    pub stands_after: Option<&'static Experiment>,
    /// What was carried beside it, bits a second: a lower bound of the goodput without it.
    pub beside: fn(&E) -> Option<f64>,
    /// That it was seen and will hold the load back once nothing else does, where its rule says that it does not now.
    pub lurks: fn(&E) -> Option<String>,
    /// The stages of the packet ledger that drop nothing once it is fixed.
    pub stages: &'static [&'static str],
}

/// A cause that is known only where other limits are known not to bind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excludes {
    /// It is seen directly.
    Nothing,
    /// A limit of the path: neither host may be the limit.
    Hosts,
    /// A slow application: no core of its host may be full.
    FullCore,
}

impl<E> Cause<E> {
    /// What most causes have in common; each states the rest.
    pub const COMMON: Self = Self {
        id: "",
        about: "",
        roles: &[],
        needs: &[],
        ceiling: |_, _| None,
        assess: |_, _| Assessment::CannotTell { why: String::new(), ask: None },
        look_alikes: &[],
        fix: |_, _| Fix::default(),
        healthy: false,
        rank: 0,
        excludes: Excludes::Nothing,
        per_connection: false,
        explains_link: false,
        predicts: true,
        device: false,
        removed_by: None,
        without: |_, _| None,
        confirmed_by: None,
        detailed_by: |_| None,
        stands_after: None,
        beside: |_| None,
        lurks: |_| None,
        stages: &[],
    };
}

impl<E: Evidence> Cause<E> {
    /// What the evidence says of it at a role, the experiment included that would contradict it.
    pub fn weigh(&self, evidence: &E, role: Role) -> Assessment {
        let assessment = (self.assess)(evidence, role);
        let more = self.per_connection.then(|| evidence.more_connections_say()).flatten();
        match (assessment, more) {
            (Assessment::Supports { .. }, Some(other)) => other,
            (assessment, _) => assessment,
        }
    }
}

/// What the judge asks of the evidence of any protocol. Rules read the rest from the type itself.
pub trait Evidence: Clone + 'static {
    /// The experiments that its causes may ask for, most useful first.
    const EXPERIMENTS: &'static [&'static Experiment];

    /// Whether causes that are present on a healthy path are reported as hazards.
    const TELLS_HARMLESS: bool;

    /// The flow that is judged.
    fn flow(&self) -> Flow;

    /// Its goodput in the baseline.
    fn goodput_bps(&self) -> f64;

    /// The inventory of a host; the path has none.
    fn host(&self, role: Role) -> Option<&Snapshot>;

    /// The goodput that the hosts are known to handle by what the load takes of them; no more is foretold where the path's limit is unknown.
    fn reach_bps(&self) -> f64 {
        f64::INFINITY
    }

    /// Goodput that the path carried, where its limit was looked for and not reached.
    fn carries_at_least_bps(&self) -> Option<f64> {
        None
    }

    /// Goodput of the label of the slower link, where nothing else is known of the path and no load reached it.
    fn unreached_label_bps(&self) -> Option<f64> {
        None
    }

    /// What more connections carried together, where that was measured.
    fn more_connections_bps(&self) -> Option<f64> {
        None
    }

    /// What the losses that were met leave of a load that is no longer held back by its ends, or by a limit of the path.
    fn losses_leave(&self, _: Holds) -> Option<Losses> {
        None
    }

    /// The same evidence without a queue on the path: what its ends would allow once nothing waits there.
    fn without_queue(&self) -> Self {
        self.clone()
    }

    /// What experiments are planned from.
    fn baseline(&self) -> Baseline<'_>;

    /// The goodput of an experiment, by its id; `None` where it was not made.
    fn experiment_bps(&self, id: &str) -> Option<f64>;

    /// The same evidence with another goodput. It shows which ceilings are read off the goodput.
    fn scaled(&self, factor: f64) -> Self;

    /// The verdict in one sentence; `first` is the first cause.
    fn headline(&self, status: Status, first: Option<&Finding>) -> String;

    /// By how much a counter of a host grew during the baseline.
    fn grew(&self, role: Role, key: FactKey) -> Option<u64>;

    /// A fact of a host as a number.
    fn number(&self, role: Role, key: FactKey) -> Option<f64> {
        self.host(role)?.number(key)
    }

    /// A fact of a host as words.
    fn text(&self, role: Role, key: FactKey) -> Option<&str> {
        self.host(role)?.text(key)
    }

    /// A fact of a host as on or off.
    fn flag(&self, role: Role, key: FactKey) -> Option<bool> {
        self.number(role, key).map(|value| value != 0.0)
    }

    /// The place of a role in this flow.
    fn place(&self, role: Role) -> Place {
        match role {
            Role::Sender => self.flow().sender(),
            Role::Receiver => self.flow().receiver(),
            Role::Path => Place::Path,
        }
    }

    /// Whether the goodput is all that the slower link carries.
    fn fills_link(&self) -> bool {
        false
    }

    /// Whether no more would pass without another limit. A policer leaves room on its link, and is a limit itself.
    fn no_more_passes(&self) -> bool {
        self.fills_link()
    }

    /// What an experiment says of any limit of each connection, where it carried no more: that none can be what binds or, where what else
    /// held it back cannot be excluded, that nobody can tell.
    fn more_connections_say(&self) -> Option<Assessment> {
        None
    }

    /// The baseline once more, where a host was disturbed during it: it comes before all other experiments.
    fn repeat(&self) -> Option<&'static Experiment> {
        None
    }

    /// What would show it, where that was not measured and nothing else says that the path has room.
    fn more_connections(&self) -> Option<&'static Experiment> {
        None
    }

    /// Why what a cause excludes cannot be excluded; `None` where it can.
    fn cannot_exclude(&self, _: Excludes, _: Role) -> Option<String> {
        None
    }

    /// Whether everything that was asked for arrived, so that no cause is needed.
    fn is_clean(&self) -> bool {
        false
    }

    /// Whether experiments for causes that are open would add nothing; proven causes explain `share` of the loss.
    fn settled(&self, share: f64) -> bool;

    /// Whether what explains this share binds on a path at capacity, too: where shares are parts of what was lost, that is lost all
    /// the same.
    fn binds_beside_capacity(&self, _: f64) -> bool {
        false
    }

    /// What no counter accounts for, in a sentence.
    fn unexplained(&self) -> Option<String> {
        None
    }

    /// Goodput once these stages of the ledger drop nothing; `None` where that changes nothing.
    fn without_drops(&self, _: &[&str]) -> Option<f64> {
        None
    }
}
