//! What the server reads of its host and sends by its devices: in this process, or by the helper [`Role::Watch`](super::Role).

use super::line::{AT_ONCE, Call, Line};
use super::order::{Refusal, WatchOrder, Word};
use crate::instruments::{self, LiveInstruments, Watches};
use crate::port::{Here, Port, PortError, PortState, Qualified, QualifyRequest, Receiving, counters};
use narrows_collect::{Live, Missing, Watched};
use narrows_model::load::frames::{GeneratePlan, GenerateRecord, ReceivePlan, ReceiveRecord};
use narrows_model::{Fact, InterfaceSample, Snapshot};
use narrows_sys::deputy::{self, Wish};
use narrows_traffic::Stop;
use narrows_wire::api::frames::{LinksAnswer, LinksRequest, PortRequest};
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How often a flag that ends a generator is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// For the tokens, which every request waits for.
const TOKENS: Duration = Duration::from_secs(2);
/// For a receiver to attach, and for a record.
const SET_UP: Duration = Duration::from_secs(60);

/// Who reads this host for the server.
#[derive(Debug, Clone)]
pub(crate) enum Reading {
    Here,
    Helper(Line),
}

impl Reading {
    pub(crate) fn inventory(&self, peer: Option<IpAddr>) -> Result<Snapshot, Missing> {
        match self {
            Self::Here => Ok(narrows_collect::inventory(&Live::new(), peer)),
            Self::Helper(line) => line.call(&WatchOrder::Inventory(peer)).map_err(Missing::because),
        }
    }

    pub(crate) fn counters(&self, own: LiveInstruments, peer: Option<IpAddr>) -> Snapshot {
        match self {
            Self::Helper(line) if own == LiveInstruments::All => {
                line.call(&WatchOrder::Counters(peer)).unwrap_or_else(|why| {
                    let mut none = Snapshot::default();
                    none.absent.push(absent(&why));
                    none
                })
            }
            _ => own.counters(peer),
        }
    }

    pub(crate) fn watch(&self, own: LiveInstruments) -> Watches {
        let Self::Helper(line) = self else { return own.watch() };
        let start = |watched: Watched| {
            let call = line.open(&WatchOrder::Count(watched), None)?;
            call.answer::<()>(AT_ONCE)?;
            Ok(instruments::Counting::Helper(HelperWatch(call)))
        };
        let start = |watched| start(watched).map_err(|why: Refusal| Missing::because(why));
        if own == LiveInstruments::All { Watches::begin(start) } else { Watches::default() }
    }

    pub(crate) fn interfaces(&self) -> Result<Vec<InterfaceSample>, Missing> {
        match self {
            Self::Here => narrows_collect::interfaces(),
            Self::Helper(line) => line.call(&WatchOrder::Interfaces).map_err(Missing::because),
        }
    }

    /// The file of the named tokens of a state directory.
    pub(crate) fn tokens(&self, state: &Path) -> Result<Vec<u8>, String> {
        match self {
            Self::Here => crate::tokens::read(state).map_err(|error| error.to_string()),
            // Without a turn: others may take theirs for long.
            Self::Helper(line) => {
                let read = line.open(&WatchOrder::Tokens, None).and_then(|call| call.answer(TOKENS));
                read.map_err(|why: Refusal| why.to_string())
            }
        }
    }

    pub(crate) fn links(&self, request: LinksRequest, peer: Option<IpAddr>) -> Result<LinksAnswer, Missing> {
        match self {
            Self::Here => counters(&request.input, &request.output, request.state, peer),
            Self::Helper(line) => line.call(&WatchOrder::Links(request, peer)).map_err(Missing::because),
        }
    }

    /// The devices of this host. The client's packets come from `peer`.
    pub(crate) fn port(&self, peer: Option<IpAddr>) -> Arc<dyn Port> {
        match self {
            Self::Here => Arc::new(Here),
            Self::Helper(line) => Arc::new(Helped { line: line.clone(), peer }),
        }
    }

    /// Has the helper set the socket options that this process may not.
    pub(super) fn appoint(&self) {
        if let Self::Helper(line) = self.clone() {
            let set = move |socket: Option<BorrowedFd<'_>>, wish: &Wish| {
                line.call_for::<()>(&WatchOrder::Socket(wish.clone()), socket).is_ok()
            };
            deputy::appoint(set);
        }
    }
}

fn absent(why: &Refusal) -> narrows_model::Absent {
    narrows_model::Absent { collector: "serve".to_owned(), what: "*".to_owned(), why: why.to_string() }
}

/// What the helper counts.
#[derive(Debug)]
pub(crate) struct HelperWatch(Call);

impl HelperWatch {
    pub(crate) fn finish(&self) -> Result<Vec<Fact>, Missing> {
        let end = || {
            self.0.send(&Word::Finish)?;
            self.0.answer(AT_ONCE)
        };
        end().map_err(|why: Refusal| Missing::because(why))
    }
}

#[derive(Debug)]
struct Helped {
    line: Line,
    peer: Option<IpAddr>,
}

#[allow(clippy::needless_pass_by_value)] // for map_err
fn failed(refusal: Refusal) -> PortError {
    PortError::Helper(refusal.to_string())
}

impl Port for Helped {
    fn host(&self) -> &str {
        "this host"
    }

    fn look(&self, device: &str, gateway: Option<IpAddr>) -> Result<PortState, PortError> {
        let order = WatchOrder::Look(PortRequest { device: device.to_owned(), gateway });
        self.line.call(&order).map_err(failed)
    }

    fn qualify(&self, request: &QualifyRequest, _: &Stop) -> Result<Qualified, PortError> {
        self.line.call(&WatchOrder::Qualify(request.clone())).map_err(failed)
    }

    fn generate(&self, plans: &[GeneratePlan], stop: &Stop) -> Result<Vec<GenerateRecord>, PortError> {
        let run = || {
            let call = self.line.open(&WatchOrder::Generate(plans.to_vec(), self.peer), None)?;
            let mut told = false;
            while !call.is_answered(LOOK)? {
                if stop.is_set() && !std::mem::replace(&mut told, true) {
                    call.send(&Word::Finish)?;
                }
            }
            call.answer(SET_UP)
        };
        run().map_err(failed)
    }

    fn receive(&self, plan: &ReceivePlan, watched: bool) -> Result<Box<dyn Receiving>, PortError> {
        let begin = || {
            let call = self.line.open(&WatchOrder::Receive(plan.clone(), watched, self.peer), None)?;
            call.answer::<()>(SET_UP)?;
            Ok(call)
        };
        begin().map(|call| Box::new(Counting(call)) as Box<dyn Receiving>).map_err(failed)
    }
}

/// A receiver of the helper.
struct Counting(Call);

impl Receiving for Counting {
    fn wait(&mut self, least: u64, within: Duration) -> Result<u64, PortError> {
        let within_ms = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
        self.0.send(&Word::Wait(least, within_ms)).and_then(|()| self.0.answer(SET_UP)).map_err(failed)
    }

    fn finish(self: Box<Self>) -> Result<ReceiveRecord, PortError> {
        self.0.send(&Word::Finish).and_then(|()| self.0.answer(SET_UP)).map_err(failed)
    }
}
