//! Paced UDP as an experiment: at 10 % and at 50 % of the rate, evenly and in bursts, then above it. What is lost at which of them
//! tells random loss, a short queue, a policer and plain capacity apart.
//!
//! | What is lost | Then it is |
//! | --- | --- |
//! | the same part at 10 % and at 50 % | `random-loss`: whatever the rate |
//! | nothing at 50 % sent evenly, some in bursts | `shallow-queue` |
//! | nothing below the rate; above it the excess, and the delay stays | `path-policer` |
//! | nothing below the rate; above it the excess, behind a queue | `path-capacity` (or a shaper) |
//! | nothing even above it | none of them: the path has room |

use super::udp::UdpView;
use crate::judge::assessment::Assessment;
use narrows_model::load::udp::{Batching, DatagramSizes, UdpPlan, UdpRate, UdpTrial};
use narrows_model::{Flow, Witness, words::units};
use std::collections::BTreeMap;

/// One of the trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// 10 % of the rate, evenly.
    Tenth,
    /// 50 %, evenly.
    Half,
    /// 50 % in bursts.
    HalfBursts,
    /// 105 %: a little more than the path carried.
    Plateau,
    /// 150 %: TCP may stay a third below what a policer lets through.
    Above,
}

/// Datagrams of a burst: more than a short queue holds, less than a long one.
const BURST: u32 = 64;

impl Part {
    /// Every part, in the order in which they are made: the gentle ones first.
    pub const ALL: [Self; 5] = [Self::Tenth, Self::Half, Self::HalfBursts, Self::Plateau, Self::Above];

    /// The id of its trial in a run.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Tenth => "paced-udp-tenth",
            Self::Half => "paced-udp-half",
            Self::HalfBursts => "paced-udp-half-bursts",
            Self::Plateau => "paced-udp-plateau",
            Self::Above => "paced-udp-above",
        }
    }

    /// The part of that id.
    #[must_use]
    pub fn by_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.id() == id)
    }

    /// What is done, in a sentence.
    #[must_use]
    pub const fn what(self) -> &'static str {
        match self {
            Self::Tenth => "UDP at a tenth of the goodput, evenly spaced",
            Self::Half => "UDP at half of the goodput, evenly spaced",
            Self::HalfBursts => "UDP at half of the goodput, in bursts of 64 datagrams",
            Self::Plateau => "UDP at 105 % of the goodput",
            Self::Above => "UDP at 150 % of the goodput",
        }
    }

    const fn share(self) -> f64 {
        match self {
            Self::Tenth => 0.1,
            Self::Half | Self::HalfBursts => 0.5,
            Self::Plateau => 1.05,
            Self::Above => 1.5,
        }
    }
}

/// Below this a tenth of the rate sends too few datagrams to count losses by.
const LEAST_BPS: f64 = 1e6;

/// The trials for a path that carried `goodput_bps` in `flow`; empty where that is too little to learn from.
#[must_use]
pub fn plans(goodput_bps: f64, flow: Flow) -> Vec<(Part, UdpPlan)> {
    if !goodput_bps.is_finite() || goodput_bps < LEAST_BPS {
        return Vec::new();
    }
    let plan = |part: Part| {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let rate = UdpRate::Bps(((goodput_bps * part.share()) as u64).clamp(1, 1 << 50));
        let bursts = part == Part::HalfBursts;
        UdpPlan {
            direction: flow.direction(),
            rate_up: rate,
            rate_down: rate,
            sizes: DatagramSizes::Largest,
            duration_ms: if part == Part::Tenth { 2_000 } else { 1_000 },
            interval_ms: 100,
            burst_datagrams: bursts.then_some(BURST),
            // A batch that the kernel hands down as one is a burst.
            segmentation: if bursts { Batching::Auto } else { Batching::Off },
            ..UdpPlan::default()
        }
    };
    Part::ALL.into_iter().map(|part| (part, plan(part))).collect()
}

/// What the trials say. Those that were not made are missing.
#[derive(Debug, Clone, Default)]
pub struct PacedUdp {
    parts: BTreeMap<Part, UdpView>,
    goodput_bps: Option<f64>,
}

/// Eight losses are expected before none of them means anything: chance makes that in less than 1 of 1,000 trials.
const ENOUGH: f64 = 8.0;

#[derive(Debug, Clone, Copy)]
struct Lost {
    sent: u64,
    lost: u64,
}

