//! Questions that the causes of the path ask of the trials of paced UDP.

use crate::causes::shared::rule::known;
use crate::causes::shared::words::{cannot_tell, contradicts};
use crate::evidence::paced::PacedUdp;
use crate::evidence::udp::view::UdpView;
use crate::experiments::paced::{ABOVE, HALF, PLATEAU};
use crate::judge::Assessment;
use narrows_model::words::units;

/// Eight losses are expected before none of them means anything: chance makes that in less than 1 of 1,000 trials.
pub(crate) const ENOUGH: f64 = 8.0;

/// Datagrams that a trial sent onto the path, and those that the path lost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lost {
    pub(crate) sent: u64,
    pub(crate) lost: u64,
    /// The same, where losses in a row count once; `None` where the receiver does not count them.
    counted_runs: Option<u64>,
}

/// Radio links and interference lose about so many datagrams in a row.
const RUN: u64 = 10;

impl Lost {
    pub(crate) fn of(view: &UdpView) -> Self {
        let (sent, lost) = view.on_the_path();
        // What is lost is lost in one run at least.
        let counted_runs = Some(view.loss_runs.min(lost)).filter(|runs| *runs > 0 || lost == 0);
        Self { sent, lost, counted_runs }
    }

    /// Runs of losses; where they were not counted no more than if each were a long one, so that it takes as many more losses to tell.
    pub(crate) fn runs(self) -> u64 {
        self.counted_runs.unwrap_or(self.lost.div_ceil(RUN))
    }

    /// The same where they were counted.
    pub(crate) fn counted_runs(self) -> Result<u64, Assessment> {
        known(self.counted_runs, "the receiving end does not say how many datagrams were lost in a row")
    }

    pub(crate) fn rate(self) -> f64 {
        if self.sent == 0 { 0.0 } else { self.lost as f64 / self.sent as f64 }
    }

    /// Runs of losses to expect of so many datagrams.
    pub(crate) fn expected_runs(self, sent: u64) -> f64 {
        self.runs() as f64 / self.sent.max(1) as f64 * sent as f64
    }

    /// Losses to expect at another rate of loss.
    pub(crate) fn expected(self, rate: f64) -> f64 {
        self.sent as f64 * rate
    }

    pub(crate) fn words(self) -> String {
        format!("{} of {} lost", self.lost, self.sent)
    }
}

/// What a trial of paced UDP lost, where it was made.
pub(crate) fn lost(paced: &PacedUdp, id: &str) -> Option<Lost> {
    paced.get(id).map(Lost::of)
}

/// The first trial above the rate that lost something of note, with how the path was below it: clean.
pub(crate) fn plateau(paced: &PacedUdp) -> Result<&UdpView, Assessment> {
    let half = known(lost(paced, HALF), "paced UDP at half of the rate was not measured")?;
    if half.lost >= 8 && half.rate() >= 1e-3 {
        return Err(contradicts(format!("evenly paced UDP lost {} already at half of the rate", half.words())));
    }
    let above = [PLATEAU, ABOVE];
    let made: Vec<&UdpView> = above.iter().filter_map(|id| paced.get(id)).collect();
    let lossy = made.iter().find(|view| {
        let lost = Lost::of(view);
        lost.lost >= 8 && lost.rate() >= 0.01
    });
    match (lossy, made.last()) {
        (Some(view), _) => Ok(view),
        (None, None) => Err(cannot_tell("UDP above the rate was not measured")),
        (None, Some(view)) if view.behind > 0.05 => Err(cannot_tell("the sender could not offer UDP above the rate")),
        (None, Some(_)) if made.len() < above.len() => {
            Err(cannot_tell("UDP slightly above the rate lost nothing; no higher rate was measured"))
        }
        (None, Some(view)) => Err(contradicts(format!(
            "the path carried {} of UDP without loss: it has room",
            units::bps(view.goodput_bps)
        ))),
    }
}

/// How long the queue was that the plateau stood behind, and whether it was one at all: sixteen packets, and a
/// millisecond, are what scheduling makes.
/// Errors: the receiving end did not measure the delay.
pub(crate) fn queue(view: &UdpView) -> Result<(f64, bool), Assessment> {
    let [median, ..] = known(view.delay_us, "the receiving end does not measure how long datagrams wait on their way")?;
    Ok((median, median >= (16.0 * view.packet_us()).max(1_000.0)))
}
