//! What the tester alone can send and count: over a virtual pair in a network of its own, so that the device has no part in
//! it.

use super::error::PortError;
use super::format::{Ends, frame_format};
use super::{Qualified, QualifyRequest};
use narrows_model::load::frames::{FrameLoad, GeneratePlan, Mac, ReceivePlan};
use narrows_sys::netns::Namespaces;
use narrows_sys::rtnl::Links;
use narrows_sys::{clock, sysctl};
use narrows_traffic::Stop;
use narrows_traffic::frames::{Receiver, generate};
use std::os::fd::AsFd as _;
use std::time::Duration;

/// How long the tester is looked at.
const LOOK_MS: u64 = 400;
const DEVICES: [&str; 2] = ["qualify0", "qualify1"];

/// Frames a second that are sent and all received.
/// Errors: no network of its own can be made, or no frames sent there.
pub(super) fn qualify(request: &QualifyRequest, stop: &Stop) -> Result<Qualified, PortError> {
    let largest = request.sizes.iter().copied().max().unwrap_or(64);
    let prepare = || -> Result<(), PortError> {
        let failed = |error: narrows_sys::rtnl::Error| {
            let why = format!("cannot calibrate the tester: {error}");
            PortError::Unfit(DEVICES[0].to_owned(), why)
        };
        let here = narrows_sys::netns::network_of_this_thread()?;
        let mut links = Links::open().map_err(failed)?;
        links.add_veth(DEVICES[0], DEVICES[1], here.as_fd()).map_err(failed)?;
        for device in DEVICES {
            let _ = sysctl::write(&format!("net.ipv6.conf.{device}.disable_ipv6"), "1");
            links.set_mtu(device, largest.max(1518)).map_err(failed)?;
            links.set_up(device, true).map_err(failed)?;
        }
        Ok(())
    };
    let (namespaces, ()) = Namespaces::create("qualify", prepare)?;
    namespaces.run(|| look(request, stop))?
}

fn look(request: &QualifyRequest, stop: &Stop) -> Result<Qualified, PortError> {
    let traffic = &request.traffic;
    let mac = |device: &str| -> Result<Mac, PortError> {
        let link = Links::open().and_then(|mut links| links.get(device));
        let address = link.ok().and_then(|link| link.address);
        let none = || PortError::Unfit(device.to_owned(), "it has no MAC address".to_owned());
        address.map(Mac).ok_or_else(none)
    };
    let ends = Ends { macs: [mac(DEVICES[0])?, mac(DEVICES[1])?], addresses: request.addresses };
    let order = GeneratePlan {
        device: DEVICES[0].to_owned(),
        mode: None,
        format: frame_format(traffic, request.sizes.clone(), &ends),
        load: FrameLoad::Max,
        burst: 64,
        catch_up_us: 0,
        duration_ms: LOOK_MS,
        count: None,
        workers: 1,
        workers_note: None,
        first_stream: 0,
        stamp_every: 1024,
        broadcast_every: 0,
        interval_ms: 1_000,
    };
    let receive = ReceivePlan {
        device: DEVICES[1].to_owned(),
        mode: None,
        duration_ms: 60_000,
        idle_ms: None,
        per_flow: false,
        gaps: false,
        interval_ms: 1_000,
    };
    let mut receiver = Receiver::start(&receive)?;
    let sent = generate(&order, stop, |_| {})?;
    for _ in 0..100 {
        if receiver.frames()? >= sent.sent() {
            break;
        }
        clock::sleep(Duration::from_millis(5));
    }
    let got = receiver.finish()?;
    let method = format!("one worker over a veth pair on this machine, {} to {}", sent.mode.word(), got.mode.word());
    // What was lost there the tester cannot carry.
    let part = if sent.sent() > 0 { got.distinct() as f64 / sent.sent() as f64 } else { 0.0 };
    Ok(Qualified { pps: sent.sent_pps() * part.min(1.0), method })
}
