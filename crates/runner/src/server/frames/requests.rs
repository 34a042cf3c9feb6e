//! The requests of a forwarding benchmark, one function each.

use super::super::api::{Answer, Server, admitted, blocking, find, its_turn, read};
use super::super::refusal::{Refused, json};
use super::super::rights::Rights;
use super::job::Job;
use super::{Use, bounds};
use crate::forwarding::port::{Here, Port as _};
use crate::server::session::{Session, lock};
use crate::stop::Stop;
use axum::body::Body;
use axum::extract::{Path, State};
use narrows_collect::{Host, Live, Missing, device_state, drops_by_reason, link_counters};
use narrows_wire::api::Reason;
use narrows_wire::api::frames::{
    FramesOrder, FramesStarted, FramesWait, LinkPackets, LinksAnswer, LinksRequest, MAX_WAIT_MS, PortRequest,
    QualifyRequest,
};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// The counters of two devices: for every client that may see the interfaces.
pub(in super::super) async fn links(
    rights: Rights,
    State(shared): Server,
    Path(id): Path<String>,
    body: Body,
) -> Answer {
    let session = find(&shared, &id)?;
    if !rights.permissions.inventory {
        let why = "this server is open and shows its counters only to clients with its token";
        return Err(Refused::new(Reason::NotAllowed, why));
    }
    admitted(&session)?;
    let request: LinksRequest = read(body).await?;
    let answer = blocking(move || counters(&request, session.address)).await?;
    Ok(json(&answer))
}

fn counters(request: &LinksRequest, peer: Option<IpAddr>) -> LinksAnswer {
    let packets = |device: &str| {
        let counters = link_counters(device)?;
        Ok::<_, Missing>(LinkPackets { rx_packets: counters.rx_packets, tx_packets: counters.tx_packets })
    };
    let (input, output) = (request.input.as_str(), request.output.as_str());
    let looked = || {
        let host: &dyn Host = &Live::new();
        let leads_by = peer.and_then(|peer| host.route(Some(peer)).ok()).map(|route| route.device);
        Ok::<_, Missing>(LinksAnswer::Read {
            input: packets(input)?,
            output: packets(output)?,
            drops: drops_by_reason(&[input, output])?,
            state: if request.state { Some(Box::new(device_state(&[input, output])?)) } else { None },
            counts_itself: leads_by.is_some_and(|device| device == input || device == output),
        })
    };
    looked().unwrap_or_else(|missing| LinksAnswer::Missing { why: missing.to_string() })
}

/// A device that frames shall leave or enter by.
pub(in super::super) async fn look(
    rights: Rights,
    State(shared): Server,
    Path(id): Path<String>,
    body: Body,
) -> Answer {
    let session = its_turn(&shared, &id)?;
    let request: PortRequest = read(body).await?;
    bounds::device(rights.standing, &shared.config.frames, &request.device)?;
    let peer = session.address;
    let look = blocking(move || {
        bounds::nothing_else(&request.device, peer)?;
        Here.look(&request.device, request.gateway).map_err(Refused::failed)
    });
    Ok(json(&look.await??))
}

/// What this host alone can send and count.
pub(in super::super) async fn qualify(
    rights: Rights,
    State(shared): Server,
    Path(id): Path<String>,
    body: Body,
) -> Answer {
    its_turn(&shared, &id)?;
    let request: QualifyRequest = read(body).await?;
    bounds::any(rights.standing, &shared.config.frames, "DEV")?;
    bounds::qualify(&request).map_err(Refused::bad)?;
    let claim = shared.uses.claim(Use::Qualify)?;
    let qualified = blocking(move || {
        let _claim = claim;
        Here.qualify(&request, &Stop::new()).map_err(Refused::failed)
    });
    Ok(json(&qualified.await??))
}

/// Begins to send or to count.
pub(in super::super) async fn begin(
    rights: Rights,
    State(shared): Server,
    Path(id): Path<String>,
    body: Body,
) -> Answer {
    let session = its_turn(&shared, &id)?;
    let order: FramesOrder = read(body).await?;
    let (device, what) = match &order {
        FramesOrder::Generate { plans } => {
            let device = bounds::generate(plans).map_err(Refused::bad)?;
            (device.clone(), Use::Send(device))
        }
        FramesOrder::Receive { plan, .. } => {
            bounds::receive(plan).map_err(Refused::bad)?;
            (plan.device.clone(), Use::Count(plan.device.clone()))
        }
    };
    bounds::device(rights.standing, &shared.config.frames, &device)?;
    let claim = shared.uses.claim(what)?;
    let peer = session.address;
    blocking(move || bounds::nothing_else(&device, peer)).await??;
    let job = match order {
        FramesOrder::Generate { plans } => Arc::new(Job::send(plans, claim)),
        FramesOrder::Receive { plan, watched } => {
            let time = Duration::from_millis(plan.duration_ms);
            let counting = blocking(move || Job::count(&plan, watched, claim)).await?.map_err(Refused::failed)?;
            let job = Arc::new(counting);
            job.expire(&session, time);
            job
        }
    };
    let added = lock(&session.frames).add(job.clone());
    match added {
        Ok(number) => Ok(json(&FramesStarted { job: number })),
        Err(refused) => {
            job.gone().await;
            Err(refused)
        }
    }
}

fn job(session: &Session, number: &str) -> Result<(u32, Arc<Job>), Refused> {
    let number: u32 = number.parse().map_err(|_| Refused::not_found("job of frames"))?;
    Ok((number, session.job(number)?))
}

/// Waits for a job, not for long.
pub(in super::super) async fn wait(
    _: Rights,
    State(shared): Server,
    Path((id, number)): Path<(String, String)>,
    body: Body,
) -> Answer {
    let (_, job) = job(&*find(&shared, &id)?, &number)?;
    let wait: FramesWait = read(body).await?;
    let within = Duration::from_millis(wait.within_ms.min(MAX_WAIT_MS));
    Ok(json(&job.wait(wait.least, within).await.map_err(Refused::failed)?))
}

/// Ends generators early; their record stays.
pub(in super::super) async fn stop(
    _: Rights,
    State(shared): Server,
    Path((id, number)): Path<(String, String)>,
) -> Answer {
    let (_, job) = job(&*find(&shared, &id)?, &number)?;
    job.stop();
    Ok(json(&serde_json::json!({})))
}

/// Ends a job and tells what it saw.
pub(in super::super) async fn end(
    _: Rights,
    State(shared): Server,
    Path((id, number)): Path<(String, String)>,
) -> Answer {
    let session = find(&shared, &id)?;
    let (number, job) = job(&session, &number)?;
    lock(&session.frames).running.remove(&number);
    Ok(json(&job.end().await.map_err(Refused::failed)?))
}
