//! One test from the cookie to the results, from the client's side.

use super::connect::{Iperf3Error, Peer};
use super::control::{ANSWER, Control};
use super::running::{self, Running};
use super::streams;
use crate::ends::Watch;
use crate::instruments::LiveInstruments;
use narrows_model::{DatagramSizes, LoadPlan, LoadRecord, Place, Progress, Trial};
use narrows_sys::clock;
use narrows_traffic::Stop;
use narrows_wire::iperf3::{Cookie, Params, Results, State, far, json, own};

/// A test that came to an end, or as much of it as was measured.
pub(super) struct Tested {
    pub(super) trial: Option<Trial>,
    pub(super) failure: Option<Iperf3Error>,
}

impl From<Iperf3Error> for Tested {
    fn from(error: Iperf3Error) -> Self {
        Self { trial: None, failure: Some(error) }
    }
}

/// Runs a plan against the server.
pub(super) fn run(peer: &Peer, plan: &LoadPlan, instruments: LiveInstruments, stop: &Stop, watch: Watch<'_>) -> Tested {
    let here = |why: String| Tested::from(Iperf3Error::Here(why));
    let mut open = match open(peer, plan) {
        Ok(open) => open,
        Err(error) => return error.into(),
    };
    let mut watch = |progress: &Progress| {
        watch(Place::Client, progress);
        watch(Place::Server, &far::progress(progress));
    };
    let Opened { control, params, plan, streams } = &mut open;
    let streams = std::mem::take(streams);
    let Running { mut record, failure } =
        match running::run(control, params, plan, streams, (instruments, stop), &mut watch) {
            Ok(running) => running,
            Err(why) => return here(why),
        };
    let results = match failure {
        Some(failure) => Err(Some(failure)),
        None if stop.is_set() => control.tell(State::ClientTerminate).map_err(Some).and(Err(None)),
        None => exchange(control, plan, &record).map_err(Some),
    };
    let (results, failure) = results.map_or_else(|failure| (None, failure), |results| (Some(results), None));
    let server = far::record(plan, &mut record, results.as_ref());
    let elapsed_us = record.flow_time_us();
    Tested { trial: Some(Trial { plan: plan.clone(), client: record, server, elapsed_us }), failure }
}

struct Opened {
    control: Control,
    params: Params,
    plan: LoadPlan,
    streams: Vec<narrows_traffic::DataStream>,
}

/// Until the server says that the test runs.
fn open(peer: &Peer, plan: &LoadPlan) -> Result<Opened, Iperf3Error> {
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
fn exchange(control: &mut Control, plan: &LoadPlan, record: &LoadRecord) -> Result<Results, Iperf3Error> {
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
