//! This host and a server of ndt7 as the two ends of a path: of the far host is known what its kernel says of the connection, and nothing
//! can be changed there.

use super::Server;
use super::websocket::{Words, open};
use crate::ends::{Changes, Ends, EndsError, On, TrialFailed, Watch};
use crate::instruments::LiveInstruments;
use crate::{lock, loopback, result_of};
use narrows_collect::Live;
use narrows_model::words::units;
use narrows_model::{Absent, Change, Flow, LoadPlan, LoadRecord, Place, Progress, Setting, Snapshot, Trial};
use narrows_sys::clock;
use narrows_traffic::{Connections, Stop};
use narrows_wire::{iperf3::far, ndt7};
use std::net::IpAddr;
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

    fn peer(&self) -> Option<IpAddr> {
        self.server.addresses.first().map(|address| address.ip().to_canonical())
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
            return Ok(narrows_collect::inventory(&Live::new(), self.peer()));
        }
        let why =
            "the far end is a server of ndt7, which shows its connection and not its host; run `narrows serve` there";
        let absent = Absent { collector: "ndt7".to_owned(), what: "*".to_owned(), why: why.to_owned() };
        Ok(Snapshot { absent: vec![absent], ..Snapshot::default() })
    }

    fn refuses(&self, plan: &LoadPlan) -> Option<String> {
        ndt7::refuses(plan).map(str::to_owned)
    }

    fn trial(&mut self, plan: &LoadPlan, on: On, watch: Watch<'_>) -> Result<Trial, TrialFailed> {
        self.trial_until(plan, on, &mut |place, progress| {
            watch(place, progress);
            false
        })
    }

    fn trial_until(
        &mut self,
        plan: &LoadPlan,
        on: On,
        enough: &mut dyn FnMut(Place, &Progress) -> bool,
    ) -> Result<Trial, TrialFailed> {
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
        let (instruments, words) = (self.instruments, Words::default());
        let before = instruments.counters(self.peer());
        let opened = open(&self.server, flow, tcp, &words, &self.stop);
        let (stream, address) = opened.map_err(|why| match self.stop.is_set() {
            true => TrialFailed { why: EndsError::Interrupted, partial: None },
            false => failed(why),
        })?;
        // The next test begins with the address that answered.
        self.server.addresses.sort_by_key(|it| *it != address);
        let peer = self.peer();
        // What comes down ends when this end says so; what goes up ends by itself.
        let over = self.stop.below();
        let ends_at = clock::now() + Duration::from_millis(lasts_ms);
        let mut is_enough = false;
        let (outbox, inbox) = mpsc::channel();
        let record = std::thread::scope(|scope| {
            let engine = scope.spawn(|| {
                let connections = Connections::of(vec![stream]);
                let record = instruments.run(Place::Client, plan, connections, &over, &mut |progress| {
                    let _ = outbox.send(progress);
                });
                record.map(|record| record.between(before, instruments.counters(peer)))
            });
            loop {
                match inbox.recv_timeout(Duration::from_millis(20)) {
                    Ok(progress) => {
                        is_enough |= enough(Place::Client, &progress);
                        is_enough |= enough(Place::Server, &far::progress(&progress));
                    }
                    Err(_) if engine.is_finished() => break,
                    Err(_) => {}
                }
                if is_enough || flow == Flow::Down && clock::now() >= ends_at {
                    over.stop();
                }
            }
            result_of(engine.join())
        });
        let mut client = record.map_err(failed)?;
        let other = lock(&words);
        let server = ndt7::record(plan, &client, &other.said, self.server.trust.is_some());
        let elapsed_us = client.flow_time_us();
        let is_short = elapsed_us < lasts_ms * 900 && !is_enough && !self.stop.is_set();
        let after = units::micros(elapsed_us);
        // A server may end a test when it knows enough.
        if let (true, true, LoadRecord::Tcp(record)) = (is_short, other.has_ended, &mut client) {
            record.remarks.push(format!("the server ended the test after {after}"));
        }
        let trial = Trial { plan: plan.clone(), client, server, elapsed_us };
        match &other.broken {
            Some(why) if is_short => {
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
