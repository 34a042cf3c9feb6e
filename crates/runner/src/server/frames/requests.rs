//! The requests of a forwarding benchmark, one function each.

use super::super::audit;
use super::super::refusal::{Refused, json};
use super::super::request::{Answer, Asked, blocking, done};
use super::bounds;
use super::job::{Job, Jobs, Use};
use crate::lock;
use axum::body::Body;
use narrows_traffic::Stop;
use narrows_wire::api::frames::{
    FramesOrder, FramesStarted, FramesWait, LinksAnswer, LinksRequest, MAX_WAIT_MS, PortRequest, QualifyRequest,
};
use std::sync::Arc;
use std::time::Duration;

/// The counters of two devices: for every client that may see the interfaces.
pub(in super::super) async fn links(asked: Asked, body: Body) -> Answer {
    asked.may_see("its counters")?;
    let place = asked.session.place()?;
    let request: LinksRequest = asked.read(body).await?;
    let turn = asked.turn(place, &asked.shared.links).await?;
    let (reading, peer) = (asked.shared.reading.clone(), asked.session.address);
    let answer = blocking(move || (reading.links(request, peer), turn).0).await?;
    Ok(json(&answer.unwrap_or_else(|missing| LinksAnswer::Missing { why: missing.to_string() })))
}

/// A device that frames shall leave or enter by.
pub(in super::super) async fn look(asked: Asked, body: Body) -> Answer {
    asked.may_send_frames()?;
    let place = asked.session.place()?;
    let request: PortRequest = asked.read(body).await?;
    bounds::device(asked.rights.standing, &asked.shared.config.frames, &request.device)?;
    let turn = asked.turn(place, &asked.shared.links).await?;
    let look = blocking(move || {
        let _turn = turn;
        bounds::nothing_else(&request.device, asked.session.address)?;
        asked.shared.reading.port(asked.session.address).look(&request.device, request.gateway).map_err(Refused::failed)
    });
    Ok(json(&look.await??))
}

/// What this host alone can send and count.
pub(in super::super) async fn qualify(asked: Asked, body: Body) -> Answer {
    asked.may_send_frames()?;
    let request: QualifyRequest = asked.read(body).await?;
    bounds::any(asked.rights.standing, &asked.shared.config.frames, "DEV")?;
    bounds::qualify(&request).map_err(Refused::bad)?;
    let claim = asked.shared.uses.claim(Use::Qualify)?;
    let port = asked.shared.reading.port(asked.session.address);
    let qualified = blocking(move || {
        let _claim = claim;
        port.qualify(&request, &Stop::new()).map_err(Refused::failed)
    });
    Ok(json(&qualified.await??))
}

/// Begins to send or to count.
pub(in super::super) async fn begin(asked: Asked, body: Body) -> Answer {
    asked.may_send_frames()?;
    let order: FramesOrder = asked.read(body).await?;
    let Asked { rights, shared, session, .. } = asked;
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
    let port = shared.reading.port(peer);
    let named = device.clone();
    blocking(move || bounds::nothing_else(&device, peer)).await??;
    let duration_ms = match &order {
        FramesOrder::Generate { plans } => plans.iter().map(|plan| plan.duration_ms).max().unwrap_or(0),
        FramesOrder::Receive { plan, .. } => plan.duration_ms,
    };
    let action = if matches!(order, FramesOrder::Generate { .. }) { "send" } else { "count" };
    let noted = audit::Event::Frames { action, device: audit::text(&named), duration_ms };
    let job = match order {
        FramesOrder::Generate { plans } => Arc::new(Job::send(port, plans, claim)),
        FramesOrder::Receive { plan, watched } => {
            let time = Duration::from_millis(plan.duration_ms);
            let counting =
                blocking(move || Job::count(&*port, &plan, watched, claim)).await?.map_err(Refused::failed)?;
            let job = Arc::new(counting);
            job.expire(&session.end, time);
            job
        }
    };
    let added = lock(&session.frames).add(job.clone());
    match added {
        Ok(number) => {
            shared.audit.note(&session.by(), &noted);
            Ok(json(&FramesStarted { job: number }))
        }
        Err(refused) => {
            job.gone().await;
            Err(refused)
        }
    }
}

/// Waits for a job, not for long.
pub(in super::super) async fn wait(asked: Asked, body: Body) -> Answer {
    let job = Jobs::find(&asked.session.frames, &asked.item, false)?;
    let wait: FramesWait = asked.read(body).await?;
    let within = Duration::from_millis(wait.within_ms.min(MAX_WAIT_MS));
    Ok(json(&job.wait(wait.least, within).await.map_err(Refused::failed)?))
}

/// Ends generators early; their record stays.
pub(in super::super) async fn stop(asked: Asked) -> Answer {
    Jobs::find(&asked.session.frames, &asked.item, false)?.stop();
    done()
}

/// Ends a job and returns its record.
pub(in super::super) async fn end(asked: Asked) -> Answer {
    let job = Jobs::find(&asked.session.frames, &asked.item, true)?;
    Ok(json(&job.end().await.map_err(Refused::failed)?))
}
