//! A fix, tried at the hosts of one load: measured without and with it in turn, and rolled back.

use super::loads::Loads;
use super::members::Members;
use crate::conductor::{At, InForce, sides};
use crate::ends::{Changes, EndsError};
use crate::remote::{RemoteError, Session};
use narrows_diagnose::report::proof_of_rates;
use narrows_model::run::mesh::{MeshLoad, MeshMember, MeshRecord, MeshTried};
use narrows_model::{Change, Finding, Place, Run, Setting, Status, Unit};

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

    fn tune<T>(&self, place: Place, act: impl FnOnce(&Session) -> Result<T, RemoteError>) -> Result<T, EndsError> {
        self.members.tune(self.at(place)?, act).map_err(EndsError::Failed)
    }

    /// Whether the server of a host's changes is there.
    fn is_there(&self, place: Place) -> Result<(), String> {
        self.tune(place, |_| Ok(())).map_err(|error| format!("{}: {error}", self.name(place)))
    }

    /// Why a setting is not tried: the diagnosis is the opener's word, and of the other host that counts only where the host says the same
    /// of itself, and for kernel parameters alone.
    fn refuses(&self, (place, setting): &At, run: &Run, cause: &str) -> Option<String> {
        if *place == Place::Client {
            return None;
        }
        let (opener, other) = (self.name(Place::Client), self.name(*place));
        if !matches!(setting, Setting::Sysctl { .. }) {
            return Some(format!(
                "it changes a device of {other} by the word of {opener}; run `narrows diagnose` at {other}"
            ));
        }
        let weighed = narrows_diagnose::weigh(run, 0, cause).unwrap_or_default();
        let told = |key: &str| run.server.facts.iter().find(|fact| fact.key == key && fact.unit != Unit::Count);
        let own = |key: &str| self.named[self.ends[1]].host.facts.iter().find(|fact| fact.key == key);
        let differs = weighed.into_iter().flat_map(|it| it.read).find_map(|(key, _)| {
            let (told, own) = (told(&key)?, own(&key)?);
            (told.value != own.value).then_some(key)
        });
        differs.map(|key| format!("{opener} and {other} differ in what they say of {key} there"))
    }
}

impl Changes for Hosts<'_> {
    fn apply(&mut self, place: Place, setting: &Setting) -> Result<Change, EndsError> {
        self.tune(place, |session| session.apply(setting)).map(|change| Change { at: place, ..change })
    }

    fn undo(&mut self, change: &Change) -> Result<(), EndsError> {
        self.tune(change.at, |session| session.undo(&change.id)).map(drop)
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
        let tried = MeshTried { settings, ..MeshTried::default() };
        let refused = wanted.iter().find_map(|it| hosts.refuses(it, run, &finding.id));
        if let Some(why) = refused {
            return Some(MeshTried { failed: Some(why), ..tried });
        }
        let mut in_force = InForce::default();
        let rates = self.pairs(record, load, wanted, &mut hosts, &mut in_force);
        let left = in_force.end(&mut hosts, false);
        let left = left.iter().map(|(change, why)| format!("`{}` at {}: {why}", change.set, hosts.name(change.at)));
        let (proof, failed) = match rates {
            Ok([before, after]) => {
                let proof = proof_of_rates([&before, &after], &finding);
                let none = proof.is_none().then(|| "its rates give no interval".to_owned());
                (proof, none)
            }
            Err(why) => (None, Some(why)),
        };
        Some(MeshTried { proof, failed, left: left.collect(), ..tried })
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
        for (place, _) in wanted {
            hosts.is_there(*place)?;
        }
        let mut rates = [Vec::new(), Vec::new()];
        for pair in 0..PAIRS {
            for fixed in sides(pair) {
                if self.stop.is_set() {
                    return Err("interrupted".to_owned());
                }
                if let Some(why) = self.spent(record, record.plan.duration_ms) {
                    return Err(why.to_owned());
                }
                let word = if fixed { "with" } else { "without" };
                (self.watch)(&format!("proof {} of {PAIRS}: {word} the fix", pair + 1));
                in_force.reach(hosts, if fixed { wanted } else { &[] }).map_err(|error| error.to_string())?;
                let goodput_bps = self.one(load, record)?.goodput_bps;
                self.count(goodput_bps, record.plan.duration_ms);
                // Else it was measured without what its server had undone meanwhile.
                for (place, _) in wanted.iter().filter(|_| fixed) {
                    hosts.is_there(*place)?;
                }
                rates[usize::from(fixed)].push(goodput_bps);
            }
        }
        Ok(rates)
    }
}
