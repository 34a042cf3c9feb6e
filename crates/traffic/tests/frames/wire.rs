//! The wire, the plans and the trial that the tests share.

use narrows_model::Family;
use narrows_model::load::frames::{
    Endpoints, FrameFormat, FrameLoad, FrameTrial, GeneratePlan, Mac, ReceiveMode, ReceivePlan, Transport, Walk,
};
use narrows_sys::netns::{self, Namespaces};
use narrows_sys::rtnl::Links;
use narrows_sys::{clock, sysctl};
use narrows_traffic::Stop;
use narrows_traffic::frames::{Receiver, generate};
use std::os::fd::AsFd as _;
use std::time::Duration;

/// A namespace with `gen0` wired to `rcv0`.
pub(crate) fn wire() -> Namespaces {
    let prepare = || -> Result<(), narrows_sys::Error> {
        let mut links = Links::open().unwrap();
        let here = netns::network_of_this_thread().unwrap();
        links.add_veth("gen0", "rcv0", here.as_fd()).unwrap();
        for device in ["gen0", "rcv0"] {
            // So that nothing but the test's frames moves.
            let _ = sysctl::write(&format!("net.ipv6.conf.{device}.disable_ipv6"), "1");
            links.set_up(device, true).unwrap();
        }
        Ok(())
    };
    Namespaces::create("frames", prepare).unwrap().0
}

pub(crate) fn plan() -> GeneratePlan {
    let mut links = Links::open().unwrap();
    let mac = |links: &mut Links, device: &str| Mac(links.get(device).unwrap().address.unwrap());
    let side = |address: [u8; 4], ports| Endpoints::one(address.into(), ports);
    GeneratePlan {
        device: "gen0".to_owned(),
        mode: None,
        format: FrameFormat {
            source_mac: mac(&mut links, "gen0"),
            destination_mac: mac(&mut links, "rcv0"),
            vlan: None,
            family: Family::Ipv4,
            transport: Transport::Udp,
            source: side([198, 18, 0, 2], [2000, 2099]),
            destination: side([198, 19, 0, 2], [2000, 2000]),
            walk: Walk::Odometer,
            sizes: vec![64],
            ttl: 64,
        },
        load: FrameLoad::FramesPerSecond(20_000.0),
        burst: 64,
        catch_up_us: 0,
        // The count ends it; a slow machine may take its time.
        duration_ms: 20_000,
        count: Some(4_000),
        workers: 1,
        workers_note: None,
        first_stream: 3,
        stamp_every: 10,
        broadcast_every: 0,
        interval_ms: 50,
    }
}

pub(crate) fn receive_plan() -> ReceivePlan {
    ReceivePlan {
        device: "rcv0".to_owned(),
        mode: None,
        duration_ms: 60_000,
        idle_ms: None,
        per_flow: true,
        gaps: true,
        interval_ms: 50,
    }
}

/// One trial inside the wire's namespace.
pub(crate) fn trial(change: impl FnOnce(&mut GeneratePlan, &mut ReceivePlan) + Send) -> FrameTrial {
    let wire = wire();
    wire.run(|| {
        let (mut plan, mut receive) = (plan(), receive_plan());
        change(&mut plan, &mut receive);
        let mut receiver = Receiver::start(&receive).unwrap();
        let sent = generate(&plan, &Stop::new(), |_| {}).unwrap();
        // What is under way arrives; a frame that never comes is what the assertions then find.
        for _ in 0..500 {
            if receiver.frames().unwrap() >= sent.sent() {
                break;
            }
            clock::sleep(Duration::from_millis(10));
        }
        FrameTrial { sent, got: receiver.finish().unwrap() }
    })
    .unwrap()
}

pub(crate) fn assert_all_came(trial: &FrameTrial, frames: u64) {
    let (sent, got) = (&trial.sent, &trial.got);
    assert_eq!((sent.sent(), got.distinct(), trial.lost()), (frames, frames, 0), "{sent:?} {got:?}");
    let stream = &got.streams[0];
    assert_eq!((stream.stream, stream.duplicates, stream.reordered, stream.highest), (3, 0, 0, frames - 1), "{got:?}");
    assert_eq!(got.foreign, 0, "{got:?}");
}

/// Whether programs can be loaded into the kernel: this one was built with them, and we are root of the machine and not of a
/// user namespace alone. Without it only the packet socket is tested.
pub(crate) fn has_xdp() -> bool {
    let native = ReceivePlan { mode: Some(ReceiveMode::XdpNative), ..receive_plan() };
    match wire().run(|| Receiver::start(&native).map(drop)).unwrap() {
        Ok(()) => true,
        Err(error) => {
            let why = error.to_string();
            assert!(why.contains("it needs root") || why.contains("lacks the feature xdp"), "{why}");
            false
        }
    }
}
