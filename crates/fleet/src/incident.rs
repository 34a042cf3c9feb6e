//! What is reported to people: one message when something got bad for good, and one when it is well again.
//!
//! A round of tests says which elements are bad: a host, a direction of it, a path, a trunk, an agent that is silent. One bad round is no
//! incident, and one good round no recovery. What could not be judged (nobody tested it, or the tester itself was out of CPU) counts as
//! neither.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How an element did in a round.
#[derive(Debug, Clone, PartialEq)]
pub enum Seen {
    Good,
    /// In a sentence: `8 paths carry 60 % of what they should: all leave host7 by eth0; receive ring drops`.
    Bad(String),
    /// It was not tested, or who tested it was limited itself.
    Unknown,
}

/// When an incident begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// Bad rounds in a row before it is reported.
    pub confirm: u32,
    /// Good rounds in a row before it is over.
    pub recover: u32,
    /// What becomes bad again so soon after it was over is the same incident: it has the same number and beginning.
    pub again_ms: u64,
}

impl Default for Rules {
    fn default() -> Self {
        Self { confirm: 2, recover: 2, again_ms: 3_600_000 }
    }
}

/// What is reported, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    Began(Incident),
    Over { incident: Incident, after_ms: u64 },
}

/// A message that not all who should have got, and who had it, by what the sender of alerts calls them.
pub type Unsaid = (Message, Vec<String>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incident {
    /// The first is 1; an element that is bad again later has another one.
    pub number: u64,
    pub element: String,
    pub says: String,
    /// The first bad round.
    pub since_ms: u64,
    /// Who has it in hand, by their own word.
    pub acknowledged: Option<String>,
    /// What a diagnosis of a typical path of it says, once there is one.
    #[serde(default)]
    pub verdict: Option<String>,
    /// Whether people know of it.
    #[serde(default)]
    pub reported: bool,
}

impl Incident {
    /// What is bad, and what its diagnosis says.
    pub(crate) fn words(&self) -> String {
        let verdict = self.verdict.as_ref().map_or_else(String::new, |verdict| format!("; diagnosis: {verdict}"));
        format!("{}{verdict}", self.says)
    }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct State {
    bad: u32,
    good: u32,
    first_bad_ms: u64,
    /// Since when it was, where that is known better than by the first round that saw it.
    #[serde(default)]
    was_bad_ms: Option<u64>,
    says: String,
    open: Option<Incident>,
    /// The last one, and when it was over.
    last: Option<(Incident, u64)>,
    /// How often it came back soon, …
    #[serde(default)]
    returns: u32,
    /// … since when it is good, and for how long it has to be before it is over.
    #[serde(default)]
    good_since_ms: u64,
    #[serde(default)]
    holds_ms: u64,
}

/// The incidents of a fleet.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Incidents {
    rules: Rules,
    of: BTreeMap<String, State>,
    /// Elements, beginnings of their names with `*`, hosts and groups, of which nothing is reported until a time.
    muted: Vec<(String, u64)>,
    /// The hosts that such a group has now. They are not kept: the next controller may have another file.
    #[serde(skip)]
    of_muted: BTreeMap<String, Vec<String>>,
    count: u64,
}

impl Incidents {
    pub fn new(rules: Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Those that are open, the oldest first.
    pub fn open(&self) -> Vec<&Incident> {
        let mut open: Vec<&Incident> = self.of.values().filter_map(|state| state.open.as_ref()).collect();
        open.sort_unstable_by_key(|incident| (incident.since_ms, incident.number));
        open
    }

    /// What was called so is called otherwise now; nothing of it is reported yet.
    pub(crate) fn rename(&mut self, element: &str, now: &str) {
        if let Some(state) = self.of.remove(element) {
            self.of.insert(now.to_owned(), state);
        }
    }

    /// It is part of something else.
    pub(crate) fn forget(&mut self, element: &str) {
        self.of.remove(element);
    }

    /// What was last seen bad of an element.
    pub(crate) fn says(&self, element: &str) -> String {
        self.of.get(element).map(|state| state.says.clone()).unwrap_or_default()
    }

    /// Whether an incident of an element is open.
    pub(crate) fn is_open(&self, element: &str) -> bool {
        self.of.get(element).is_some_and(|state| state.open.is_some())
    }

    /// Whether an element is bad, or was not long ago.
    pub fn knows(&self, element: &str) -> bool {
        self.of.get(element).is_some_and(|state| state.bad > 0 || state.open.is_some())
    }

    /// Reports an open incident, with what its diagnosis says; `None`: it is over, or known already.
    pub(crate) fn report(&mut self, number: u64, verdict: Option<String>) -> Option<Message> {
        let of = self.of.values_mut().filter_map(|state| state.open.as_mut());
        let incident = of.into_iter().find(|it| it.number == number && !it.reported)?;
        (incident.verdict, incident.reported) = (verdict, true);
        Some(Message::Began(incident.clone()))
    }

    /// Open incidents that nobody knows of, but that somebody should: they are not muted, and do not get better.
    pub(crate) fn unreported(&self) -> Vec<u64> {
        let bad = self.of.iter().filter(|(element, state)| state.good == 0 && !self.is_muted(element));
        let open = bad.filter_map(|(_, state)| state.open.as_ref());
        open.filter(|incident| !incident.reported).map(|incident| incident.number).collect()
    }

    /// Those that are open and known, also where nothing more is reported of them: to stop repeating one tells that it is over.
    pub fn known(&self) -> Vec<&Incident> {
        self.open().into_iter().filter(|it| it.reported).collect()
    }

    /// Nothing is reported of these elements until then: a name, the beginning of names with `*` at its end, `host NAME` or `group NAME` with
    /// its hosts, which [`Incidents::regroup`] reads.
    pub fn mute(&mut self, which: &str, until_ms: u64) {
        self.muted.retain(|(known, _)| known != which);
        self.muted.push((which.to_owned(), until_ms));
    }

    /// Reads which hosts the muted groups have now. `hosts`: all of the fleet, each with its group.
    pub(crate) fn regroup<'a>(&mut self, hosts: &(impl Iterator<Item = (&'a str, &'a str)> + Clone)) {
        let of = |group: &str| -> Vec<String> {
            hosts.clone().filter(|(_, its)| *its == group).map(|(name, _)| name.to_owned()).collect()
        };
        let named = |(which, _): &(String, u64)| Some((which.clone(), of(which.strip_prefix("group ")?)));
        self.of_muted = self.muted.iter().filter_map(named).collect();
    }

    /// What is muted, and until when.
    pub fn muted(&self) -> &[(String, u64)] {
        &self.muted
    }

    /// Somebody has an incident in hand; `false`: there is no open one of that number.
    pub fn acknowledge(&mut self, number: u64, who: &str) -> bool {
        let open = self.of.values_mut().filter_map(|state| state.open.as_mut());
        let found = open.into_iter().find(|incident| incident.number == number);
        found.map(|incident| incident.acknowledged = Some(who.to_owned())).is_some()
    }

    /// What a round of tests says of elements, and what is to be reported of that. An element that is not named was not tested. What began is
    /// reported by [`Incidents::report`], and its end only where that was.
    pub fn round(&mut self, at_ms: u64, seen: &[(String, Seen)]) -> Vec<Message> {
        self.muted.retain(|(_, until_ms)| *until_ms > at_ms);
        let mut reported = Vec::new();
        let again_ms = self.rules.again_ms;
        for (element, seen) in seen {
            let message = self.judge(at_ms, element, seen);
            let is_news = |it: &Message| matches!(it, Message::Over { incident, .. } if incident.reported);
            // An end is reported only where the beginning was.
            reported.extend(message.filter(is_news));
        }
        // What was well for long is forgotten.
        let is_over =
            |it: &State| it.last.as_ref().is_none_or(|(_, over_ms)| at_ms.saturating_sub(*over_ms) >= again_ms);
        self.of.retain(|_, it| it.bad > 0 || it.open.is_some() || !is_over(it));
        reported
    }

    /// What the next round sees as bad was so since a time.
    pub(crate) fn was_bad(&mut self, element: &str, since_ms: u64) {
        self.of.entry(element.to_owned()).or_default().was_bad_ms = Some(since_ms);
    }

    /// Whether nothing is reported of an element now.
    pub fn is_muted(&self, element: &str) -> bool {
        let of = |which: &str| {
            let named = ["host ", "group "].iter().find_map(|kind| which.strip_prefix(kind));
            let hosts = self.of_muted.get(which).into_iter().flatten().map(String::as_str);
            named.into_iter().chain(hosts).any(|name| names(element, name))
        };
        let is = |which: &str| which.strip_suffix('*').map_or(which == element, |begin| element.starts_with(begin));
        self.muted.iter().any(|(which, _)| is(which) || of(which))
    }

    fn judge(&mut self, at_ms: u64, element: &str, seen: &Seen) -> Option<Message> {
        let rules = self.rules;
        let state = self.of.entry(element.to_owned()).or_default();
        match seen {
            Seen::Unknown => None,
            Seen::Bad(says) => {
                let since_ms = state.was_bad_ms.take().unwrap_or(at_ms);
                if state.bad == 0 {
                    state.first_bad_ms = since_ms;
                }
                let was_good_ms = at_ms.saturating_sub(state.good_since_ms);
                (state.bad, state.good) = (state.bad.saturating_add(1), 0);
                says.clone_into(&mut state.says);
                if let Some(open) = &mut state.open {
                    says.clone_into(&mut open.says);
                    return None;
                }
                if state.bad < rules.confirm {
                    return None;
                }
                // Bad again so soon, it is the same one, and reported again.
                if let Some((last, over_ms)) = state.last.take()
                    && at_ms.saturating_sub(over_ms) < rules.again_ms
                {
                    // What comes and goes is over once it is good for twice as long as the last time it came back: not a message each minute.
                    state.returns += 1;
                    if state.returns > 1 {
                        state.holds_ms = was_good_ms.saturating_mul(2).max(state.holds_ms).min(rules.again_ms);
                    }
                    state.open = Some(Incident { says: says.clone(), reported: false, ..last });
                    return None;
                }
                (state.returns, state.holds_ms) = (0, 0);
                self.count += 1;
                let incident = Incident {
                    number: self.count,
                    element: element.to_owned(),
                    says: says.clone(),
                    since_ms: state.first_bad_ms,
                    acknowledged: None,
                    verdict: None,
                    reported: false,
                };
                state.open = Some(incident.clone());
                Some(Message::Began(incident))
            }
            Seen::Good => {
                // A clock may have been ahead.
                if state.good == 0 || state.good_since_ms > at_ms {
                    state.good_since_ms = at_ms;
                }
                (state.bad, state.good) = (0, state.good.saturating_add(1));
                let is_long = at_ms.saturating_sub(state.good_since_ms) >= state.holds_ms;
                let incident = state.open.take_if(|_| state.good >= rules.recover && is_long)?;
                state.last = Some((incident.clone(), at_ms));
                let after_ms = at_ms.saturating_sub(incident.since_ms);
                Some(Message::Over { incident, after_ms })
            }
        }
    }
}

/// Whether a name is a word of what an element is called.
pub fn names(element: &str, name: &str) -> bool {
    element.split([' ', '(', ')', ',']).any(|word| word == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;

    fn bad(says: &str) -> Seen {
        Seen::Bad(says.to_owned())
    }

    /// What is reported of a round, without diagnoses.
    fn of_round(incidents: &mut Incidents, at: u64, seen: (String, Seen)) -> Vec<Message> {
        let mut messages = incidents.round(at, &[seen]);
        let new = incidents.unreported();
        messages.extend(new.into_iter().filter_map(|number| incidents.report(number, None)));
        messages
    }

    fn reported(incidents: &mut Incidents, rounds: impl IntoIterator<Item = (u64, Seen)>) -> Vec<Message> {
        rounds.into_iter().flat_map(|(at, seen)| of_round(incidents, at, ("host a".to_owned(), seen))).collect()
    }

    #[test]
    fn a_single_dip_is_no_incident_and_an_hour_of_trouble_is_one_message_and_one_recovery() {
        let mut incidents = Incidents::new(Rules::default());
        let dips = (0..50).map(|nth| (nth, if nth % 2 == 0 { bad("dip") } else { Seen::Good }));
        assert_eq!(reported(&mut incidents, dips), []);
        let hour = (100..160).map(|nth| (nth, bad("lost 40 %")));
        let [Message::Began(began)] = &reported(&mut incidents, hour)[..] else { panic!("one message") };
        assert_eq!((began.number, began.since_ms, began.says.as_str()), (1, 100, "lost 40 %"));
        assert_eq!(incidents.open().len(), 1);
        assert!(incidents.acknowledge(1, "ada") && !incidents.acknowledge(2, "ada"));
        let over =
            reported(&mut incidents, [(160, Seen::Good), (161, Seen::Unknown), (162, Seen::Good), (163, Seen::Good)]);
        let [Message::Over { incident, after_ms: 62 }] = &over[..] else { panic!("one recovery: {over:?}") };
        assert!(incident.acknowledged.as_deref() == Some("ada") && incidents.open().is_empty());
    }

    #[test]
    fn what_could_not_be_judged_neither_begins_nor_ends_an_incident() {
        let mut incidents = Incidents::new(Rules::default());
        let starved = (0..20).map(|nth| (nth, if nth == 3 { bad("slow") } else { Seen::Unknown }));
        assert_eq!(reported(&mut incidents, starved), []);
        assert_eq!(reported(&mut incidents, [(20, bad("slow"))]).len(), 1, "the second bad round of those that count");
        assert_eq!(reported(&mut incidents, (21..90).map(|nth| (nth, Seen::Unknown))), []);
        assert_eq!(incidents.open().len(), 1);
    }

    #[test]
    fn what_comes_back_soon_is_the_same_incident_and_later_another_one() {
        let mut incidents = Incidents::new(Rules { again_ms: HOUR, ..Rules::default() });
        let round = |from: u64, seen: Seen| [(from, seen.clone()), (from + 1, seen)];
        assert_eq!(reported(&mut incidents, round(0, bad("x"))).len(), 1);
        assert_eq!(reported(&mut incidents, round(10, Seen::Good)).len(), 1);
        let again = reported(&mut incidents, round(20, bad("x")));
        assert!(matches!(&again[..], [Message::Began(Incident { number: 1, since_ms: 0, .. })]), "{again:?}");
        assert_eq!((incidents.open()[0].number, incidents.open()[0].since_ms), (1, 0));
        assert_eq!(reported(&mut incidents, round(30, Seen::Good)).len(), 1);
        let later = reported(&mut incidents, round(30 + 2 * HOUR, bad("x")));
        assert!(matches!(&later[..], [Message::Began(Incident { number: 2, .. })]), "{later:?}");
    }

    #[test]
    fn nothing_is_reported_of_what_is_muted_until_the_time_is_over() {
        let mut incidents = Incidents::new(Rules::default());
        incidents.mute("host *", 100);
        let both = |at| [("host a".to_owned(), bad("x")), ("trunk r1".to_owned(), bad("y"))].map(|it| (at, it));
        let all: Vec<Message> = (0..5).flat_map(both).flat_map(|(at, it)| of_round(&mut incidents, at, it)).collect();
        assert!(matches!(&all[..], [Message::Began(Incident { element, .. })] if element == "trunk r1"), "{all:?}");
        assert_eq!(incidents.open().len(), 2, "it is known all the same");
        assert_eq!(reported(&mut incidents, [(101, Seen::Good), (102, Seen::Good)]).len(), 0, "nobody knows of it");
        assert!(incidents.muted().is_empty());
    }

    #[test]
    fn a_muted_host_is_muted_whatever_it_is_called() {
        let mut incidents = Incidents::new(Rules::default());
        incidents.mute("host a1", 100);
        incidents.mute("group west", 100);
        incidents.regroup(&[("b1", "west"), ("b2", "west"), ("c1", "east")].into_iter());
        let muted =
            ["host a1 (sending)", "agent a1", "only the path c1 to a1", "the clock of b2", "the agents of group west"];
        assert!(muted.iter().all(|element| incidents.is_muted(element)));
        assert!(!["host a10", "agent c1", "the path between c1 and c2"].iter().any(|it| incidents.is_muted(it)));
    }

    #[test]
    fn a_mute_with_its_hosts_of_an_earlier_version_is_read_and_has_those_of_now() {
        let kept = serde_json::json!({
            "rules": Rules::default(),
            "of": {},
            "muted": [["group west", 100]],
            "of_muted": { "group west": ["b1"] },
            "count": 0,
        });
        let mut incidents: Incidents = serde_json::from_value(kept).expect("the state of an earlier version");
        incidents.regroup(&[("b1", "east"), ("b2", "west")].into_iter());
        assert_eq!(["agent b1", "agent b2"].map(|element| incidents.is_muted(element)), [false, true]);
    }

    #[test]
    fn what_comes_and_goes_is_one_incident_until_it_stays_away() {
        const MINUTE: u64 = 60_000;
        let mut incidents = Incidents::new(Rules::default());
        // Three minutes bad, three minutes good.
        let flaps = (0..60).map(|nth| (nth * MINUTE, if nth % 6 < 3 { bad("lost 9 %") } else { Seen::Good }));
        let messages = reported(&mut incidents, flaps);
        assert_eq!(messages.len(), 5, "{messages:?}");
        assert_eq!(incidents.open().len(), 1);
        let stays = (60..80).map(|nth| (nth * MINUTE, Seen::Good));
        assert!(matches!(reported(&mut incidents, stays)[..], [Message::Over { .. }]));
    }
}
