//! What a client may have this host send: frames to and from addresses of the benchmarking ranges, by devices that whoever
//! started the server named, none of which carries anything else, for a bounded time.

use super::super::limits::Standing;
use super::super::refusal::Refused;
use narrows_collect::{Host, Live};
use narrows_model::load::frame_words::is_benchmarking;
use narrows_model::load::frames::{FrameFormat, GeneratePlan, MAX_FRAME_BYTES, ReceivePlan};
use narrows_wire::api::Reason;
use narrows_wire::api::frames::{FramesOrder, MAX_GENERATORS, QualifyRequest};
use std::net::IpAddr;

/// The longest job of a receiver: it is there before the generator and after it.
const MAX_RECEIVE_MS: u64 = GeneratePlan::LONGEST_MS + 600_000;
/// The most frames of an order.
const MAX_COUNT: u64 = 1_000_000_000_000;

/// Whether this client may use a device at all.
pub(super) fn device(standing: Standing, allowed: &[String], device: &str) -> Result<(), Refused> {
    any(standing, allowed, device)?;
    if allowed.iter().any(|one| one == device) {
        return Ok(());
    }
    let device = device.chars().take(15).collect::<String>().escape_default().to_string();
    Err(Refused::new(
        Reason::NotAllowed,
        format!(
            "this server allows frames on {} only; for {device} restart it with `narrows serve --frames {},{device}`",
            allowed.join(", "),
            allowed.join(",")
        ),
    ))
}

/// Whether this client may use any.
pub(super) fn any(standing: Standing, allowed: &[String], device: &str) -> Result<(), Refused> {
    if standing != Standing::Trusted {
        let why = "this server is open and sends frames only for clients with its token";
        return Err(Refused::new(Reason::NotAllowed, why));
    }
    if allowed.is_empty() {
        let device = device.chars().take(15).collect::<String>().escape_default().to_string();
        let why = format!(
            "this server sends no frames for clients; restart it with `narrows serve --frames {device}`, in a lab \
            network only"
        );
        return Err(Refused::new(Reason::NotAllowed, why));
    }
    Ok(())
}

/// That a device carries neither the host's default route nor this session. Blocks.
pub(super) fn nothing_else(device: &str, peer: Option<IpAddr>) -> Result<(), Refused> {
    let host: &dyn Host = &Live::new();
    let leads = |to| host.route(to).is_ok_and(|route| route.device == device);
    if leads(None) {
        return Err(Refused::new(
            Reason::NotAllowed,
            format!("{device} carries the default route: frames at line rate would disconnect the host"),
        ));
    }
    if peer.is_some_and(|peer| leads(Some(peer))) {
        return Err(Refused::new(
            Reason::NotAllowed,
            format!("{device} carries the route to the client: frames at line rate would disconnect the session"),
        ));
    }
    Ok(())
}

fn addresses(of: &[IpAddr]) -> Result<(), String> {
    match of.iter().find(|address| !is_benchmarking(**address)) {
        Some(outside) => Err(format!(
            "{outside} is outside the benchmarking ranges 198.18.0.0/15 and 2001:2::/48 (RFC 2544, RFC 5180); a \
            server allows no others"
        )),
        None => Ok(()),
    }
}

fn ends(format: &FrameFormat) -> Vec<IpAddr> {
    [format.source.addresses, format.destination.addresses].concat()
}

/// The plans of an order for a generator: the device of all of them.
pub(super) fn generate(plans: &[GeneratePlan]) -> Result<String, String> {
    let Some(first) = plans.first().filter(|_| plans.len() <= MAX_GENERATORS) else {
        return Err(format!("an order has from 1 to {MAX_GENERATORS} generators, not {}", plans.len()));
    };
    let mut streams = std::collections::BTreeSet::new();
    for plan in plans {
        plan.check()?;
        addresses(&ends(&plan.format))?;
        if plan.device != first.device {
            return Err("the generators of an order must use one interface".to_owned());
        }
        if plan.count.is_some_and(|count| count > MAX_COUNT) {
            return Err(format!("count is above {MAX_COUNT}"));
        }
        let own = u32::from(plan.first_stream)..u32::from(plan.first_stream) + plan.workers;
        if !own.into_iter().all(|stream| streams.insert(stream)) {
            return Err("two generators of an order use the same stream number".to_owned());
        }
    }
    Ok(first.device.clone())
}

/// The plan of a receiver.
pub(super) fn receive(plan: &ReceivePlan) -> Result<(), String> {
    plan.check()?;
    if plan.duration_ms > MAX_RECEIVE_MS {
        return Err(format!("duration is {} ms, but a receiver counts at most {MAX_RECEIVE_MS} ms", plan.duration_ms));
    }
    Ok(())
}

