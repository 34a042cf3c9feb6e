//! A fix, tried at the hosts of one load: measured without and with it in turn, and rolled back.

use super::loads::Loads;
use super::members::Members;
use crate::conductor::{At, InForce, sides};
use crate::ends::{Changes, EndsError};
use narrows_diagnose::report::proof_of_rates;
use narrows_model::run::mesh::{MeshLoad, MeshMember, MeshRecord, MeshTried};
use narrows_model::{Change, Finding, Place, Run, Setting, Status};

/// Loads without the fix, and as many with it.
const PAIRS: usize = 3;

/// The hosts of a load.
struct Hosts<'a> {
    members: &'a Members,
    named: &'a [MeshMember],
    /// Who opens it, and the other.
    ends: [usize; 2],
}

impl Hosts<'_> {
    fn at(&self, place: Place) -> Result<usize, EndsError> {
        match place {
            Place::Client => Ok(self.ends[0]),
            Place::Server => Ok(self.ends[1]),
            Place::Path => Err(EndsError::Failed("a path has no settings".to_owned())),
        }
    }

    fn name(&self, place: Place) -> &str {
        self.at(place).map_or("", |at| self.named[at].name.as_str())
    }
}

impl Changes for Hosts<'_> {
    fn apply(&mut self, place: Place, setting: &Setting) -> Result<Change, EndsError> {
        let (at, name) = (self.at(place)?, format!("ssh://{}", self.name(place)));
        let made = self.members.tune(at, &name, |session| session.apply(setting));
        made.map(|change| Change { at: place, ..change }).map_err(EndsError::Failed)
    }

    fn undo(&mut self, change: &Change) -> Result<(), EndsError> {
        let (at, id) = (self.at(change.at)?, &change.id);
        self.members.tune(at, "", |session| session.undo(id)).map(drop).map_err(EndsError::Failed)
    }

    fn keep(&mut self, change: &Change) -> Result<(), EndsError> {
        Err(EndsError::Failed(format!("a mesh keeps no change, and so not `{}`", change.set)))
    }
}

/// The first cause of a diagnosis that limits.
fn found(run: &Run) -> Option<Finding> {
    let verdict = narrows_diagnose::diagnose(run, 0)?.verdict;
    verdict.causes.into_iter().next().filter(|_| verdict.status == Status::Limited)
}

impl Loads<'_> {
    /// Tries the fix that the diagnosis of a load proposes; `None` where it names no cause.
    pub(super) fn proved(&mut self, record: &MeshRecord, load: &MeshLoad, run: &Run) -> Option<MeshTried> {
        let finding = found(run)?;
        let wanted = &finding.fix.settings;
        if wanted.is_empty() {
            let failed = Some(format!("no setting mends it: {}", finding.fix.advice));
            return Some(MeshTried { failed, ..MeshTried::default() });
        }
        let ends = if load.opened_by_receiver { [load.to, load.from] } else { [load.from, load.to] };
        let mut hosts = Hosts { members: self.members, named: &record.members, ends };
        let settings = wanted.iter().map(|(place, set)| format!("{}: {set}", hosts.name(*place))).collect();
        let mut in_force = InForce::default();
        let rates = self.pairs(record, load, wanted, &mut hosts, &mut in_force);
        let left = in_force.end(&mut hosts, false);
        let left: Vec<String> = left
            .iter()
            .map(|(change, why)| format!("cannot roll back `{}` at {}: {why}", change.set, hosts.name(change.at)))
            .collect();
        let (proof, failed) = match rates {
            Ok([before, after]) => (proof_of_rates([&before, &after], &finding), None),
            Err(why) => (None, Some(why)),
        };
        let failed: Vec<String> = failed.into_iter().chain(left).collect();
        Some(MeshTried { settings, proof, failed: (!failed.is_empty()).then(|| failed.join("; ")) })
    }

    /// What the load carries without and with the settings, bit/s.
    fn pairs(
        &mut self,
        record: &MeshRecord,
        load: &MeshLoad,
        wanted: &[At],
        hosts: &mut Hosts<'_>,
        in_force: &mut InForce,
    ) -> Result<[Vec<f64>; 2], String> {
        let mut rates = [Vec::new(), Vec::new()];
        for pair in 0..PAIRS {
            for fixed in sides(pair) {
                if self.stop.is_set() {
                    return Err("interrupted".to_owned());
                }
                let word = if fixed { "with" } else { "without" };
                (self.watch)(&format!("proof {} of {PAIRS}: {word} the fix", pair + 1));
                in_force.reach(hosts, if fixed { wanted } else { &[] }).map_err(|error| error.to_string())?;
                rates[usize::from(fixed)].push(self.one(load, record)?.goodput_bps);
            }
        }
        Ok(rates)
    }
}
