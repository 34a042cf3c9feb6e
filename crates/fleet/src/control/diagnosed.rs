//! An incident is diagnosed before it is reported, so that people read what is to be done about it.

use super::latest::back;
use super::sessions::WAITS_MS;
use super::{Control, DIAGNOSIS, Kind, Load, Name, Place, Planned, Truth};
use std::collections::BTreeMap;

/// Loads that are diagnosed at one time: an outage of everything is reported, not examined.
const AT_ONCE: usize = 16;

impl<T: Truth> Control<'_, T> {
    /// Makes ready what is to be reported of incidents that nobody knows of: those that nothing is left to be found out about.
    pub(super) fn reported(&mut self, now_ms: u64) -> Result<(), T::Error> {
        let verdicts = std::mem::take(&mut self.verdicts);
        // Of those that were muted meanwhile, or got better, nothing is reported.
        let unreported = self.judge.incidents().unreported();
        self.examined.retain(|number| unreported.contains(number));
        for number in unreported {
            if let Some(verdict) = verdicts.get(&number) {
                self.ready.extend(self.judge.incidents().report(number, Some(verdict.clone())));
                continue;
            }
            let running = self.diagnosed.values().find(|(of, _)| *of == number).copied();
            if running.is_some_and(|(_, until_ms)| now_ms < until_ms) {
                continue;
            }
            if running.is_none()
                && !self.examined.contains(&number)
                && let Some(name) = self.typical(number, now_ms)
            {
                let test = Planned { due_ms: now_ms, name };
                self.truth.plan(&[test])?;
                self.diagnosed.insert(name, (number, now_ms + WAITS_MS));
                self.examined.insert(number);
                self.due.insert((now_ms, test));
                continue;
            }
            // What was not given until now is no load of its own.
            let diagnosed = &mut self.diagnosed;
            self.due.retain(|(_, it)| diagnosed.get(&it.name).is_none_or(|(of, _)| *of != number));
            diagnosed.retain(|_, (of, _)| *of != number);
            self.ready.extend(self.judge.incidents().report(number, None));
        }
        Ok(())
    }

    /// The diagnosis of a typical path of an incident; `None`: no test of the file loads such a path, or there is no turn for it.
    fn typical(&self, number: u64, now_ms: u64) -> Option<Name> {
        if self.diagnosed.len() >= AT_ONCE {
            return None;
        }
        let element = self.judge.open().into_iter().find(|it| it.number == number)?.element.clone();
        let paths = self.judge.paths(&element)?;
        let places: BTreeMap<Load, Place> = self
            .places()
            .filter(|place| self.test(*place).kind == Kind::Load)
            .flat_map(|place| self.schedule.rounds(place.0, place.1).iter().flatten().map(move |load| (*load, place)))
            .collect();
        let is_dead = |load: Load| {
            let dead = |kind, load| self.latest.dead_since(kind, load).is_some();
            dead(Kind::Load, load) || dead(Kind::Probe, load) || dead(Kind::Probe, back(load))
        };
        // What arrives nowhere is reported, not examined.
        let there = |load: &&Load| {
            let is_there = [load.from, load.to].into_iter().all(|host| self.is_there(host, now_ms));
            is_there && places.contains_key(*load) && !is_dead(**load)
        };
        let ran = |load, at_ms| self.ran(load, at_ms);
        let carried = |load: &Load| self.latest.carried(*load, &ran).unwrap_or(f64::INFINITY);
        // The worst one may have another fault as well.
        let mut paths: Vec<&Load> = paths.iter().filter(there).collect();
        paths.sort_by(|a, b| carried(a).total_cmp(&carried(b)));
        let typical = **paths.get(paths.len() / 2)?;
        let (mesh, test) = *places.get(&typical)?;
        let name = Name { mesh, test, slot: now_ms | DIAGNOSIS, load: typical };
        (!self.diagnosed.contains_key(&name)).then_some(name)
    }

    /// Whether a test is a diagnosis.
    pub(super) const fn is_diagnosis(name: &Name) -> bool {
        name.slot & DIAGNOSIS != 0
    }

    /// A diagnosis is there: its incident can be reported.
    pub(super) fn diagnosis(&mut self, name: &Name, says: Result<String, String>) {
        if let Some((number, _)) = self.diagnosed.remove(name) {
            self.verdicts.insert(number, says.unwrap_or_else(|why| format!("not known: {why}")));
        }
    }
}