/// A look at what the host alone can do.
pub(super) fn qualify(request: &QualifyRequest) -> Result<(), String> {
    addresses(&request.addresses)?;
    let sizes = &request.sizes;
    if sizes.is_empty() || sizes.len() > FrameFormat::MAX_SIZES {
        return Err(format!("there must be from 1 to {} sizes, not {}", FrameFormat::MAX_SIZES, sizes.len()));
    }
    match sizes.iter().find(|size| **size > MAX_FRAME_BYTES) {
        Some(size) => Err(format!("a frame has at most {MAX_FRAME_BYTES} bytes, not {size}")),
        None => Ok(()),
    }
}

/// For a helper, which repeats the checks: whether the server may use this device at all.
pub(crate) fn by_device(allowed: &[String], name: &str, peer: Option<IpAddr>) -> Result<(), String> {
    let may = device(Standing::Trusted, allowed, name).and_then(|()| nothing_else(name, peer));
    may.map_err(|refused| refused.sentence().to_owned())
}

/// The same for an order.
pub(crate) fn by_order(allowed: &[String], order: &FramesOrder, peer: Option<IpAddr>) -> Result<(), String> {
    match order {
        FramesOrder::Generate { plans } => by_device(allowed, &generate(plans)?, peer),
        FramesOrder::Receive { plan, .. } => {
            receive(plan)?;
            by_device(allowed, &plan.device, peer)
        }
    }
}

/// The same for a look at what this host alone can do.
pub(crate) fn calibration(allowed: &[String], request: &QualifyRequest) -> Result<(), String> {
    any(Standing::Trusted, allowed, "DEV").map_err(|refused| refused.sentence().to_owned())?;
    qualify(request)
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::Family;
    use narrows_model::load::frames::{Endpoints, FrameLoad, Mac, Transport, Walk};

    fn plan() -> GeneratePlan {
        let side = |net| Endpoints::one(IpAddr::from([198, net, 0, 2]), [2000, 2009]);
        GeneratePlan {
            device: "eth1".to_owned(),
            mode: None,
            format: FrameFormat {
                source_mac: Mac([2, 0, 0, 0, 0, 1]),
                destination_mac: Mac([2, 0, 0, 0, 0, 2]),
                vlan: None,
                family: Family::Ipv4,
                transport: Transport::Udp,
                source: side(18),
                destination: side(19),
                walk: Walk::Odometer,
                sizes: vec![64],
                ttl: 64,
            },
            load: FrameLoad::FramesPerSecond(1000.0),
            burst: 64,
            catch_up_us: 0,
            duration_ms: 1000,
            count: None,
            workers: 1,
            workers_note: None,
            first_stream: 0,
            stamp_every: 1,
            broadcast_every: 0,
            interval_ms: 100,
        }
    }

    #[test]
    fn a_device_is_named_by_whoever_starts_the_server_or_not_used() {
        let said = |standing, allowed: &[&str], wanted| {
            let allowed: Vec<String> = allowed.iter().map(|name| (*name).to_owned()).collect();
            device(standing, &allowed, wanted).map_err(|refused| refused.sentence().to_owned())
        };
        assert_eq!(said(Standing::Trusted, &["eth1"], "eth1"), Ok(()));
        let none = said(Standing::Trusted, &[], "eth1").expect_err("no flag");
        assert!(none.contains("start it with `narrows serve --frames eth1`"), "{none}");
        let other = said(Standing::Trusted, &["eth1", "eth2"], "eth9").expect_err("not named");
        assert!(other.contains("eth1, eth2 only") && other.contains("--frames eth1,eth2,eth9`"), "{other}");
        let open = said(Standing::Open, &["eth1"], "eth1").expect_err("no token");
        assert!(open.contains("token"), "{open}");
    }

    #[test]
    fn what_could_do_harm_is_refused() {
        assert_eq!(generate(&[plan()]), Ok("eth1".to_owned()));
        let refused = |plans: &[GeneratePlan]| generate(plans).expect_err("refused");
        assert!(refused(&[]).contains("from 1 to 2"));
        let mut outside = plan();
        outside.format.destination.addresses[1] = IpAddr::from([198, 20, 0, 1]);
        assert!(refused(&[outside]).starts_with("198.20.0.1 is outside"));
        assert!(refused(&[GeneratePlan { duration_ms: GeneratePlan::LONGEST_MS + 1, ..plan() }]).contains("duration"));
        assert!(refused(&[GeneratePlan { count: Some(MAX_COUNT + 1), ..plan() }]).contains("count"));
        assert!(refused(&[plan(), plan()]).contains("same stream number"));
        let elsewhere = GeneratePlan { device: "eth2".to_owned(), first_stream: 1, ..plan() };
        assert!(refused(&[plan(), elsewhere]).contains("one interface"));
        assert!(generate(&[plan(), GeneratePlan { first_stream: 32, ..plan() }]).is_ok());
    }
}
