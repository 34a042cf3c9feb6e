//! What a run says of one round of UDP.

mod judged;
pub mod view;

use super::paced::PacedUdp;
use super::profile::PathProfile;
use crate::role::Role;
use narrows_model::load::udp::UdpTrial;
use narrows_model::{Flow, Place, Snapshot};
use narrows_search::profile::StepView;
use std::collections::BTreeMap;
use view::{UdpEnd, UdpView};

/// Everything known of a UDP flow.
#[derive(Debug, Clone)]
pub struct UdpEvidence {
    pub base: UdpView,
    pub experiments: BTreeMap<String, UdpView>,
    /// The experiments that tell losses of the path apart.
    pub paced: PacedUdp,
    /// What the path does by itself, where it was measured.
    pub profile: Option<PathProfile>,
    sender: Snapshot,
    receiver: Snapshot,
}

impl UdpEvidence {
    /// Whether the load was more than the path sustains by its profile, at so few datagrams a second that no host that shows nothing is what
    /// they exceed.
    pub fn exceeds_path_alone(&self) -> bool {
        let offered_bps = self.base.offered_bps / self.base.payload_part(0.0);
        self.profile.as_ref().is_some_and(|profile| {
            let Some((capacity, _)) = profile.shape.capacity.zip(profile.shape.plateau) else { return false };
            let arrive_pps = self.base.offered_pps() * capacity.bps / offered_bps.max(1.0);
            offered_bps > capacity.interval_bps[1] && arrive_pps < StepView::ANY_HOST_PPS
        })
    }

    /// The evidence of a flow: the trial, the experiments by id and the inventories of both hosts; `None` where the trial does
    /// not have the flow.
    pub fn of(
        trial: UdpTrial<'_>,
        experiments: &[(&str, UdpTrial<'_>)],
        flow: Flow,
        client: &Snapshot,
        server: &Snapshot,
    ) -> Option<Self> {
        let base = UdpView::of(trial, flow)?;
        let host = |place| if place == Place::Client { client } else { server };
        let view = |(id, trial): &(&str, UdpTrial<'_>)| Some(((*id).to_owned(), UdpView::of(*trial, flow)?));
        Some(Self {
            experiments: experiments.iter().filter_map(view).collect(),
            paced: PacedUdp::of(experiments.iter().copied(), flow, base.goodput_bps),
            profile: None,
            base,
            sender: host(flow.sender()).clone(),
            receiver: host(flow.receiver()).clone(),
        })
    }

    pub const fn end(&self, role: Role) -> Option<&UdpEnd> {
        match role {
            Role::Sender => Some(&self.base.sender),
            Role::Receiver => Some(&self.base.receiver),
            Role::Path => None,
        }
    }

    /// What a reason of the drop watch counted; `None` where there was no watch, or it lost records.
    pub fn reason(&self, role: Role, name: &str) -> Option<u64> {
        self.base.accounting.reason(role == Role::Sender, name)
    }
}
