//! How many datagrams of 1448 bytes the emulator carries per second. Needs root.

#![allow(clippy::disallowed_methods)] // Plain sockets: the measurement must not depend on the product's engines.

use narrows_lab::{Lab, LabSpec, Result};
use narrows_model::lab::Impairment;
use narrows_model::{Direction, Family, Flow, Place};
use narrows_sys::{clock, udp};
use std::net::UdpSocket;
use std::time::Duration;

const BYTES: u32 = 1448;
const TIME: Duration = Duration::from_secs(3);

/// Sends for a while as fast as the socket accepts: packets offered, carried by the path, and read, each per second.
fn run(per_call: u32, single_packets: bool, offloads: bool, delay_us: u64) -> Result<[f64; 3]> {
    let path = Impairment { delay_us, single_packets, ..Impairment::default() };
    let lab = Lab::up(&LabSpec { name: "rate".to_owned(), up: path.clone(), down: path, ..LabSpec::default() })?;
    if !offloads {
        lab.fault("offloads-off", Place::Client, None, Direction::Both)?;
    }
    let (from, to) = (lab.host("client")?, lab.host("server")?);
    let sink = to.run(|| UdpSocket::bind("0.0.0.0:0"))?.expect("bound");
    udp::set_receive_buffer(&sink, 64 << 20)?;
    sink.set_read_timeout(Some(Duration::from_millis(300))).expect("set");
    let source = from.run(|| UdpSocket::bind("0.0.0.0:0"))?.expect("bound");
    let address = to.address(Family::Ipv4).expect("it has one");
    source.connect((address, sink.local_addr().expect("bound").port())).expect("connected");
    if per_call > 1 {
        udp::set_segment_bytes(&source, BYTES)?;
    }
    let payload = vec![0; (per_call * BYTES) as usize];
    let (mut read, mut sent, mut seconds) = (0_u64, 0_u64, 0.0);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut buffer = [0; 2048];
            let mut count = 0;
            while sink.recv(&mut buffer).is_ok() {
                count += 1;
            }
            count
        });
        let began = clock::now();
        while began.elapsed() < TIME {
            source.send(&payload).expect("sent");
            sent += u64::from(per_call);
        }
        seconds = began.elapsed().as_secs_f64();
        read = reader.join().expect("it ends");
    });
    let carried = lab.counters(Flow::Up).delivered_packets;
    Ok([sent, carried, read].map(|count| count as f64 / seconds / 1e3))
}

fn main() -> Result<()> {
    println!("{:<58} {:>9} {:>9} {:>9}", "datagrams of 1448 bytes, thousands a second", "offered", "carried", "read");
    for (what, per_call, single, offloads, delay_us) in [
        ("40 a call, handed over as they came", 40, false, true, 0),
        ("40 a call, 1 ms of delay", 40, false, true, 1000),
        ("40 a call, each handed over by itself", 40, true, true, 0),
        ("40 a call, cut by the sending kernel", 40, false, false, 0),
        ("1 a call", 1, false, true, 0),
        ("1 a call, 1 ms of delay", 1, false, true, 1000),
    ] {
        let [offered, carried, read] = run(per_call, single, offloads, delay_us)?;
        println!("{what:<58} {offered:>9.0} {carried:>9.0} {read:>9.0}");
    }
    Ok(())
}
