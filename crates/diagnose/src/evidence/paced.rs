//! What the trials of paced UDP, and those of many ports, showed of the path.

use super::udp::view::UdpView;
use crate::experiments::paced::PARTS;
use crate::experiments::ports::MANY_PORTS;
use narrows_model::Flow;
use narrows_model::load::udp::UdpTrial;
use std::collections::BTreeMap;

/// The trials that were made, and the goodput that they are compared with.
#[derive(Debug, Clone, Default)]
pub struct PacedUdp {
    trials: BTreeMap<&'static str, UdpView>,
    /// What the path carried in the baseline.
    pub goodput_bps: f64,
}

impl PacedUdp {
    /// From trials by their ids; those of other experiments are left out.
    pub fn of<'t>(trials: impl Iterator<Item = (&'t str, UdpTrial<'t>)>, flow: Flow, goodput_bps: f64) -> Self {
        let part = |id: &str| PARTS.iter().chain([&MANY_PORTS]).find(|part| part.id == id);
        let trials = trials.filter_map(|(id, trial)| Some((part(id)?.id, UdpView::of(trial, flow)?))).collect();
        Self { trials, goodput_bps }
    }

    /// The trial of that id, where it was made.
    pub fn get(&self, id: &str) -> Option<&UdpView> {
        self.trials.get(id)
    }
}
