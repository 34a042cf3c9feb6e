//! The order of the search: fixes of the diagnosis, safe settings together and alone, leave-one-out, confirmation.

use super::candidates::{self, Candidate, TUNABLE};
use super::measure::{CONFIRM_PAIRS, DIAGNOSIS_MS, Pairs};
use super::state::{Member, Optimiser};
use crate::conductor::At;
use crate::ends::EndsError;
use narrows_model::Setting;
use narrows_model::run::optimise::OptimiseGain;
use std::mem::discriminant;

/// Pairs that decide, and the most where they do not.
const PAIRS: u32 = 3;
const PAIRS_MAX: u32 = 6;
/// The same of the leave-one-out pass, which must not drop what is needed.
const NEED_PAIRS_MAX: u32 = 8;
/// Diagnoses: more is no climb but a loop.
const ROUNDS_MAX: u32 = 8;

/// What the measurements say of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Says {
    Gains,
    Nothing,
    More,
}

/// Judges a gain after so many pairs: it must be proven and at least `gain_min`.
pub(super) fn judge(gain: Option<&OptimiseGain>, pairs: u32, gain_min: f64) -> Says {
    let Some(gain) = gain.filter(|_| pairs >= PAIRS) else { return Says::More };
    if gain.interval[0] > 1.0 && gain.ratio >= 1.0 + gain_min {
        Says::Gains
    } else if gain.ratio < 1.0 + gain_min || pairs >= PAIRS_MAX {
        Says::Nothing
    } else {
        Says::More
    }
}

/// Judges what a setting of the set gains: it is dropped if that is surely little, and after all pairs if it is likely little.
fn judge_need(gain: Option<&OptimiseGain>, pairs: u32, gain_min: f64) -> Says {
    let Some(gain) = gain.filter(|_| pairs >= PAIRS) else { return Says::More };
    let likely = gain.ratio >= 1.0 + gain_min / 2.0;
    if gain.interval[0] > 1.0 && likely {
        Says::Gains
    } else if gain.interval[1] < 1.0 + 2.0 * gain_min {
        Says::Nothing
    } else if pairs < NEED_PAIRS_MAX {
        Says::More
    } else if likely {
        Says::Gains
    } else {
        Says::Nothing
    }
}

/// Whether two settings change the same thing of the same host.
fn same_subject(a: &At, b: &At) -> bool {
    a.0 == b.0 && discriminant(&a.1) == discriminant(&b.1) && subject(&a.1) == subject(&b.1)
}

fn subject(set: &Setting) -> String {
    match set {
        Setting::Sysctl { key, .. } => key.clone(),
        Setting::Offload { device, feature, .. } => format!("{device} {feature}"),
        Setting::Mtu { device, .. } | Setting::RootQdisc { device, .. } => device.clone(),
        other => other.to_string(),
    }
}

/// Settings in a line of progress: one as its command, several by their names. The report has all of them.
fn in_a_line(settings: &[At]) -> String {
    let name = |(at, set): &At| match set {
        Setting::Sysctl { key, .. } => format!("{at} {}", key.rsplit('.').next().unwrap_or(key)),
        set => format!("{at} {}", subject(set)),
    };
    match settings {
        [(at, set)] => format!("{at}: {set}"),
        all => format!("{} settings ({})", all.len(), all.iter().map(name).collect::<Vec<_>>().join(", ")),
    }
}

