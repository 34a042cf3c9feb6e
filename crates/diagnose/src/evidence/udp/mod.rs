//! What a run says of one round of UDP.

mod judged;
pub mod view;

use super::paced::PacedUdp;
use super::profile::PathProfile;
use crate::role::Role;
use narrows_model::load::udp::UdpTrial;
use narrows_model::{Flow, Place, Snapshot};
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
