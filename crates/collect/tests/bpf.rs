//! The run time of BPF programs on a live host: a costly program of our own is named, and gone once it is detached.

use narrows_collect::BpfWatch;
use narrows_model::Fact;
use narrows_sys::bpf_programs::Costly;
use narrows_sys::netns::{Namespaces, become_root_of_user_namespace};
use narrows_sys::rtnl::Links;
use narrows_sys::{Error, Result, process};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

const NEAR: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 71, 95, 1));
const FAR: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 71, 95, 2));
const SENT: usize = 500;

fn main() {
    if !process::is_root()
        && let Err(error) = become_root_of_user_namespace()
    {
        println!("NOT CHECKED: the run time of BPF programs, since {error}");
        return;
    }
    if let Err(why) = BpfWatch::start() {
        println!("NOT CHECKED: the run time of BPF programs, since {why}");
        return;
    }
    a_costly_program_is_named_while_it_is_attached();
    println!("test a_costly_program_is_named_while_it_is_attached ... ok");
}

fn host(name: &str) -> Namespaces {
    Namespaces::create(name, || Ok::<_, Error>(())).expect("namespaces").0
}

fn set_up(device: &str, address: IpAddr) -> Result<()> {
    let mut links = Links::open()?;
    links.add_address(device, address, 24)?;
    Ok(links.set_up(device, true)?)
}

/// The run time in microseconds and the runs of the costly program, where it is named.
fn costly(facts: &[Fact]) -> Option<[f64; 2]> {
    let of = |family: &str| {
        let own = |fact: &&Fact| fact.key.starts_with(family) && fact.key.ends_with(".xdp.costly");
        facts.iter().find(own)?.value.as_f64()
    };
    Some([of("bpf.run_us.")?, of("bpf.runs.")?])
}

#[allow(clippy::disallowed_methods)] // the ban is for the program; a test needs plain sockets
fn a_costly_program_is_named_while_it_is_attached() {
    let (near, far) = (host("near"), host("far"));
    let pair = || Links::open()?.add_veth("left", "right", far.network());
    near.run(pair).expect("entered").expect("a veth pair");
    near.run(|| set_up("left", NEAR)).expect("entered").expect("an address");
    far.run(|| set_up("right", FAR)).expect("entered").expect("an address");
    let bound =
        |host: &Namespaces, address| host.run(|| UdpSocket::bind(SocketAddr::new(address, 0))).expect("entered");
    let (sender, receiver) = (bound(&near, NEAR).expect("bound"), bound(&far, FAR).expect("bound"));
    receiver.set_read_timeout(Some(std::time::Duration::from_secs(5))).expect("a socket");
    let to = receiver.local_addr().expect("bound");
    let send = || {
        let watch = BpfWatch::start().expect("it ran before");
        for _ in 0..SENT {
            sender.send_to(&[7; 500], to).expect("sent");
            receiver.recv(&mut [0; 600]).expect("it passes");
        }
        watch.finish()
    };
    let attach = || Costly::attach(Links::open()?.get("right")?.index, 10_000);
    let attached = far.run(attach).expect("entered").expect("attached");
    let [run_us, runs] = costly(&send()).expect("it is named");
    // 20,000 instructions take a microsecond at least on any CPU; neighbour discovery adds packets.
    assert!((SENT as f64..4.0 * SENT as f64).contains(&runs) && run_us > runs, "{run_us} us, {runs} runs");
    drop(attached);
    assert_eq!(costly(&send()), None);
}
