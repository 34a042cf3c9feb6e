//! The traffic of a modifier during the load: the management query of each second, the routing updates (RFC 2544, 11.2 and 11.3). It
//! runs on a thread of its own for as long as the load does. Frames to all stations are part of the load itself
//! (`broadcast_every` of a generator).

use crate::hops::Hop;
use narrows_forwarding::data::modifiers::{ModifierSeen, RoutesSeen, TableSeen};
use narrows_forwarding::rip::{self, Says};
use narrows_model::load::frame_traffic::Modifier;
use narrows_model::load::frames::Mac;
use narrows_runner::result_of;
use narrows_sys::clock;
use narrows_sys::packet_io::{PacketSender, Sent};
use narrows_sys::rtnl::Links;
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The port that the load leaves by, with its addresses.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    pub(super) interface: String,
    pub(super) mac: Mac,
    pub(super) address: IpAddr,
}

/// When an update is tried again for which the port had no room.
const AGAIN: Duration = Duration::from_millis(10);

/// What stays from trial to trial.
#[derive(Debug, Default)]
pub(super) struct ModifierTraffic {
    /// Whether the networks were announced last: updates take turns from trial to trial, too.
    announced: bool,
    /// The table that is filled, as its check found it.
    pub(super) table: Option<TableSeen>,
    #[cfg(feature = "snmp")]
    asker: Option<management::Asker>,
}

/// Whether it is time for the next one; `false`: the load is over.
fn is_due(over: &Receiver<()>, began: Instant, at: Duration) -> bool {
    matches!(over.recv_timeout(at.saturating_sub(began.elapsed())), Err(RecvTimeoutError::Timeout))
}

impl ModifierTraffic {
    /// Runs the load, and the modifier's traffic with it.
    pub(super) fn during<T>(
        &mut self,
        modifier: Option<&Modifier>,
        from: &Origin,
        under_test: Option<&Hop>,
        load: impl FnOnce() -> T,
    ) -> (T, Option<ModifierSeen>) {
        match modifier {
            None | Some(Modifier::Broadcast { .. }) => (load(), None),
            Some(Modifier::Table { .. }) => (load(), self.table.clone().map(ModifierSeen::Table)),
            #[cfg(feature = "snmp")]
            Some(Modifier::Management { agent }) => {
                let asker = self.asker.take().filter(|asker| asker.is_of(agent));
                let mut asker = asker.unwrap_or_else(|| management::Asker::of(agent));
                let (done, seen) = meanwhile(load, |over| asker.ask(over));
                self.asker = Some(asker);
                (done, Some(ModifierSeen::Management(seen)))
            }
            #[cfg(not(feature = "snmp"))]
            Some(Modifier::Management { .. }) => {
                let why = Some("this build lacks the feature snmp".to_owned());
                let seen = narrows_forwarding::data::modifiers::ManagementSeen { why, ..Default::default() };
                (load(), Some(ModifierSeen::Management(seen)))
            }
            Some(Modifier::Routes { every_ms, networks }) => {
                let every = Duration::from_millis(*every_ms);
                let mut announced = self.announced;
                let (done, mut seen) = meanwhile(load, |over| updates(from, every, *networks, &mut announced, over));
                self.announced = announced;
                if announced && seen.why.is_none() {
                    match under_test.and_then(|hop| hop.networks_known(*networks)) {
                        Some(Ok(known)) => seen.learned = Some(known),
                        Some(Err(why)) => seen.why = Some(why),
                        None => {}
                    }
                }
                (done, Some(ModifierSeen::Routes(seen)))
            }
        }
    }
}

/// Runs the load, and the modifier's traffic until the load is over.
fn meanwhile<T, S: Send>(load: impl FnOnce() -> T, modifier: impl FnOnce(&Receiver<()>) -> S + Send) -> (T, S) {
    let (end, over) = channel();
    std::thread::scope(|scope| {
        let modifier = scope.spawn(move || modifier(&over));
        let done = load();
        drop(end);
        (done, result_of(modifier.join()))
    })
}

/// Sends routing updates by turns, the first at once.
fn updates(from: &Origin, every: Duration, networks: u32, announced: &mut bool, over: &Receiver<()>) -> RoutesSeen {
    let mut seen = RoutesSeen::default();
    let IpAddr::V4(source) = from.address else {
        seen.why = Some("RIP version 2 is for IPv4 only".to_owned());
        return seen;
    };
    let open = || -> Result<PacketSender, String> {
        let link = Links::open().and_then(|mut links| links.get(&from.interface)).map_err(|error| error.to_string())?;
        PacketSender::open(link.index).map_err(|error| error.to_string())
    };
    let sender = match open() {
        Ok(sender) => sender,
        Err(why) => {
            seen.why = Some(why);
            return seen;
        }
    };
    let began = clock::now();
    let mut at = Duration::ZERO;
    while is_due(over, began, at) {
        let says = if *announced { Says::Unreachable } else { Says::Reachable };
        let frame = rip::frame(from.mac, source, networks, says);
        match sender.send(std::iter::once(frame.as_slice())) {
            Ok(Sent { taken: 1.., .. }) => {
                *announced = !*announced;
                match says {
                    Says::Reachable => seen.announced += 1,
                    Says::Unreachable => seen.withdrawn += 1,
                }
                at = at.saturating_add(every);
            }
            // The port's queue is full of the load: as soon as there is room.
            Ok(Sent { refused, .. }) => {
                seen.refused += refused;
                at = began.elapsed().saturating_add(AGAIN);
            }
            Err(error) => {
                seen.why = Some(error.to_string());
                break;
            }
        }
    }
    seen
}