#[allow(clippy::cast_precision_loss)]
impl Lost {
    fn of(view: &UdpView) -> Self {
        let (sent, lost) = view.on_the_path();
        Self { sent, lost }
    }

    fn rate(self) -> f64 {
        if self.sent == 0 { 0.0 } else { self.lost as f64 / self.sent as f64 }
    }

    /// Losses to expect at another rate of loss.
    fn expected(self, rate: f64) -> f64 {
        self.sent as f64 * rate
    }

    fn words(self) -> String {
        format!("{} of {} lost", self.lost, self.sent)
    }
}

fn experiment(says: String) -> Witness {
    Witness { kind: "experiment".to_owned(), says }
}

fn contradicts(why: impl Into<String>) -> Assessment {
    Assessment::Contradicts(why.into())
}

fn cannot_tell(why: impl Into<String>) -> Assessment {
    Assessment::CannotTell { why: why.into(), ask: None }
}

impl PacedUdp {
    /// From trials by their ids, and the goodput that the path carried before.
    #[must_use]
    pub fn of<'t>(trials: impl Iterator<Item = (&'t str, &'t UdpTrial)>, flow: Flow, goodput_bps: Option<f64>) -> Self {
        let parts = trials.filter_map(|(id, trial)| Some((Part::by_id(id)?, UdpView::of(trial, flow)?))).collect();
        Self { parts, goodput_bps }
    }

    /// Whether any of the trials was made.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The trials that were not made yet.
    pub fn wanted(&self) -> impl Iterator<Item = Part> + '_ {
        Part::ALL.into_iter().filter(|part| !self.parts.contains_key(part))
    }

    /// What the trials say of a cause of the path; `None` for other causes.
    #[must_use]
    pub fn assessment(&self, id: &str) -> Option<Assessment> {
        Some(match id {
            "random-loss" => self.random_loss(),
            "shallow-queue" => self.shallow_queue(),
            "path-policer" => self.policer(),
            "path-capacity" => self.capacity(),
            _ => return None,
        })
    }

    fn lost(&self, part: Part) -> Option<Lost> {
        self.parts.get(&part).map(Lost::of)
    }

    fn random_loss(&self) -> Assessment {
        let (Some(tenth), Some(half)) = (self.lost(Part::Tenth), self.lost(Part::Half)) else {
            return cannot_tell("paced UDP at a tenth and at half of the rate was not measured");
        };
        if half.lost == 0 {
            return contradicts(format!("evenly spaced at half of the rate UDP lost nothing ({} sent)", half.sent));
        }
        let expected = tenth.expected(half.rate());
        #[allow(clippy::cast_precision_loss)]
        let (seen, enough) = (tenth.lost as f64, expected >= ENOUGH && half.lost >= 8);
        if enough && seen <= expected / 5.0 {
            return contradicts(format!(
                "at a tenth of the rate UDP lost {} where at half of it {} were lost: the loss grows with the rate",
                tenth.words(),
                half.words()
            ));
        }
        if !enough || seen < expected / 2.5 {
            return cannot_tell("too few datagrams of paced UDP were lost to compare a tenth with half of the rate");
        }
        Assessment::Supports {
            share: 0.95,
            witnesses: vec![
                experiment(format!("UDP at a tenth of the rate: {} ({})", tenth.words(), units::percent(tenth.rate()))),
                experiment(format!("UDP at half of the rate: {} ({})", half.words(), units::percent(half.rate()))),
            ],
        }
    }

    fn shallow_queue(&self) -> Assessment {
        let (Some(even), Some(bursts)) = (self.lost(Part::Half), self.lost(Part::HalfBursts)) else {
            return cannot_tell("UDP at half of the rate, evenly and in bursts, was not measured");
        };
        if bursts.lost == 0 {
            return contradicts(format!(
                "in bursts of {BURST} at half of the rate UDP lost nothing ({} sent)",
                bursts.sent
            ));
        }
        let expected = even.expected(bursts.rate());
        #[allow(clippy::cast_precision_loss)]
        let seen = even.lost as f64;
        if expected < ENOUGH {
            return cannot_tell("too few datagrams were lost in bursts to compare evenly spaced ones with");
        }
        if seen > expected / 5.0 {
            return contradicts(format!(
                "evenly spaced as many were lost: {} against {}",
                even.words(),
                bursts.words()
            ));
        }
        Assessment::Supports {
            share: 0.95,
            witnesses: vec![
                experiment(format!("UDP at half of the rate in bursts of {BURST}: {}", bursts.words())),
                experiment(format!("the same rate evenly spaced: {}", even.words())),
            ],
        }
    }

    /// The first trial above the rate that lost something of note, with how the path was below it: clean.
    fn plateau(&self) -> Result<&UdpView, Assessment> {
        let half =
            self.lost(Part::Half).ok_or_else(|| cannot_tell("paced UDP at half of the rate was not measured"))?;
        if half.lost >= 8 && half.rate() >= 1e-3 {
            return Err(contradicts(format!("already at half of the rate, evenly spaced, UDP lost {}", half.words())));
        }
        let above = [Part::Plateau, Part::Above];
        let made: Vec<&UdpView> = above.iter().filter_map(|part| self.parts.get(part)).collect();
        let lossy = made.iter().find(|view| {
            let lost = Lost::of(view);
            lost.lost >= 8 && lost.rate() >= 0.01
        });
        match (lossy, made.last()) {
            (Some(view), _) => Ok(view),
            (None, None) => Err(cannot_tell("UDP above the rate was not measured")),
            (None, Some(view)) if view.behind > 0.05 => {
                Err(cannot_tell("the sender could not offer UDP above the rate"))
            }
            (None, Some(_)) if made.len() < above.len() => {
                Err(cannot_tell("UDP a little above the rate lost nothing, and no higher one was measured"))
            }
            (None, Some(view)) => Err(contradicts(format!(
                "the path carried {} of UDP without loss: it has room",
                units::bps(view.goodput_bps)
            ))),
        }
    }

    /// How long the queue was that the plateau stood behind, and whether it was one at all: sixteen packets, and a
    /// millisecond, are what scheduling makes.
    fn queue(view: &UdpView) -> (f64, bool) {
        let [median, ..] = view.delay_us;
        (median, median >= (16.0 * view.packet_us()).max(1_000.0))
    }

    fn policer(&self) -> Assessment {
        let view = match self.plateau() {
            Ok(view) => view,
            Err(assessment) => return assessment,
        };
        let (queue_us, stood) = Self::queue(view);
        if stood {
            return contradicts(format!("above the rate a queue of {queue_us:.0} us stood before UDP was lost"));
        }
        if let Some(Assessment::Supports { .. }) = self.assessment("shallow-queue") {
            return contradicts("bursts are lost below the rate: a short queue and no policer");
        }
        let lost = Lost::of(view);
        Assessment::Supports {
            share: 0.9,
            witnesses: vec![
                experiment(format!(
                    "above {} all excess of UDP was lost ({}), and the delay stayed within {queue_us:.0} us of its minimum",
                    units::bps(view.goodput_bps),
                    lost.words()
                )),
                experiment(format!(
                    "at half of the rate, evenly spaced, UDP lost {}",
                    self.lost(Part::Half).map_or_else(|| "nothing".to_owned(), Lost::words)
                )),
            ],
        }
    }

    fn capacity(&self) -> Assessment {
        let view = match self.plateau() {
            Ok(view) => view,
            Err(assessment) => return assessment,
        };
        let Some(goodput) = self.goodput_bps.filter(|bps| *bps > 0.0) else {
            return cannot_tell("no goodput to compare the plateau of UDP with");
        };
        let (queue_us, stood) = Self::queue(view);
        if !stood {
            return contradicts(format!("above the rate UDP was lost without a queue ({queue_us:.0} us of delay)"));
        }
        let ratio = view.goodput_bps / goodput;
        if ratio > 1.12 {
            return contradicts(format!(
                "UDP got {} through, {ratio:.2} times the goodput",
                units::bps(view.goodput_bps)
            ));
        }
        Assessment::Supports {
            share: 0.9,
            witnesses: vec![
                experiment(format!(
                    "UDP above the rate got {} through, {ratio:.2} times the goodput",
                    units::bps(view.goodput_bps)
                )),
                experiment(format!("a queue of {queue_us:.0} us stood before it, and below the rate nothing was lost")),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::udp::{Died, UdpScene};

    fn trial(sent: u64, lost: u64, delay_us: u64) -> UdpTrial {
        let died = Died { path: lost, ..Died::default() };
        UdpScene {
            offered: sent,
            died,
            delay_us: [delay_us, delay_us, delay_us],
            span_us: 1_000_000,
            ..UdpScene::default()
        }
        .trial()
    }

    /// `[tenth, half, bursts, plateau, above]` as sent, lost, delay; judged against 100 Mbit/s of goodput.
    fn judged(parts: [(u64, u64, u64); 5]) -> PacedUdp {
        let trials: Vec<_> = Part::ALL
            .into_iter()
            .zip(parts)
            .filter(|(_, (sent, ..))| *sent > 0)
            .map(|(part, (sent, lost, delay))| (part.id(), trial(sent, lost, delay)))
            .collect();
        PacedUdp::of(trials.iter().map(|(id, trial)| (*id, trial)), Flow::Up, Some(100e6))
    }

    const CAUSES: [&str; 4] = ["random-loss", "shallow-queue", "path-policer", "path-capacity"];

    /// The causes that are said, and that none of the others is.
    fn said(paced: &PacedUdp) -> Vec<&'static str> {
        CAUSES.into_iter().filter(|id| matches!(paced.assessment(id), Some(Assessment::Supports { .. }))).collect()
    }

    #[test]
    fn each_cause_has_its_own_picture() {
        // A tenth for 2 s, the others for 1 s: 850 datagrams are a tenth of 100 Mbit/s for a second.
        for (parts, cause) in [
            ([(1700, 17, 50), (4250, 42, 50), (4250, 44, 50), (8925, 90, 50), (12_750, 130, 50)], "random-loss"),
            ([(1700, 0, 50), (4250, 0, 50), (4250, 900, 50), (8925, 300, 900), (12_750, 4200, 900)], "shallow-queue"),
            ([(1700, 0, 50), (4250, 0, 50), (4250, 0, 50), (8925, 425, 60), (12_750, 4250, 60)], "path-policer"),
            (
                [(1700, 0, 50), (4250, 0, 50), (4250, 0, 50), (8925, 425, 40_000), (12_750, 4250, 40_000)],
                "path-capacity",
            ),
            // TCP stayed below what the policer lets through: 105 % of it passes, 150 % does not.
            ([(1700, 0, 50), (4250, 0, 50), (4250, 0, 50), (8925, 0, 60), (12_750, 2000, 60)], "path-policer"),
        ] {
            let paced = judged(parts);
            assert_eq!(said(&paced), [cause], "{parts:?}: {:?}", CAUSES.map(|id| paced.assessment(id)));
        }
    }

    #[test]
    fn a_path_with_room_denies_them_all() {
        let paced = judged([(1700, 0, 50), (4250, 0, 50), (4250, 0, 50), (8925, 0, 50), (12_750, 0, 50)]);
        for id in CAUSES {
            assert!(
                matches!(paced.assessment(id), Some(Assessment::Contradicts(_))),
                "{id}: {:?}",
                paced.assessment(id)
            );
        }
        assert_eq!(paced.assessment("tcp-receive-window"), None);
    }

    #[test]
    fn too_few_losses_or_trials_say_nothing() {
        let few = judged([(1700, 1, 50), (4250, 3, 50), (4250, 3, 50), (0, 0, 0), (0, 0, 0)]);
        assert!(said(&few).is_empty());
        assert!(matches!(few.assessment("random-loss"), Some(Assessment::CannotTell { .. })));
        let none = PacedUdp::default();
        assert!(none.is_empty() && none.wanted().count() == 5);
        for id in CAUSES {
            assert!(matches!(none.assessment(id), Some(Assessment::CannotTell { .. })), "{id}");
        }
    }

    #[test]
    fn the_plans_are_sound_and_go_from_gentle_to_rough() {
        let plans = plans(100e6, Flow::Down);
        assert_eq!(plans.len(), 5);
        for (part, plan) in &plans {
            assert_eq!(plan.check(), Ok(()), "{part:?}");
            assert_eq!(plan.flows(), [Flow::Down]);
        }
        let rates: Vec<_> = plans.iter().map(|(_, plan)| plan.rate_down).collect();
        let bps = [10_000_000, 50_000_000, 50_000_000, 105_000_000, 150_000_000];
        assert_eq!(rates, bps.map(UdpRate::Bps));
        assert!(super::plans(5e5, Flow::Up).is_empty() && super::plans(f64::NAN, Flow::Up).is_empty());
    }
}
