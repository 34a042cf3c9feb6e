//! scratch
#![allow(missing_docs, clippy::unwrap_used, clippy::disallowed_methods)]
use narrows_lab::{Lab, LabSpec};
use narrows_model::lab::Impairment;
use narrows_model::*;
use narrows_model::plan::*;
use narrows_model::run::*;
use narrows_traffic::{Stop, Stream};
use std::net::{TcpListener, TcpStream};

fn trial(lab: &Lab, plan: &TcpPlan) -> Trial {
    let server = lab.host("server").unwrap();
    let client = lab.host("client").unwrap();
    let address = server.address(Family::Ipv4).unwrap();
    let listener = server.run(|| { let l = TcpListener::bind((address, 5220)).unwrap(); l }).unwrap();
    let none = || Vec::new();
    let n = plan.streams;
    std::thread::scope(|s| {
        let srv = s.spawn(|| server.run(|| {
            let streams = (0..n).map(|id| { let (socket, _) = listener.accept().unwrap(); Stream { id, flow: Flow::Up, socket } }).collect();
            narrows_traffic::run(Place::Server, plan, streams, &Stop::new(), &none, &mut |_| {}).unwrap()
        }).unwrap());
        let cl = s.spawn(|| client.run(|| {
            let streams = (0..n).map(|id| { let socket = TcpStream::connect((address, 5220)).unwrap(); Stream { id, flow: Flow::Up, socket } }).collect();
            narrows_traffic::run(Place::Client, plan, streams, &Stop::new(), &none, &mut |_| {}).unwrap()
        }).unwrap());
        Trial { plan: plan.clone(), client: cl.join().unwrap(), server: srv.join().unwrap(), elapsed_us: 0 }
    })
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let cc = args.get(1).cloned().unwrap_or("cubic".into());
    for (rtt_ms, rate, rmem, wmem) in [(35u64, 1_000_000_000u64, 262144u64, 4u64<<20), (35, 1_000_000_000, 32<<20, 4<<20), (35, 1_000_000_000, 32<<20, 1<<20), (35,1_000_000_000,32<<20,32<<20), (35,1_000_000_000,4<<20,32<<20), (1,1_000_000_000,32<<20,48<<10), (1,1_000_000_000,32<<10,4<<20),(1,0,32<<20,4<<20)] {
        for zc in [ZeroCopy::Auto, ZeroCopy::Off] {
        let imp = Impairment { rate_bps: rate, delay_us: rtt_ms * 500, ..Impairment::default() };
        let lab = Lab::up(&LabSpec { name: "cal".into(), up: imp.clone(), down: imp, ..LabSpec::default() }).unwrap();
        lab.host("server").unwrap().run(|| narrows_sys::sysctl::write("net.ipv4.tcp_rmem", &format!("4096 131072 {rmem}")).unwrap()).unwrap();
        lab.host("client").unwrap().run(|| narrows_sys::sysctl::write("net.ipv4.tcp_wmem", &format!("4096 16384 {wmem}")).unwrap()).unwrap();
        let plan = TcpPlan { limit: Limit::DurationMs(6000), omit_ms: 2000, interval_ms: 100, zero_copy: zc, congestion_control: Some(cc.clone()), ..TcpPlan::default() };
        let t = trial(&lab, &plan);
        let v = narrows_diagnose::evidence::FlowView::of(&t, Flow::Up).unwrap();
        let sh = v.shares.unwrap_or_default();
        println!("{cc} rtt {rtt_ms} rmem {} wmem {} {}: {} | rwnd {:.2} snd {:.2} busy {:.2} rec {:.2} | rtt {:?} min {:?} snd_wnd {:?} rcvbuf {:?} sndbuf {:?} recvq {:?} inflight {:?} cwnd {:?} density {:?} lost {:?} peak {} trend {:?} thr {:?}/{:?} mss {:?}",
            units::bytes(rmem), units::bytes(wmem), t.client.streams[0].method, units::bps(v.goodput_bps), sh.receive_window, sh.send_buffer, sh.busy, sh.recovery, v.rtt_us, v.min_rtt_us, v.snd_wnd_bytes, v.rcvbuf_bytes, v.sndbuf_bytes, v.recv_q_bytes, v.in_flight_bytes, v.cwnd_bytes, v.send_density, v.loss, units::bps(v.early_peak_bps.unwrap_or(0.0)), v.trend(), v.sender.thread_share, v.receiver.thread_share, v.mss_bytes);
        let _ = &lab;
        }
    }
}
