//! `narrows connections`: what limits each TCP connection of this host, without any load.

use crate::failure::{Failure, Outcome};
use crate::flags::values::network;
use crate::flags::{FormatArg, FullArg, IntervalArg, TuiArg, WayArgs, words};
use crate::output::write;
use crate::session::stop_on_interrupt;
use crate::tui::Tui;
use narrows_model::{ConnectionLimit, ConnectionOrder, ConnectionsView, Family};
use narrows_render::live::connections::ConnectionsLive;
use narrows_render::{Document as _, Format};
use narrows_runner::connections::{FarEnd, Filter, control_groups, watch};
use narrows_runner::live::LiveInstruments;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

/// Show what limits each TCP connection of this host now
///
/// The counters of the kernel are read at an interval; no packet is sent. The end that sends knows what it waits for: the application,
/// the receiver's window, the send buffer, a pacing cap, loss, a queue on the path, or the congestion window. The end that receives
/// knows of its own application and window only.
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("full", |it| it.help("Show connections without data, too")),
    after_help = "Examples:\n  \
    narrows connections                          live: sorted, filtered\n  \
    narrows connections --process rsync --once   what limits rsync now\n  \
    narrows connections --peer-host server       both ends (narrows serve)\n  \
    narrows connections --port 443 --limit receive-window --format ndjson"
)]
pub(crate) struct Args {
    /// Only connections of this process (command name or id)
    #[arg(long, value_name = "NAME|PID", help_heading = "Filter")]
    process: Option<String>,
    /// Only connections with this port at either end
    #[arg(long, short = 'p', value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Filter")]
    port: Option<u16>,
    /// Only connections with peers of this network
    #[arg(long, value_name = "ADDRESS[/PREFIX]", value_parser = network, help_heading = "Filter")]
    peer: Option<(IpAddr, u8)>,
    /// Only connections of this control group
    #[arg(long, value_name = "PATH", help_heading = "Filter")]
    cgroup: Option<String>,
    /// Only connections with this limit
    #[arg(long, value_name = "LIMIT", value_parser = limit, help_heading = "Filter")]
    limit: Option<ConnectionLimit>,
    /// Only connections with this host, and their other ends
    #[arg(long, value_name = "HOST", conflicts_with = "peer", help_heading = "Other end", add = crate::flags::known::hosts())]
    peer_host: Option<String>,
    /// With --peer-host: file with the server's token
    #[arg(long, value_name = "PATH", requires = "peer_host", help_heading = "Other end")]
    token_file: Option<PathBuf>,
    /// With --peer-host: port of the server
    #[arg(long, value_name = "PORT", requires = "peer_host", default_value_t = 5220, value_parser = clap::value_parser!(u16).range(1..), help_heading = "Other end")]
    server_port: u16,
    /// Order of the connections
    #[arg(long, default_value = "rate", value_enum)]
    sort: Order,
    #[command(flatten)]
    interval: IntervalArg,
    /// End after so many readings
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End after one reading: same as --count 1
    #[arg(long, conflicts_with = "count")]
    once: bool,
    #[command(flatten)]
    format: FormatArg<ConnectionsView>,
    #[command(flatten)]
    full: FullArg,
    #[command(flatten)]
    tui: TuiArg,
}

words! {
    /// What the connections are in order of, highest first.
    Order for ConnectionOrder {
        /// Payload per second, both directions
        Rate,
        /// Smoothed RTT
        Rtt,
        /// Share of segments sent again
        Retrans,
        /// The limits, in alphabetical order
        Limit,
    }
}

fn limit(word: &str) -> Result<ConnectionLimit, String> {
    let spelled = |word: &str| word.replace(' ', "-");
    let known = || ConnectionLimit::WORDS.iter();
    known().find(|(_, name)| spelled(name) == spelled(word)).map(|(limit, _)| *limit).ok_or_else(|| {
        let names: Vec<String> = known().map(|(_, name)| spelled(name)).collect();
        format!("must be one of {}", names.join(", "))
    })
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        self.interval.check_live()?;
        self.tui.check()?;
        let groups = self.cgroup.as_deref().map(control_groups).transpose();
        let far = self.peer_host.as_deref().map(|host| self.far_end(host)).transpose()?;
        let hosts = far.iter().flat_map(FarEnd::addresses).map(|host| (host, 128));
        let filter = Filter {
            process: self.process.clone(),
            port: self.port,
            peers: hosts.chain(self.peer).collect(),
            others_only: far.is_some(),
            control_groups: groups
                .map_err(|missing| Failure::usage(format!("cannot find the control group: {missing}")))?,
        };
        let stop = stop_on_interrupt()?;
        let order = ConnectionOrder::from(self.sort);
        let live = self.tui.live(self.format.format(), || ConnectionsLive::new(order, self.full.full), &stop)?;
        let mut failed = None;
        let count = if self.once { Some(1) } else { self.count };
        // Programs get all of them.
        let all = self.full.full || self.limit.is_some() || self.format.format() != Format::Text;
        let watched = watch(filter, far, all, self.interval.interval, count, &stop, &mut |view| {
            order.apply(&mut view.connections);
            if let Some(limit) = self.limit {
                view.connections.retain(|one| one.limit == limit);
            }
            if let Some(live) = &live {
                live.update(|shown| shown.show(std::mem::take(view)));
                return true;
            }
            // A closed pipe (`narrows … | head`) is not a failure.
            let shown = self.line(view);
            shown.map_err(|error| failed = Some(error).filter(|it| it.kind() != io::ErrorKind::BrokenPipe)).is_ok()
        });
        let shown = live.map(Tui::close).transpose()?;
        watched.map_err(Failure::run)?;
        if let Some(view) = shown.as_ref().and_then(ConnectionsLive::last) {
            failed = self.line(view).err();
        }
        failed.map_or(Ok(0), |error| Err(Failure::run(format!("cannot write the result: {error}"))))
    }

    /// The server on the host, by IPv4 and by IPv6 if it has both.
    fn far_end(&self, host: &str) -> Result<FarEnd, Failure> {
        let connect = |family| {
            let way = WayArgs::of(self.server_port, self.token_file.clone(), family);
            way.connect(host, false, LiveInstruments::Nothing)
        };
        let first = connect(None)?;
        let other = match Family::of(&first.data_address().ip().to_canonical()) {
            Family::Ipv4 => Family::Ipv6,
            Family::Ipv6 => Family::Ipv4,
        };
        let second = if host.starts_with("ssh://") { None } else { connect(Some(other)).ok() };
        FarEnd::open(&[Some(first), second].into_iter().flatten().collect::<Vec<_>>()).map_err(Failure::run)
    }

    fn line(&self, view: &ConnectionsView) -> io::Result<()> {
        write(&view.write(self.format.format(), self.full.style()).map_err(io::Error::other)?.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_and_limits_are_parsed() {
        assert_eq!(network("192.0.2.7"), Ok(("192.0.2.7".parse().unwrap(), 32)));
        assert_eq!(network("2001:db8::/32"), Ok(("2001:db8::".parse().unwrap(), 32)));
        assert_eq!(network("192.0.2.0/33").unwrap_err(), "the length of the prefix must be from 0 to 32");
        assert!(network("host").unwrap_err().starts_with("must be an IP address"));
        assert_eq!(limit("receive-window"), Ok(ConnectionLimit::ReceiveWindow));
        assert!(limit("x").unwrap_err().starts_with("must be one of idle, application, "));
    }
}
