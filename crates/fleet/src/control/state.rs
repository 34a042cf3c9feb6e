//! What a controller knows beside tests, so that the next one goes on where it ended.

use super::latest::back;
use super::{Control, HOUR_MS, Kind, Load, Place, Truth};
use crate::judge::{Judge, Kept as KeptJudge};
use crate::protocol::Found;
use crate::usual::Odd;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    judge: KeptJudge,
    unreached: Vec<[String; 2]>,
    drained: Vec<String>,
    paused_until_ms: u64,
    /// Bytes of loads on a day.
    #[serde(default)]
    carried: Vec<Carried>,
    /// Paths that are worse than usual.
    #[serde(default)]
    worse: Vec<Worse>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Worse {
    from: String,
    to: String,
    kind: Kind,
    odd: Odd,
}

#[derive(Debug, Serialize, Deserialize)]
struct Carried {
    mesh: String,
    test: String,
    day: u64,
    bytes: u64,
}

/// The last result of a path stands for so many periods after a restart.
const STANDS: u64 = 2;
/// Results of so long tell what is usual.
const LOADS_BACK_MS: u64 = 20 * HOUR_MS;
const PROBES_BACK_MS: u64 = 6 * HOUR_MS;
/// Periods at least: as many values as tell something.
const BACK: u64 = 10;

impl<T: Truth> Control<'_, T> {
    /// Keeps what has to be known after a restart; to be called when what [`Control::tick`] returned is on its way.
    /// Errors: the store's.
    pub fn keep(&mut self) -> Result<(), T::Error> {
        let name = |host: &usize| self.names[*host].to_owned();
        let drained =
            self.sessions.iter().enumerate().filter(|(_, session)| session.drained).map(|(host, _)| name(&host));
        let worse =
            |(kind, load, odd): (Kind, Load, Odd)| Worse { from: name(&load.from), to: name(&load.to), kind, odd };
        let carried = |(place, (day, bytes)): (&Place, &(u64, u64))| Carried {
            mesh: self.fleet.meshes[place.0].name.clone(),
            test: self.test(*place).word(),
            day: *day,
            bytes: *bytes,
        };
        let kept = Kept {
            judge: self.judge.kept(&self.names),
            unreached: self.unreached.iter().map(|pair| pair.each_ref().map(name)).collect(),
            drained: drained.collect(),
            paused_until_ms: self.paused_until_ms,
            carried: self.carried.iter().map(carried).collect(),
            worse: self.latest.odd().map(worse).collect(),
        };
        let bytes = serde_json::to_vec(&kept).unwrap_or_default();
        if self.kept != bytes {
            self.truth.keep(&bytes)?;
            self.kept = bytes;
        }
        Ok(())
    }

    /// The paths that the file has tests of, in both directions.
    fn tested(&self) -> BTreeSet<(Kind, Load)> {
        let of = |place: Place| {
            let loads = self.schedule.rounds(place.0, place.1).iter().flatten();
            loads.flat_map(move |load| [*load, back(*load)].map(|load| (self.test(place).kind, load)))
        };
        self.places().flat_map(of).collect()
    }

    /// Takes over what an earlier controller knew.
    pub(super) fn restore(&mut self, now_ms: u64) -> Result<(), T::Error> {
        let kept = self.truth.kept()?.unwrap_or_default();
        // What another version wrote and this one cannot read is no reason not to begin.
        let mut worse = Vec::new();
        if let Ok(kept) = serde_json::from_slice::<Kept>(&kept) {
            let tested = self.tested();
            self.judge = Judge::restored(kept.judge, &self.names, &|kind, load| tested.contains(&(kind, *load)));
            worse = kept.worse;
            let pair = |[a, b]: &[String; 2]| Some([self.host(a)?, self.host(b)?]);
            self.unreached = kept.unreached.iter().filter_map(pair).collect();
            for host in kept.drained.iter().filter_map(|name| self.host(name)).collect::<Vec<_>>() {
                self.sessions[host].drained = true;
            }
            self.paused_until_ms = kept.paused_until_ms;
            for place in self.places().collect::<Vec<_>>() {
                let is =
                    |it: &&Carried| it.mesh == self.fleet.meshes[place.0].name && it.test == self.test(place).word();
                if let Some(Carried { day, bytes, .. }) = kept.carried.iter().find(is) {
                    self.carried.insert(place, (*day, *bytes));
                }
            }
        }
        let mut results = Vec::new();
        for place in self.places().collect::<Vec<_>>() {
            let (kind, every_ms) = (self.test(place).kind, self.test(place).every_ms);
            let back_ms = if kind == Kind::Load { LOADS_BACK_MS } else { PROBES_BACK_MS }.max(BACK * every_ms);
            results.extend(self.truth.results(place.0, place.1, now_ms.saturating_sub(back_ms))?);
        }
        // A path may have several tests.
        results.sort_by_key(|(due_ms, ..)| *due_ms);
        for (due_ms, name, result) in results {
            if let Ok(found) = serde_json::from_slice::<Found>(&result) {
                self.latest.take(name.load, false, found, due_ms);
            }
        }
        // The old ones tell what was usual, and nothing of now.
        for kind in [Kind::Load, Kind::Probe] {
            let tests = self.fleet.meshes.iter().flat_map(|mesh| &mesh.tests).filter(|test| test.kind == kind);
            let longest_ms = tests.map(|test| test.every_ms).max().unwrap_or(0);
            self.latest.forget(kind, now_ms.saturating_sub(STANDS * longest_ms));
        }
        for Worse { from, to, kind, odd } in worse {
            if let (Some(from), Some(to)) = (self.host(&from), self.host(&to)) {
                self.latest.restore(kind, Load { from, to }, odd);
            }
        }
        Ok(())
    }
}
