//! This host and a server of ndt7 as the two ends of a path: of the far host is known what its kernel says of the connection, and nothing
//! can be changed there.

use super::Server;
use super::websocket::{Words, open};
use crate::ends::{Changes, Ends, EndsError, On, TrialFailed, Watch};
use crate::instruments::LiveInstruments;
use crate::{lock, loopback, result_of};
use narrows_collect::Live;
use narrows_model::words::units;
use narrows_model::{Absent, Change, Flow, LoadPlan, Place, Setting, Snapshot, Trial};
use narrows_sys::clock;
use narrows_traffic::{Connections, Stop};
use narrows_wire::{iperf3::far, ndt7};
use std::sync::mpsc;
use std::time::Duration;

pub struct Ndt7Ends {
    server: Server,
    instruments: LiveInstruments,
    stop: Stop,
}

impl Ndt7Ends {
    /// The ends of the path to this server.
    pub const fn new(server: Server, instruments: LiveInstruments, stop: Stop) -> Self {
        Self { server, instruments, stop }
    }
}

fn impossible<T>() -> Result<T, EndsError> {
    Err(EndsError::Failed("a server of ndt7 lets nothing be changed; run `narrows serve` there".to_owned()))
}

impl Changes for Ndt7Ends {
    fn apply(&mut self, _: Place, _: &Setting) -> Result<Change, EndsError> {
        impossible()
    }

    fn undo(&mut self, _: &Change) -> Result<(), EndsError> {
        impossible()
    }

    fn keep(&mut self, _: &Change) -> Result<(), EndsError> {
        impossible()
    }
}

impl Ends for Ndt7Ends {
    fn inventory(&mut self, place: Place) -> Result<Snapshot, EndsError> {
        if place == Place::Client {
            let peer = self.server.addresses.first().map(|address| address.ip().to_canonical());
            return Ok(narrows_collect::inventory(&Live::new(), peer));
        }
        let why =
            "the far end is a server of ndt7, which shows its connection and not its host; run `narrows serve` there";
        let absent = Absent { collector: "ndt7".to_owned(), what: "*".to_owned(), why: why.to_owned() };
        Ok(Snapshot { absent: vec![absent], ..Snapshot::default() })
    }

    fn refuses(&self, plan: &LoadPlan) -> Option<String> {
        ndt7::refuses(plan).map(str::to_owned)
    }

    fn fitted(&self, plan: &LoadPlan) -> LoadPlan {
        ndt7::fitted(plan)
    }

    fn trial(&mut self, plan: &LoadPlan, on: On, watch: Watch<'_>) -> Result<Trial, TrialFailed> {
        let failed = |why: String| TrialFailed { why: EndsError::Failed(why), partial: None };
        match on {
            On::Underlay(_) => {
                return Err(failed(
                    "a server of ndt7 is measured by one address only; run `narrows serve` there".to_owned(),
                ));
            }
            On::Loopback => return loopback::trial(self.instruments, plan, &self.stop).map_err(failed),
            On::Path => {}
        }
        let (LoadPlan::Tcp(tcp), None) = (plan, ndt7::refuses(plan)) else {
            return Err(failed(ndt7::refuses(plan).unwrap_or("ndt7 has no such load").to_owned()));
        };
        let (Some(flow), Some(lasts_ms)) = (tcp.flows().first().copied(), plan.duration_ms()) else {
            return Err(failed("ndt7 ends by time".to_owned()));
        };
        let words = Words::default();
        let stream = open(&self.server, flow, tcp, &words).map_err(failed)?;
        // What comes down ends when this end says so; what goes up ends by itself.
        let enough = self.stop.below();
        let ends_at = clock::now() + Duration::from_millis(lasts_ms);
        let (instruments, peer) = (self.instruments, self.server.addresses.first().map(std::net::SocketAddr::ip));
        let (outbox, inbox) = mpsc::channel();
        let record = std::thread::scope(|scope| {
            let engine = scope.spawn(|| {
                let before = instruments.counters(peer);
                let connections = Connections::of(vec![stream]);
                let record = instruments.run(Place::Client, plan, connections, &enough, &mut |progress| {
                    let _ = outbox.send(progress);
                });
                record.map(|record| record.between(before, instruments.counters(peer)))
            });
            loop {
                match inbox.recv_timeout(Duration::from_millis(20)) {
                    Ok(progress) => {
                        watch(Place::Client, &progress);
                        watch(Place::Server, &far::progress(&progress));
                    }
                    Err(_) if engine.is_finished() => break,
                    Err(_) => {}
                }
                if flow == Flow::Down && clock::now() >= ends_at {
                    enough.stop();
                }
            }
            result_of(engine.join())
        });
        let client = record.map_err(failed)?;
        let other = lock(&words);
        let server = ndt7::record(plan, &client, &other.said, self.server.trust.is_some());
        let elapsed_us = client.flow_time_us();
        let trial = Trial { plan: plan.clone(), client, server, elapsed_us };
        match &other.broken {
            // A server may end a test when it knows enough, but not like that.
            Some(why) if elapsed_us < lasts_ms * 900 && !self.stop.is_set() => {
                let after = units::micros(elapsed_us);
                let why = format!("lost the ndt7 server {} after {after}: {why}", self.server.asked);
                Err(TrialFailed { why: EndsError::Lost(why), partial: Some(Box::new(trial)) })
            }
            _ => Ok(trial),
        }
    }

    fn stopped(&self) -> bool {
        self.stop.is_set()
    }
}
