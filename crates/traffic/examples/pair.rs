//! The engine alone, without a control plane: one end in each of two processes, to compare methods and message sizes.
//!
//! ```text
//! pair server PORT [PLAN…]            pair client ADDRESS:PORT [PLAN…]
//! PLAN: streams=2 seconds=5 message=131072 zero_copy=on|off direction=up|down|both interval=1000
//!       sndbuf=BYTES rcvbuf=BYTES cc=NAME pacing=BPS write_bps=BPS read_bps=BPS samples=yes
//! ```
//! Both ends need the same plan. Each prints what it moved; `samples=yes` adds a line a sample.

use narrows_model::{Direction, EndRecord, Flow, Limit, Place, TcpPlan, ZeroCopy};
use narrows_sys::net;
use narrows_traffic::{Stop, Stream, prepare, reading, run};
use std::error::Error;
use std::os::fd::BorrowedFd;
use std::time::Duration;

type Anything<T> = Result<T, Box<dyn Error>>;

fn main() -> Anything<()> {
    let mut words = std::env::args().skip(1);
    let (role, at) = (words.next().ok_or("server or client?")?, words.next().ok_or("which port or address?")?);
    let (plan, samples) = plan(words)?;
    let (place, streams) = match role.as_str() {
        "server" => (Place::Server, accept(at.parse()?, &plan)?),
        "client" => (Place::Client, connect(&at, &plan)?),
        _ => return Err("server or client?".into()),
    };
    let end = run(place, &plan, streams, &Stop::new(), &Vec::new, &mut |_| {})?;
    print(&plan, &end, samples);
    Ok(())
}

fn plan(words: impl Iterator<Item = String>) -> Anything<(TcpPlan, bool)> {
    let mut plan = TcpPlan { limit: Limit::DurationMs(5000), ..TcpPlan::default() };
    let mut samples = false;
    for word in words {
        let (name, value) = word.split_once('=').ok_or("name=value, please")?;
        match name {
            "streams" => plan.streams = value.parse()?,
            "seconds" => plan.limit = Limit::DurationMs(value.parse::<u64>()? * 1000),
            "message" => plan.message_bytes = value.parse()?,
            "interval" => plan.interval_ms = value.parse()?,
            "zero_copy" => plan.zero_copy = if value == "on" { ZeroCopy::On } else { ZeroCopy::Off },
            "direction" if value == "both" => plan.direction = Direction::Both,
            "direction" if value == "down" => plan.direction = Direction::Down,
            "sndbuf" => plan.send_buffer_bytes = Some(value.parse()?),
            "rcvbuf" => plan.receive_buffer_bytes = Some(value.parse()?),
            "cc" => plan.congestion_control = Some(value.to_owned()),
            "pacing" => plan.pacing_bps = Some(value.parse()?),
            "write_bps" => plan.application.write_bps = value.parse()?,
            "read_bps" => plan.application.read_bps = value.parse()?,
            "samples" => samples = value == "yes",
            _ => return Err(format!("{name} is no part of a plan").into()),
        }
    }
    Ok((plan, samples))
}

fn roles(plan: &TcpPlan) -> impl Iterator<Item = (u32, Flow)> {
    (0u32..).zip(plan.flows().iter().flat_map(|&flow| std::iter::repeat_n(flow, plan.streams as usize)))
}

fn accept(port: u16, plan: &TcpPlan) -> Anything<Vec<Stream>> {
    let listener = net::listen(port)?;
    let accept = |(id, flow)| {
        let (socket, _) = listener.accept()?;
        prepare(&socket, Place::Server, flow, plan)?;
        Ok(Stream { id, flow, socket })
    };
    roles(plan).map(accept).collect()
}

fn connect(address: &str, plan: &TcpPlan) -> Anything<Vec<Stream>> {
    let address = address.parse()?;
    let connect = |(id, flow)| {
        let before = |socket: BorrowedFd<'_>| {
            prepare(socket, Place::Client, flow, plan).map_err(Box::<dyn Error + Send + Sync>::from)
        };
        let socket = net::connect(address, Duration::from_secs(5), before).map_err(|error| error.to_string())?;
        Ok(Stream { id, flow, socket })
    };
    roles(plan).map(connect).collect()
}

fn print(plan: &TcpPlan, end: &EndRecord, samples: bool) {
    for &flow in plan.flows() {
        let Some(window) = reading::counted(plan, end, flow) else { continue };
        let does = if flow.sender() == end.place { "sent" } else { "received" };
        let calls: u64 = end.streams.iter().filter_map(|stream| stream.samples.last()).map(|last| last.calls).sum();
        println!(
            "{} {flow:?} {does} {:.3} Gbit/s in {:.2} s by {}, threads {:.2} CPUs, {:.0} bytes a call, {:?}",
            end.place,
            reading::bps(end, flow, window) / 1e9,
            window.seconds(),
            end.streams[0].method,
            reading::thread_load(end, flow, window).unwrap_or(f64::NAN),
            reading::bytes(end, flow, window) / calls.max(1) as f64,
            end.remarks,
        );
    }
    for stream in end.streams.iter().filter(|_| samples) {
        for sample in &stream.samples {
            let (tcp, memory) = (&sample.tcp, sample.memory.unwrap_or_default());
            println!(
                "{} {:>9} us bytes {} cwnd {:?} rtt {:?} busy {:?} rwnd {:?} sndbuf {:?} | snd_wnd {:?} rcv_wnd {:?} rcvbuf {} \
                 rmem {} inq {:?} | sndbuf {} queued {} wmem {} outq {:?} notsent {:?}",
                stream.id,
                sample.at_us,
                sample.bytes,
                tcp.snd_cwnd,
                tcp.rtt_us,
                tcp.busy_time_us,
                tcp.rwnd_limited_us,
                tcp.sndbuf_limited_us,
                tcp.snd_wnd_bytes,
                tcp.rcv_wnd_bytes,
                memory.rcvbuf_bytes,
                memory.rmem_alloc_bytes,
                sample.recv_q_bytes,
                memory.sndbuf_bytes,
                memory.wmem_queued_bytes,
                memory.wmem_alloc_bytes,
                sample.send_q_bytes,
                tcp.notsent_bytes
            );
        }
    }
}
