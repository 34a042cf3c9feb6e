//! What a controller knows beside tests, so that the next one goes on where it ended.

use super::{Control, HOUR_MS, Kind, Place, Truth};
use crate::judge::{Judge, Kept as KeptJudge};
use crate::protocol::Found;
use serde::{Deserialize, Serialize};

#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    judge: KeptJudge,
    unreached: Vec<[String; 2]>,
    drained: Vec<String>,
    paused_until_ms: u64,
    /// Bytes of loads on a day.
    #[serde(default)]
    carried: Vec<Carried>,
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

impl<T: Truth> Control<'_, T> {
    /// Keeps what has to be known after a restart; to be called when what [`Control::tick`] returned is on its way.
    /// Errors: the store's.
    pub fn keep(&mut self) -> Result<(), T::Error> {
        let name = |host: &usize| self.names[*host].to_owned();
        let drained =
            self.sessions.iter().enumerate().filter(|(_, session)| session.drained).map(|(host, _)| name(&host));
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
        };
        let bytes = serde_json::to_vec(&kept).unwrap_or_default();
        if self.kept != bytes {
            self.truth.keep(&bytes)?;
            self.kept = bytes;
        }
        Ok(())
    }

    /// Takes over what an earlier controller knew.
    pub(super) fn restore(&mut self, now_ms: u64) -> Result<(), T::Error> {
        let kept = self.truth.kept()?.unwrap_or_default();
        // What another version wrote and this one cannot read is no reason not to begin.
        if let Ok(kept) = serde_json::from_slice::<Kept>(&kept) {
            self.judge = Judge::restored(kept.judge, &self.names);
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
        for place in self.places().collect::<Vec<_>>() {
            let back_ms = if self.test(place).kind == Kind::Load { LOADS_BACK_MS } else { PROBES_BACK_MS };
            let since_ms = now_ms.saturating_sub(back_ms);
            for (due_ms, name, result) in self.truth.results(place.0, place.1, since_ms)? {
                if let Ok(found) = serde_json::from_slice::<Found>(&result) {
                    self.latest.take(name.load, false, found, due_ms);
                    // It tells what was usual, and nothing of now.
                    if due_ms + STANDS * self.test(place).every_ms < now_ms {
                        self.latest.miss(self.test(place).kind, name.load);
                    }
                }
            }
        }
        Ok(())
    }
}
