//! The programs that are compared: one file each, one line in [`available`].

mod client;
mod iperf;
mod iperf3;
mod narrows;
mod nuttcp;
mod server;
mod tool;
mod xfr;

pub(crate) use server::Server;
use tool::Serving;
pub(crate) use tool::{Load, Mode, PacingReport, Tcp, TcpReport, Tool, Udp, UdpReport, Way, Work, version, words};

use crate::args::{Args, Part};

/// The available contenders, and a sentence for each that is missing. Frame generators are handled separately.
pub(crate) fn available(args: &Args) -> (Vec<Tool>, Vec<String>) {
    let mut all = vec![
        (narrows::plain(&args.narrows), "build it with `make build`, or name it with --narrows"),
        (narrows::sampling(&args.narrows), ""),
        (narrows::bare(&args.narrows), ""),
    ];
    all.extend(args.other.iter().map(|other| (narrows::other(other), "name another build of narrows with --other")));
    if args.part != Part::Frames {
        all.extend([
            (iperf3::tool(&args.iperf3), "install it (Debian: apt-get install iperf3), or name it with --iperf3"),
            (iperf::tool(&args.iperf), "install it (Debian: apt-get install iperf), or name it with --iperf"),
            (nuttcp::tool(&args.nuttcp), "install it (Debian: apt-get install nuttcp), or name it with --nuttcp"),
            (xfr::tool(&args.xfr), "install it (cargo install xfr), or name it with --xfr"),
        ]);
    }
    let (mut tools, mut missing) = (Vec::new(), Vec::new());
    for (found, hint) in all {
        match found {
            Ok(tool) => tools.push(tool),
            Err(program) if !hint.is_empty() => missing.push(format!("cannot run {}: {hint}", program.display())),
            Err(_) => {}
        }
    }
    (tools, missing)
}
