//! The UDP engine alone, between two network namespaces with a plain veth pair: what one machine can send, lose and receive, and
//! what it costs. Needs root.
//!
//! ```text
//! udp_veth [rate=1G|500kpps|max] [size=1448] [seconds=5] [streams=1] [direction=up|down|both] [segment=on|off|auto]
//!          [coalesce=on|off|auto] [burst=N] [rcvbuf=BYTES] [device=segments|software] [ipv6=yes]
//! ```
//! `device=software` (the default) switches the device's own segmentation off, so that every datagram is a real packet.

use narrows_model::{Batching, DatagramSizes, Direction, Place, UdpEndRecord, UdpPlan, UdpRate};
use narrows_sys::device;
use narrows_sys::event::{Event, wait_readable};
use narrows_sys::netns::Namespaces;
use narrows_sys::rtnl::Links;
use narrows_sys::udp::UdpListener;
use narrows_traffic::Stop;
use narrows_traffic::udp::{accept, open, run};
use narrows_wire::Key;
use narrows_wire::probe::Hello;
use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd as _;
use std::sync::mpsc;

type Anything<T> = Result<T, Box<dyn Error + Send + Sync>>;

const KEY: Key = Key([1; 32]);
const PORT: u16 = 5220;

struct Settings {
    plan: UdpPlan,
    software: bool,
    ipv6: bool,
}

fn main() -> Anything<()> {
    let settings = settings(std::env::args().skip(1))?;
    let made = |name| Namespaces::create(name, || Ok::<_, narrows_sys::Error>(()));
    let ((near, ()), (far, ())) = (made("near")?, made("far")?);
    near.run(|| connect(&settings, "near0", 1, Some(&far)))??;
    far.run(|| connect(&settings, "far0", 2, None))??;
    let (listening, ready) = mpsc::channel();
    let (client, server) = std::thread::scope(|scope| {
        let (settings, near, far) = (&settings, &near, &far);
        let server = scope.spawn(move || far.run(|| serve(settings, &listening)));
        ready.recv()?;
        let client = near.run(|| ask(settings))??;
        let server = server.join().map_err(|_| "the server panicked")???;
        Anything::Ok((client, server))
    })?;
    print(&settings.plan, &client, &server);
    Ok(())
}

/// Makes the pair where `other` is given, and sets this end of it up.
fn connect(settings: &Settings, name: &str, host: u8, other: Option<&Namespaces>) -> Anything<()> {
    let mut links = Links::open()?;
    if let Some(other) = other {
        links.add_veth(name, "far0", other.network())?;
    }
    links.set_up("lo", true)?;
    let (address, bits) = if settings.ipv6 {
        (IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, u16::from(host)]), 64)
    } else {
        (IpAddr::from([10, 99, 0, host]), 24)
    };
    links.add_address(name, address, bits)?;
    if settings.software {
        device::set_features(name, &[("tx-udp-segmentation".to_owned(), false)])?;
    }
    links.set_up(name, true)?;
    Ok(())
}

fn serve(settings: &Settings, listening: &mpsc::Sender<()>) -> Anything<UdpEndRecord> {
    let plan = &settings.plan;
    let listener = UdpListener::bind(PORT)?;
    listening.send(())?;
    let never = Event::new()?;
    let (mut streams, mut buffer) = (Vec::new(), [0; 2048]);
    while streams.len() < plan.flows().len() * plan.streams as usize {
        wait_readable([listener.as_fd(), never.as_fd()], None)?;
        let Some(arrival) = listener.receive(&mut buffer)? else { continue };
        let hello = Hello::decode(&buffer[..arrival.bytes.min(buffer.len())])?;
        if hello.key == KEY && streams.len() == usize::from(hello.stream) {
            streams.push(accept(&hello, &arrival, plan)?);
        }
    }
    Ok(run(Place::Server, plan, streams, &Stop::new(), &Vec::new, &mut |_| {})?)
}

fn ask(settings: &Settings) -> Anything<UdpEndRecord> {
    let plan = &settings.plan;
    let ip = if settings.ipv6 { IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 2]) } else { IpAddr::from([10, 99, 0, 2]) };
    let roles = plan.flows().iter().flat_map(|&flow| std::iter::repeat_n(flow, plan.streams as usize));
    let streams = (0..).zip(roles).map(|(id, flow)| open(SocketAddr::new(ip, PORT), &KEY, id, flow, plan));
    let streams = streams.collect::<Result<Vec<_>, _>>()?;
    Ok(run(Place::Client, plan, streams, &Stop::new(), &Vec::new, &mut |_| {})?)
}

