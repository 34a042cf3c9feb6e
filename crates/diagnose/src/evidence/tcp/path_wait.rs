//! How long a load can wait in a queue of the path.

use super::{AT_CAPACITY, TcpEvidence};
use crate::judge::Evidence as _;
use crate::role::Role;
use narrows_model::host::buffers::{RECEIVE, SEND, TcpBuffer};
use narrows_model::words::figures::float;
use narrows_model::words::units;
use narrows_search::profile::Plateau;

/// How long a load can wait on the path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PathWait {
    /// As long as any: the path queues what exceeds its capacity, and the load fills it.
    Any,
    /// No longer.
    AtMostUs(f64),
    /// Not profiled.
    Unknown,
}

impl PathWait {
    /// What of a rise of the RTT a queue of the path may be, microseconds.
    pub(super) fn limits(self, us: f64) -> f64 {
        if let Self::AtMostUs(most) = self { us.min(most) } else { us }
    }
}

/// Of a policer's rate a load gets this part and more.
const POLICED: f64 = 0.7;

/// A window that is this part of the goodput and more, and no further beyond it than samples of the RTT are off, is what holds the sender.
const EXPLAINS: f64 = 0.75;

impl TcpEvidence {
    /// The same of a sender that shows nothing, by arithmetic: the window that the receiver announced, once each RTT, as a part of the goodput, on a
    /// path that carries more. A window that does not hold the sender grows to twice what a round trip brings (`tcp_rcv_space_adjust`).
    pub(super) fn window_explains(&self) -> Option<f64> {
        if !self.base.is_silent() {
            return None;
        }
        let (window, rtt_us) = (self.base.snd_wnd_bytes?, self.base.rtt_us?);
        let explained = self.goodput_bps() * rtt_us / 8e6 / (window * float(self.base.streams as u64)).max(1.0);
        (self.path_has_room() && explained >= EXPLAINS).then_some(explained.min(1.0))
    }

    /// How much the receiver's window held the sender back, in words that say where it is known from: its kernel's clock, or arithmetic.
    pub fn waited_words(&self, held: f64) -> String {
        let held = units::percent(held);
        let Some((window, rtt_us)) = self.base.snd_wnd_bytes.zip(self.base.rtt_us).filter(|_| self.base.is_silent())
        else {
            return format!("the sender waited for the receive window {held} of the time");
        };
        let (window, rtt) = (units::bytes(window as u64), units::micros(rtt_us as u64));
        format!("the goodput is {held} of one window of {window} per RTT of {rtt}")
    }

    /// Whether UDP meets the limit that holds TCP, by the profile: no window, buffer, reader or writer of a host is at the same rate for both, and a core only
    /// by chance. What is left of a host that shows nothing is its own interface, which no other host tells from the path.
    pub fn udp_meets_it(&self) -> bool {
        let Some(shape) = self.profile.as_ref().map(|profile| &profile.shape) else { return false };
        // Totals of whole steps are off by the queue's part of a step.
        let least = AT_CAPACITY * if shape.by_totals { 1.05 } else { 1.0 };
        // A policer leaves a congestion control that minds losses less.
        let least = if self.policed() { POLICED } else { least };
        shape.plateau.is_some() && self.filled().is_some_and(|part| (least..=self.beyond()).contains(&part))
    }

    /// Whether a buffer that the kernel sizes holds less, at its maximum, than the path with its queue empty.
    pub fn buffer_below_path(&self) -> bool {
        let path = self.capacity_goodput_bps().zip(self.min_rtt_us).map(|(bps, us)| bps / 8.0 * us / 1e6);
        let below = |role: Role, buffer: &TcpBuffer, locked: Option<bool>| {
            let max = self.number(role, buffer.words[2]).filter(|_| locked != Some(true));
            max.zip(path).is_some_and(|(max, path)| max < path)
        };
        below(Role::Sender, &SEND, self.base.send_locked) || below(Role::Receiver, &RECEIVE, self.base.receive_locked)
    }

    /// Whether the profile met a policer.
    pub fn policed(&self) -> bool {
        self.profile.as_ref().is_some_and(|it| matches!(it.shape.plateau, Some(Plateau::Policer { .. })))
    }

    /// How much of a rise of the RTT a queue of this direction of the path can be, by its profile; nothing else tells the path from what
    /// the hosts add (late acknowledgements, unread data) and from the reverse path.
    pub fn path_wait(&self) -> PathWait {
        let Some(shape) = self.profile.as_ref().map(|profile| &profile.shape) else { return PathWait::Unknown };
        let fills = self.filled().is_some_and(|part| part >= AT_CAPACITY);
        match shape.plateau {
            Some(Plateau::Queue | Plateau::Shaper { .. }) if fills => PathWait::Any,
            // What exceeds the rate waits nowhere, whatever the load; what a bucket lets pass may wait behind it.
            Some(Plateau::Policer { .. }) => {
                let seen = shape.steps.iter().filter(|step| !step.disturbed).map(|step| step.queue_us);
                PathWait::AtMostUs(seen.fold(shape.queue_us, f64::max))
            }
            Some(Plateau::ShortQueue) => PathWait::AtMostUs(shape.queue_us),
            // No more can wait than all that is in flight, and it leaves at the rate that the path carries.
            Some(Plateau::Queue | Plateau::Shaper { .. }) | None => {
                let bits = self.base.in_flight_bytes.map(|bytes| bytes * 8.0 * float(self.base.streams as u64));
                let carries = self.carries_bps().filter(|bps| *bps > 0.0);
                let longest = bits.zip(carries).map(|(bits, bps)| bits / bps * 1e6);
                longest.map_or(PathWait::Unknown, PathWait::AtMostUs)
            }
        }
    }
}
