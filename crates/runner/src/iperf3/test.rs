//! One test from the cookie to the results, from the client's side.

use super::connect::{Iperf3Error, Peer};
use super::control::{ANSWER, Control};
use super::profile;
use super::running::{self, Running};
use super::streams;
use crate::ends::{EndsError, TrialFailed};
use crate::foreign::{Enough, Foreign, Here};
use narrows_model::{DatagramSizes, LoadPlan, LoadRecord, Place, Progress, Target, Trial};
use narrows_sys::clock;
use narrows_wire::iperf3::{Cookie, Params, Results, State, far, json, own};
use std::net::IpAddr;

impl From<Iperf3Error> for EndsError {
    fn from(error: Iperf3Error) -> Self {
        match error {
            Iperf3Error::Lost(..) => Self::Lost(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl Foreign for Peer {
    const NAME: &'static str = "iperf3";

    fn target(&self) -> Target {
        let (asked, address) = (self.asked.clone(), self.address());
        Target { asked, address: address.to_string(), family: crate::remote::family_of(address.ip()) }
    }

    fn peer(&self) -> Option<IpAddr> {
        Some(self.address().ip().to_canonical())
    }

    fn refuses(&self, plan: &LoadPlan) -> Option<String> {
        if matches!(plan, LoadPlan::Profile(_)) { None } else { Params::of(plan).err() }
    }

    fn fitted(&self, plan: &LoadPlan) -> LoadPlan {
        Params::fitted(plan)
    }

    fn profile_takes(&self) -> u64 {
        profile::TAKES
    }

    fn trial(&mut self, plan: &LoadPlan, here: &Here, enough: Enough<'_>) -> Result<Trial, TrialFailed> {
        if let LoadPlan::Profile(plan) = plan {
            return profile::trial(self, plan, here, enough);
        }
        let nothing = |why: EndsError| TrialFailed { why, partial: None };
        let mut watch = |progress: &Progress| {
            let is_enough = enough(Place::Client, progress);
            enough(Place::Server, &far::progress(progress)) || is_enough
        };
        let Opened { mut control, params, plan, streams } = open(self, plan).map_err(|error| nothing(error.into()))?;
        let Running { mut record, failure } =
            running::run(&mut control, &params, &plan, streams, (here.instruments, &here.stop), &mut watch)
                .map_err(|why| nothing(EndsError::Failed(why)))?;
        let results = match failure {
            Some(failure) => Err(failure.into()),
            None if here.stop.is_set() => {
                control.tell(State::ClientTerminate).map_err(EndsError::from).and(Err(EndsError::Interrupted))
            }
            None => exchange(&mut control, &plan, &record).map_err(EndsError::from),
        };
        let server = far::record(&plan, &mut record, results.as_ref().ok());
        let elapsed_us = record.flow_time_us();
        let trial = Trial { plan, client: record, server, elapsed_us };
        match results {
            Ok(_) => Ok(trial),
            Err(why) => Err(TrialFailed { why, partial: Some(Box::new(trial)) }),
        }
    }
}

pub(super) struct Opened {
    pub(super) control: Control,
    params: Params,
    pub(super) plan: LoadPlan,
    pub(super) streams: Vec<narrows_traffic::DataStream>,
}

/// Until the server says that the test runs.
pub(super) fn open(peer: &Peer, plan: &LoadPlan) -> Result<Opened, Iperf3Error> {
    let mut params = Params::of(plan).map_err(Iperf3Error::Here)?;
    params.auth_token = peer.word()?;
    let mut plan = plan.clone();
    let (address, stream) = peer.connect()?;
    if let LoadPlan::Udp(udp) = &mut plan
        && udp.sizes == DatagramSizes::Largest
    {
        let bytes = streams::largest_datagram(address)?;
        udp.sizes = DatagramSizes::Sequence(vec![bytes]);
        params.length = bytes;
    }
    plan.check().map_err(Iperf3Error::Here)?;
    let mut control = Control::new(stream, address)?;
    let random = narrows_sys::random::bytes().map_err(|error| Iperf3Error::Here(error.to_string()))?;
    let cookie = Cookie::of(random);
    control.send(cookie.bytes())?;
    control.expect(State::ParamExchange, "its first word").map_err(|error| match error {
        Iperf3Error::Lost(address, why) => {
            Iperf3Error::Lost(address, format!("{why}; if `narrows serve` runs there, name the host without iperf3://"))
        }
        other => other,
    })?;
    let written = |error: serde_json::Error| Iperf3Error::Here(error.to_string());
    control.send(&json(&params.to_json(crate::VERSION)).map_err(written)?)?;
    control.expect(State::CreateStreams, "its answer to the parameters")?;
    let streams = streams::open(&mut control, &cookie, &params, &plan)?;
    control.expect(State::TestStart, "the start of the test")?;
    control.expect(State::TestRunning, "the start of the test")?;
    Ok(Opened { control, params, plan, streams })
}

/// Ends the test and exchanges the results.
pub(super) fn exchange(control: &mut Control, plan: &LoadPlan, record: &LoadRecord) -> Result<Results, Iperf3Error> {
    let ours = own::results(record, plan.omitted_ms() * 1000, None);
    let written = |error: serde_json::Error| Iperf3Error::Here(error.to_string());
    control.send(&json(&ours.to_json()).map_err(written)?)?;
    let theirs = Results::parse(&control.json()?).map_err(|why| Iperf3Error::Strange(control.address, why))?;
    let until = clock::now() + ANSWER;
    loop {
        match control.look()? {
            Some(State::DisplayResults) => break,
            Some(found) => return Err(control.strange(found)),
            None => control.check(until, "the end of the test")?,
        }
    }
    control.tell(State::IperfDone)?;
    Ok(theirs)
}