impl Optimiser<'_> {
    fn settings(&self) -> Vec<At> {
        self.set.iter().map(|it| it.at.clone()).collect()
    }

    /// Measurements that remain to be made for the set: leave-one-out and the confirmation.
    fn reserve(&self) -> u64 {
        let (members, pairs) = (self.set.len() as u64, u64::from(PAIRS));
        2 * pairs * if members > 1 { members } else { 0 } + if members > 0 { 2 * CONFIRM_PAIRS } else { 0 }
    }

    /// Diagnoses and tries the fixes, until a verdict has none that gains.
    pub(super) fn climb(&mut self) -> Result<(), EndsError> {
        let mut tried: Vec<Vec<At>> = Vec::new();
        for round in 1..=ROUNDS_MAX {
            let trials = self.reserve() + DIAGNOSIS_MS / self.trial_ms.max(1);
            if round > 1 && !self.fits(trials) {
                return Ok(());
            }
            self.say("diagnosis");
            let verdict = self.diagnose()?;
            let (fixes, advice) = candidates::of_verdict(&verdict);
            self.report.verdict = Some(verdict.headline);
            self.report.advice.clone_from(&advice);
            let mut gained = false;
            for fix in fixes {
                if tried.contains(&fix.settings) || !self.allowed(&fix) || !self.room() {
                    continue;
                }
                tried.push(fix.settings.clone());
                gained = self.attempt(&fix)?;
                if gained {
                    break;
                }
            }
            if !gained {
                return Ok(());
            }
            // It was of the path without the fix.
            self.report.verdict = None;
        }
        Ok(())
    }

    fn allowed(&mut self, fix: &Candidate) -> bool {
        let refused = fix.settings.iter().find(|(at, _)| !self.may(*at)).cloned();
        if let Some((at, set)) = &refused {
            let words = format!("{}: `{set}` at {at}: its server does not allow it (--allow-tune)", fix.origin);
            self.report.advice.push(words);
        }
        refused.is_none()
    }

    fn room(&mut self) -> bool {
        let trials = self.reserve() + 2 * u64::from(PAIRS);
        self.fits(trials)
    }

    /// Safe settings: all together, since one alone may gain nothing before the others; then each alone. Whether one gained.
    pub(super) fn screen(&mut self) -> Result<bool, EndsError> {
        let hosts = [&self.hosts[0], &self.hosts[1]];
        let mut all = candidates::tunables(hosts, self.plan.load.direction, |place| self.may(place));
        all.retain(|it| !self.set.iter().any(|member| same_subject(&member.at, &it.settings[0])));
        if all.is_empty() || !self.room() {
            return Ok(false);
        }
        self.settable(&mut all)?;
        let settings = all.iter().flat_map(|it| it.settings.clone()).collect();
        if all.len() > 1 && self.attempt(&Candidate { origin: TUNABLE.to_owned(), settings })? {
            self.report.verdict = None;
            return Ok(true);
        }
        let mut gained = false;
        for candidate in all {
            if !self.room() {
                break;
            }
            gained |= self.attempt(&candidate)?;
        }
        if gained {
            self.report.verdict = None;
        }
        Ok(gained)
    }

    /// Leaves the candidates that can be set here: each is set once, without a load.
    fn settable(&mut self, all: &mut Vec<Candidate>) -> Result<(), EndsError> {
        let set = self.settings();
        for candidate in std::mem::take(all) {
            match self.in_force.reach(self.ends, &[set.as_slice(), &candidate.settings].concat()) {
                Ok(()) => all.push(candidate),
                Err(EndsError::Failed(why)) => {
                    self.note(&candidate.settings, &candidate.origin, None, &format!("cannot be set: {why}"));
                }
                Err(other) => return Err(other),
            }
        }
        self.in_force.reach(self.ends, &set)
    }

    /// Measures a candidate against the set; it joins the set if it gains.
    fn attempt(&mut self, candidate: &Candidate) -> Result<bool, EndsError> {
        let before = self.settings();
        let mut after: Vec<At> = before.clone();
        after.retain(|it| !candidate.settings.iter().any(|new| same_subject(it, new)));
        after.extend(candidate.settings.iter().cloned());
        self.say(&format!("{}: {}", candidate.origin, in_a_line(&candidate.settings)));
        // Without a first measurement, for what cannot be set is known at once.
        if let Err(error) = self.in_force.reach(self.ends, &after) {
            let EndsError::Failed(why) = error else { return Err(error) };
            self.in_force.reach(self.ends, &before)?;
            self.note(&candidate.settings, &candidate.origin, None, &format!("cannot be set: {why}"));
            return Ok(false);
        }
        let (gain, says) = self.decide(&before, &after, judge)?;
        let gains = says == Says::Gains;
        if gains {
            self.set.retain(|it| after.contains(&it.at));
            let origin = || candidate.origin.clone();
            self.set.extend(candidate.settings.iter().map(|at| Member { at: at.clone(), origin: origin() }));
        }
        self.note(&candidate.settings, &candidate.origin, gain, if gains { "kept" } else { "rolled back" });
        self.in_force.reach(self.ends, &if gains { after } else { before })?;
        Ok(gains)
    }

    /// Pairs until they decide.
    fn decide(
        &mut self,
        before: &[At],
        after: &[At],
        judge: fn(Option<&OptimiseGain>, u32, f64) -> Says,
    ) -> Result<(Option<OptimiseGain>, Says), EndsError> {
        let mut pairs = Pairs::default();
        for made in 1..=NEED_PAIRS_MAX {
            self.pair(&mut pairs, before, after)?;
            let gain = pairs.gain();
            let nothing_before = made >= PAIRS && pairs.nothing_before();
            let says = if nothing_before { Says::Gains } else { judge(gain.as_ref(), made, self.plan.gain_min) };
            if says != Says::More {
                return Ok((gain, says));
            }
        }
        Ok((pairs.gain(), Says::Nothing))
    }

    /// Leaves out settings and drops those that cost nothing: the safe settings as a group, which is halved where it is needed,
    /// then each fix of a diagnosis, the last found first.
    pub(super) fn leave_out(&mut self) -> Result<(), EndsError> {
        let (safe, mut groups): (Vec<Member>, Vec<Member>) =
            self.set.iter().cloned().partition(|it| it.origin == TUNABLE);
        groups.reverse();
        let mut groups: Vec<Vec<At>> = groups.into_iter().map(|it| vec![it.at]).collect();
        groups.insert(0, safe.into_iter().map(|it| it.at).collect());
        groups.retain(|it| !it.is_empty());
        groups.reverse();
        while let Some(group) = groups.pop() {
            let halve = |groups: &mut Vec<Vec<At>>| {
                if group.len() > 1 {
                    let (first, second) = group.split_at(group.len() / 2);
                    groups.extend([first.to_vec(), second.to_vec()]);
                }
            };
            // Without the whole set it was measured before.
            if group.len() == self.set.len() {
                halve(&mut groups);
                continue;
            }
            if !self.fits(2 * u64::from(PAIRS) + 2 * CONFIRM_PAIRS) {
                return Ok(());
            }
            self.say(&format!("without {}", in_a_line(&group)));
            let with = self.settings();
            let without: Vec<At> = with.iter().filter(|it| !group.contains(it)).cloned().collect();
            let (gain, says) = self.decide(&without, &with, judge_need)?;
            let needed = says == Says::Gains;
            if needed {
                halve(&mut groups);
            } else {
                self.set.retain(|it| !group.contains(&it.at));
            }
            self.note(&group, "leave-one-out", gain, if needed { "needed" } else { "dropped: it gains nothing" });
        }
        Ok(())
    }

    /// The whole set against none of it.
    pub(super) fn confirm(&mut self) -> Result<(), EndsError> {
        if self.set.is_empty() || !self.fits(2 * u64::from(PAIRS)) {
            return Ok(());
        }
        self.say("the whole set, without and with");
        let (settings, mut pairs) = (self.settings(), Pairs::default());
        for made in 0..CONFIRM_PAIRS {
            if made >= u64::from(PAIRS) && !self.fits(2) {
                break;
            }
            self.pair(&mut pairs, &[], &settings)?;
            self.report.gain = pairs.gain();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(judge: fn(Option<&OptimiseGain>, u32, f64) -> Says, ratio: f64, interval: [f64; 2], pairs: u32) -> Says {
        let (before_bps, after_bps) = (Vec::new(), Vec::new());
        let gain = OptimiseGain { before_bps, after_bps, ratio, interval, shift_bps: 0.0, shift_interval_bps: None };
        judge(Some(&gain), pairs, 0.02)
    }

    #[test]
    fn a_change_is_kept_if_its_gain_is_proven_and_not_tiny() {
        for (ratio, interval, pairs, expected) in [
            (3.0, [2.0, 4.0], 2, Says::More),
            (3.0, [2.0, 4.0], 3, Says::Gains),
            (1.01, [1.005, 1.015], 3, Says::Nothing),
            (1.3, [0.9, 1.9], 3, Says::More),
            (1.3, [0.9, 1.9], 6, Says::Nothing),
            (0.9, [0.5, 1.6], 3, Says::Nothing),
        ] {
            assert_eq!(says(judge, ratio, interval, pairs), expected, "{ratio} {interval:?} {pairs}");
        }
        assert_eq!(judge(None, 6, 0.02), Says::More);
    }

    #[test]
    fn what_carries_something_where_nothing_arrived_gains() {
        let gains = |after: [f64; 3]| Pairs { before: vec![0.0; 3], after: after.to_vec() }.nothing_before();
        assert!(gains([47e6, 46e6, 48e6]));
        assert!(!gains([0.0; 3]) && !gains([0.0, 0.0, 47e6]));
        assert!(!Pairs { before: vec![1e6; 3], after: vec![47e6; 3] }.nothing_before(), "that has a ratio");
    }

    #[test]
    fn a_setting_is_dropped_only_if_it_surely_or_after_all_pairs_likely_gains_nothing() {
        for (ratio, interval, pairs, expected) in [
            (1.5, [1.2, 1.9], 3, Says::Gains),
            (1.0, [0.99, 1.01], 3, Says::Nothing),
            (0.98, [0.89, 1.075], 3, Says::More),
            (0.98, [0.89, 1.075], 8, Says::Nothing),
            (1.1, [0.9, 1.4], 8, Says::Gains),
        ] {
            assert_eq!(says(judge_need, ratio, interval, pairs), expected, "{ratio} {interval:?} {pairs}");
        }
    }

    #[test]
    fn settings_of_one_thing_replace_each_other() {
        use narrows_model::Place;
        let sysctl =
            |at, key: &str, value: &str| (at, Setting::Sysctl { key: key.to_owned(), value: value.to_owned() });
        let a = sysctl(Place::Server, "net.ipv4.tcp_rmem", "4096 131072 1048576");
        assert!(same_subject(&a, &sysctl(Place::Server, "net.ipv4.tcp_rmem", "4096 131072 33554432")));
        assert!(!same_subject(&a, &sysctl(Place::Client, "net.ipv4.tcp_rmem", "4096 131072 33554432")));
        assert!(!same_subject(&a, &sysctl(Place::Server, "net.ipv4.tcp_wmem", "4096 131072 33554432")));
    }
}