/// What of the modifiers cannot be made, a sentence each.
pub(super) fn check(plan: &narrows_forwarding::data::ForwardingPlan) -> Vec<String> {
    let mut wrong = Vec::new();
    for (at, traffic) in plan.traffic.iter().enumerate() {
        let why = match &traffic.modifier {
            #[cfg(not(feature = "snmp"))]
            Some(Modifier::Management { .. }) => "this build lacks the feature snmp".to_owned(),
            #[cfg(feature = "snmp")]
            Some(Modifier::Management { agent }) => match narrows_snmp::check(agent) {
                Ok(()) => continue,
                Err(error) => error.to_string(),
            },
            Some(Modifier::Routes { .. }) if plan.generator.host.is_some() => {
                "routing updates are sent from this host only, and the generator is on another".to_owned()
            }
            Some(Modifier::Broadcast { .. } | Modifier::Routes { .. } | Modifier::Table { .. }) | None => continue,
        };
        wrong.push(format!("modifier of traffic[{at}]: {why}"));
    }
    wrong
}

#[cfg(feature = "snmp")]
mod management {
    use super::{clock, is_due};
    use narrows_forwarding::data::modifiers::ManagementSeen;
    use narrows_model::host::snmp::SnmpAgent;
    use narrows_snmp::{Agent, SnmpError};
    use std::sync::mpsc::Receiver;
    use std::time::Duration;

    /// Answer timeout, so that each answer arrives within the second of its query.
    const WITHIN: Duration = Duration::from_millis(950);
    /// A 32-bit uptime counter (hundredths of a second) this close to its maximum may have wrapped.
    const NEAR_THE_TURN: u32 = 6_000;

    /// The SNMP client, kept from trial to trial: SNMPv3 needs several messages to start.
    #[derive(Debug)]
    pub(super) struct Asker {
        of: SnmpAgent,
        agent: Result<Agent, String>,
    }

    /// Whether an uptime can follow another, wrap included.
    pub(super) const fn follows(before: Option<u32>, now: u32) -> bool {
        match before {
            Some(before) => now >= before || (before > u32::MAX - NEAR_THE_TURN && now < NEAR_THE_TURN),
            None => true,
        }
    }

    impl Asker {
        pub(super) fn of(of: &SnmpAgent) -> Self {
            let agent = Agent::asking_once(of, WITHIN).map_err(|error| error.to_string());
            Self { of: of.clone(), agent }
        }

        pub(super) fn is_of(&self, of: &SnmpAgent) -> bool {
            self.of == *of && self.agent.is_ok()
        }

        /// One query at the begin of each second until the load is over.
        pub(super) fn ask(&mut self, over: &Receiver<()>) -> ManagementSeen {
            let mut seen = ManagementSeen::default();
            let agent = match &self.agent {
                Ok(agent) => agent,
                Err(why) => {
                    seen.why = Some(why.clone());
                    return seen;
                }
            };
            let began = clock::now();
            let mut before = None;
            let mut second = 0;
            while is_due(over, began, Duration::from_secs(second)) {
                seen.asked += 1;
                let asked = clock::now();
                let why = match agent.up_time() {
                    Ok(ticks) if follows(before, ticks) => {
                        before = Some(ticks);
                        seen.answered += 1;
                        seen.answer_ns.push(clock::micros_since(asked).saturating_mul(1_000));
                        None
                    }
                    Ok(ticks) => {
                        before = Some(ticks);
                        seen.wrong += 1;
                        Some("its uptime decreased".to_owned())
                    }
                    Err(error) => {
                        let silent = matches!(error, SnmpError::NoAnswer { .. } | SnmpError::Unreachable { .. });
                        seen.wrong += u64::from(!silent);
                        Some(error.to_string())
                    }
                };
                seen.why = seen.why.or(why);
                // A second that passed during the last query is skipped.
                second = (second + 1).max(clock::micros_since(began) / 1_000_000);
            }
            seen
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beside_ends_with_the_load_and_has_its_say() {
        let (done, times) = meanwhile(
            || 7,
            |over| {
                let began = clock::now();
                (0..).take_while(|nth| is_due(over, began, Duration::from_secs(*nth * 3_600))).count()
            },
        );
        assert!(done == 7 && times <= 1, "an hour is never waited for: {times}");
    }

    #[cfg(feature = "snmp")]
    #[test]
    fn an_up_time_never_goes_back_but_at_its_turn() {
        use management::follows;
        assert!(follows(None, 0) && follows(Some(5), 5) && follows(Some(5), 105));
        assert!(!follows(Some(105), 5));
        assert!(follows(Some(u32::MAX - 10), 90));
        assert!(!follows(Some(u32::MAX - 10), 900_000));
    }
}
