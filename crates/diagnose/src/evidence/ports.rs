//! Results of a load whose flows differ only in their ports: whether all lose alike. The members of a group of equal-cost
//! paths, which the ports select, do not lose alike if one of them is lossy.

use super::udp::view::UdpView;
use narrows_model::load::udp::record::UdpStreamRecord;
use narrows_model::words::{figures::float, units};
use narrows_stats::{Groups, two_groups, wilson};
use std::net::SocketAddr;

/// One flow of such a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortFlow {
    /// Source and destination port.
    pub ports: [u16; 2],
    /// Datagrams that the socket took, and …
    pub sent: u64,
    /// … those that did not arrive, without those that the receiving socket dropped.
    pub lost: u64,
}

/// The flows of both ends' records.
pub(super) fn flows(sent: &[UdpStreamRecord], got: &[UdpStreamRecord]) -> Vec<PortFlow> {
    let port = |address: &str| address.parse::<SocketAddr>().map_or(0, |address| address.port());
    let flow = |stream: &UdpStreamRecord| {
        let sent = stream.sent.as_ref()?.datagrams;
        let other = got.iter().find(|other| other.id == stream.id).and_then(|other| other.received.as_ref());
        let lost = other.map_or(sent, |it| it.lost.saturating_sub(it.socket_drops.unwrap_or(0)));
        Some(PortFlow { ports: [port(&stream.local), port(&stream.remote)], sent, lost: lost.min(sent) })
    };
    sent.iter().filter_map(flow).filter(|flow| flow.sent > 0).collect()
}

/// The flows that one member of a group carries, and the others.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    pub lossy: Vec<PortFlow>,
    pub clean: Vec<PortFlow>,
    groups: Groups,
}

/// What the flows say.
#[derive(Debug, Clone, PartialEq)]
pub enum Ports {
    /// They fall into two groups: one loses about alike, the other next to nothing.
    TwoGroups(Member),
    /// They lose alike, or none of them does.
    Alike(String),
    CannotTell(String),
}

/// Chance makes two groups of flows that lose alike less often than this.
const CHANCE: f64 = 1e-4;
/// A clean member loses less than this part of what the lossy one does.
const CLEAN: f64 = 0.1;
/// Flows over one member lose alike: the worse half loses less than this many times what the other half loses; chance alone
/// makes it twice as much when each flow has only a few losses.
const ALIKE: f64 = 3.0;
/// Minimum losses in a group.
const LEAST: u64 = 10;
/// Minimum flows in a group: a single flow may have its own reason, such as the queue that its hash selects.
const FLOWS: usize = 2;

/// What the flows of a load say.
pub fn ports(view: &UdpView) -> Ports {
    let flows = &view.flows;
    let total = flows.iter().map(|flow| flow.lost).fold(0, u64::saturating_add);
    let sent = flows.iter().map(|flow| flow.sent).fold(0, u64::saturating_add);
    let counted = |flow: &PortFlow| [flow.lost, flow.sent];
    let Some(groups) = two_groups(&flows.iter().map(counted).collect::<Vec<_>>()) else {
        return Ports::CannotTell("a single flow has nothing to be compared with".to_owned());
    };
    let all = format!("{} UDP flows with ports of their own", flows.len());
    let (_, on_path) = view.on_the_path();
    if on_path.saturating_mul(2) < view.missing() {
        return Ports::CannotTell(format!("{all}: most of their losses were in a host"));
    }
    if total < LEAST {
        return Ports::Alike(format!(
            "{all} lost {total} of {sent}: at most {} of such flows are lossy",
            units::percent(wilson(0, flows.len() as u64, 0.95).map_or(1.0, |[_, most]| most))
        ));
    }
    let part = |[lost, sent]: [u64; 2]| float(lost) / float(sent.max(1));
    let (high, low) = (part(groups.high), part(groups.low));
    if groups.p > CHANCE || low > high / 2.0 {
        let few = total < flows.len() as u64 * 3;
        let words = format!("{all} lost {total} of {sent}");
        return if few && low <= CLEAN * high {
            Ports::CannotTell(format!("{words}, too few to tell groups of flows apart"))
        } else {
            Ports::Alike(format!("{words}, all flows about the same part"))
        };
    }
    let is_lossy = |at: &usize| groups.more.contains(at);
    let (lossy, clean): (Vec<usize>, Vec<usize>) = (0..flows.len()).partition(is_lossy);
    let words = format!("{} of {all} lost {}, the others {}", lossy.len(), units::percent(high), units::percent(low));
    if low > CLEAN * high {
        return Ports::CannotTell(format!("{words}: all lose, though not alike"));
    }
    if lossy.len() < FLOWS || clean.len() < FLOWS || groups.high[0] < LEAST {
        return Ports::CannotTell(format!("{words}: too few flows to make a group"));
    }
    let (more, less) = groups.more.split_at(groups.more.len() / 2);
    let of = |some: &[usize]| {
        let sum = some.iter().fold([0, 0], |[lost, sent], at| [lost + flows[*at].lost, sent + flows[*at].sent]);
        part(sum)
    };
    if of(more) > ALIKE * of(less) {
        return Ports::CannotTell(format!("{words}: the lossy ones do not lose alike"));
    }
    let of = |some: &[usize]| -> Vec<PortFlow> { some.iter().map(|at| flows[*at]).collect() };
    let rest = two_groups(&of(&clean).iter().map(counted).collect::<Vec<_>>());
    if rest.is_some_and(|rest| rest.p < CHANCE && part(rest.high) > CLEAN * high) {
        return Ports::CannotTell(format!("{words}, but more than two groups of them lose differently"));
    }
    Ports::TwoGroups(Member { lossy: of(&lossy), clean: of(&clean), groups })
}

impl Member {
    /// What it loses of its packets.
    pub fn loss(&self) -> f64 {
        let [lost, sent] = self.groups.high;
        float(lost) / float(sent.max(1))
    }

    /// Whether a load that lost this part of its packets may have met it.
    pub fn explains(&self, loss: f64) -> bool {
        /// Small packets are lost less often than large ones, and loads are of other times.
        const TIMES: f64 = 4.0;
        (self.loss() / TIMES..=self.loss() * TIMES).contains(&loss)
    }

    /// `9 of 32 flows`.
    pub fn count(&self) -> String {
        format!("{} of {} flows", self.lossy.len(), self.lossy.len() + self.clean.len())
    }

    /// How the two groups differ, with the share of flows that the member takes.
    pub fn words(&self) -> String {
        let ([lost, sent], [other_lost, other_sent]) = (self.groups.high, self.groups.low);
        let (n, all) = (self.lossy.len() as u64, (self.lossy.len() + self.clean.len()) as u64);
        let [from, to] = wilson(n, all, 0.95).unwrap_or([0.0, 1.0]).map(units::percent);
        format!(
            "of {all} UDP flows that differ in their ports alone, {n} lost {lost} of {sent} ({}), the other {} lost {other_lost} of \
             {other_sent}: one member of a group of equal paths loses, which takes {} of the flows (95 %: {from} to {to})",
            units::percent(self.loss()),
            all - n,
            units::percent(float(n) / float(all.max(1)))
        )
    }
}