fn print(plan: &UdpPlan, client: &UdpEndRecord, server: &UdpEndRecord) {
    let length = plan.duration_ms as f64 / 1e3;
    for (near, far) in client.streams.iter().zip(&server.streams) {
        let (from, to) = if near.sent.is_some() { (near, far) } else { (far, near) };
        let (Some(sent), Some(received)) = (&from.sent, &to.received) else { continue };
        let cpu = |record: &narrows_model::UdpStreamRecord| {
            record.samples.last().and_then(|sample| sample.thread_cpu_us).map_or(f64::NAN, |us| us as f64 / 1e6)
        };
        let kept = if sent.intended > 0 { sent.datagrams as f64 / sent.intended as f64 * 100.0 } else { 100.0 };
        println!(
            "{} {:?} {} B: sent {:.1} kpps {:.3} Gbit/s ({kept:.3} % of {}) unsent {} skipped {} by {} in {} calls, burst {}, gaps p50 {} p99 {} max {} ns, CPU {:.2} s",
            from.id,
            from.flow,
            from.datagram_bytes,
            sent.datagrams as f64 / length / 1e3,
            sent.bytes as f64 * 8.0 / length / 1e9,
            sent.intended,
            sent.unsent.total(),
            sent.skipped,
            from.method,
            sent.calls,
            sent.burst_max,
            sent.gaps_ns.p50,
            sent.gaps_ns.p99,
            sent.gaps_ns.max,
            cpu(from),
        );
        println!(
            "    received {} lost {} ({} bursts, longest {}) socket drops {:?} reordered {} duplicates {} by {} in {} calls ({:.1} each), {} stamps, jitter {:.1} us, delay variation p50 {:.1} p99 {:.1} max {:.1} us, buffer {} KiB, CPU {:.2} s = {:.0} datagrams a CPU second",
            received.datagrams,
            received.lost,
            received.loss_bursts,
            received.loss_burst_max,
            received.socket_drops,
            received.reordered,
            received.duplicates,
            to.method,
            received.calls,
            received.datagrams as f64 / received.calls.max(1) as f64,
            received.stamps,
            received.jitter_ns / 1e3,
            received.delay_variation_ns.p50 as f64 / 1e3,
            received.delay_variation_ns.p99 as f64 / 1e3,
            received.delay_variation_ns.max as f64 / 1e3,
            to.rcvbuf_bytes.unwrap_or(0) / 1024,
            cpu(to),
            received.datagrams as f64 / cpu(to),
        );
    }
    for remark in client.remarks.iter().chain(&server.remarks) {
        println!("    {remark}");
    }
}

fn settings(words: impl Iterator<Item = String>) -> Anything<Settings> {
    let mut plan = UdpPlan {
        rate_up: UdpRate::Max,
        rate_down: UdpRate::Max,
        sizes: DatagramSizes::Sequence(vec![1448]),
        duration_ms: 5000,
        ..UdpPlan::default()
    };
    let (mut software, mut ipv6) = (true, false);
    let batching = |value: &str| match value {
        "on" => Batching::On,
        "off" => Batching::Off,
        _ => Batching::Auto,
    };
    for word in words {
        let (name, value) = word.split_once('=').ok_or("name=value, please")?;
        match name {
            "rate" => (plan.rate_up, plan.rate_down) = (rate(value)?, rate(value)?),
            "size" if value == "largest" => plan.sizes = DatagramSizes::Largest,
            "size" => plan.sizes = DatagramSizes::Sequence(value.split(',').map(str::parse).collect::<Result<_, _>>()?),
            "seconds" => plan.duration_ms = (value.parse::<f64>()? * 1e3) as u64,
            "streams" => plan.streams = value.parse()?,
            "direction" if value == "down" => plan.direction = Direction::Down,
            "direction" if value == "both" => plan.direction = Direction::Both,
            "segment" => plan.segmentation = batching(value),
            "coalesce" => plan.coalescing = batching(value),
            "burst" => plan.burst_datagrams = Some(value.parse()?),
            "rcvbuf" => plan.receive_buffer_bytes = Some(value.parse()?),
            "device" => software = value == "software",
            "ipv6" => ipv6 = value == "yes",
            _ => return Err(format!("{name} is no setting").into()),
        }
    }
    Ok(Settings { plan, software, ipv6 })
}

fn rate(word: &str) -> Anything<UdpRate> {
    if word == "max" {
        return Ok(UdpRate::Max);
    }
    let (number, pps) = word.strip_suffix("pps").map_or((word, false), |number| (number, true));
    let scale = match number.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.') {
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        other => return Err(format!("{other} is no scale").into()),
    };
    let value = number.trim_end_matches(char::is_alphabetic).parse::<f64>()? * scale;
    Ok(if pps { UdpRate::Pps(value) } else { UdpRate::Bps(value as u64) })
}
