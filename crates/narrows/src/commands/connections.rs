//! `narrows connections`: what limits each TCP connection of this host, without any load.

use crate::failure::{Failure, Outcome};
use crate::flags::values::network;
use crate::flags::{FormatArg, FullArg, IntervalArg};
use crate::screen::{Screen, write};
use crate::session::stop_on_interrupt;
use narrows_model::{ConnectionLimit, ConnectionView, ConnectionsView};
use narrows_render::connections::{LiveOptions, frame, opened, shown};
use narrows_render::{Document as _, Style};
use narrows_runner::Keys;
use narrows_runner::connections::{Filter, Watched, control_groups, watch};
use std::cell::RefCell;
use std::io;
use std::net::IpAddr;

/// Show what limits each TCP connection of this host now
///
/// The counters of the kernel are read at an interval; no packet is sent. The end that sends knows what it waits for: the application,
/// the receiver's window, the send buffer, a pacing cap, loss, a queue on the path, or the congestion window. The end that receives
/// knows of its own application and window only.
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("full", |it| it.help("Show connections without data, too")),
    after_help = "Examples:\n  \
    narrows connections                          live; s changes the order, Enter opens one\n  \
    narrows connections --process rsync --once   what limits rsync, over one second\n  \
    narrows connections --port 443 --limit receive-window --count 60 --format ndjson"
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
}

/// What the connections are in order of, highest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Order {
    /// Payload per second, both directions
    Rate,
    /// Smoothed RTT
    Rtt,
    /// Share of segments sent again
    Retrans,
    /// The limits, in alphabetical order
    Limit,
}

impl Order {
    const ALL: [(Self, &'static str); 4] =
        [(Self::Rate, "rate"), (Self::Rtt, "RTT"), (Self::Retrans, "retransmissions"), (Self::Limit, "limit")];

    fn next(self) -> Self {
        let at = Self::ALL.iter().position(|(order, _)| *order == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()].0
    }

    fn word(self) -> &'static str {
        Self::ALL.iter().find(|(order, _)| *order == self).map_or("", |(_, word)| word)
    }

    /// The views come in order of their rate, and stay so where the keys are equal.
    fn apply(self, all: &mut [ConnectionView]) {
        let high_first = |of: fn(&ConnectionView) -> Option<f64>| {
            move |a: &ConnectionView, b: &ConnectionView| of(b).unwrap_or(-1.0).total_cmp(&of(a).unwrap_or(-1.0))
        };
        match self {
            Self::Rate => {}
            Self::Rtt => all.sort_by(high_first(|it| it.rtt_ms)),
            Self::Retrans => all.sort_by(high_first(|it| it.retransmitted)),
            Self::Limit => all.sort_by_key(|it| it.limit.word()),
        }
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

/// What the keys changed, and what is on the screen.
struct Live {
    screen: Screen,
    order: Order,
    legend: Option<bool>,
    marked: usize,
    opened: Option<String>,
    view: Option<ConnectionsView>,
    history: Vec<f64>,
}

impl Live {
    /// Whether the screen is to be painted anew.
    fn key(&mut self, key: u8, full: bool) -> bool {
        let count = self.view.as_ref().map_or(0, |view| shown(view, full).count());
        match key {
            b'?' => self.legend = self.legend.map(|all| !all),
            b's' => {
                self.order = self.order.next();
                let order = self.order;
                if let Some(view) = &mut self.view {
                    Order::apply(order, &mut view.connections);
                }
            }
            b'j' => self.marked = (self.marked + 1).min(count.saturating_sub(1)),
            b'k' => self.marked = self.marked.saturating_sub(1),
            b'\n' | b'\r' if self.opened.is_none() => {
                let marked = self.view.as_ref().and_then(|view| shown(view, full).nth(self.marked));
                self.opened = marked.map(|one| one.id.clone());
            }
            b'\n' | b'\r' | 0x1b => self.opened = None,
            _ => return false,
        }
        true
    }

    fn paint(&mut self, style: Style) -> io::Result<()> {
        let Some(view) = &self.view else { return Ok(()) };
        let one = self.opened.as_ref().and_then(|id| view.connections.iter().find(|one| one.id == *id));
        let text = match (&self.opened, one) {
            (Some(_), Some(one)) => opened(one, &self.history, style) + "\nEnter goes back, q quits\n",
            (Some(_), None) => "this connection is gone\n\nEnter goes back, q quits\n".to_owned(),
            (None, _) => {
                let marked = self.legend.map(|_| self.marked.min(shown(view, style.full).count().saturating_sub(1)));
                let options =
                    LiveOptions { rows: Screen::rows(), marked, legend: self.legend, order: self.order.word() };
                frame(view, style, &options)
            }
        };
        let rows = Screen::rows();
        let text: Vec<&str> = text.lines().take(rows.max(2)).collect();
        self.screen.paint(&(text.join("\n") + "\n"), style.width)
    }
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        self.interval.check_live()?;
        let groups = self.cgroup.as_deref().map(control_groups).transpose();
        let filter = Filter {
            process: self.process.clone(),
            port: self.port,
            peer: self.peer,
            control_groups: groups
                .map_err(|missing| Failure::usage(format!("cannot find the control group: {missing}")))?,
        };
        let stop = stop_on_interrupt()?;
        let screen = Screen::new(self.format.format());
        let keys = if screen.moving { Keys::open() } else { None };
        let live = RefCell::new(Live {
            legend: keys.as_ref().map(|_| false),
            screen,
            order: self.sort,
            marked: 0,
            opened: None,
            view: None,
            history: Vec::new(),
        });
        let failed = RefCell::new(None);
        // A closed pipe (`narrows … | head`) is not a failure.
        let went_well = |result: io::Result<()>| match result {
            Ok(()) => true,
            Err(error) => {
                if error.kind() != io::ErrorKind::BrokenPipe {
                    *failed.borrow_mut() = Some(error);
                }
                false
            }
        };
        let mut poll = || {
            while let Some(key) = keys.as_ref().and_then(Keys::next) {
                let live = &mut *live.borrow_mut();
                if key == b'q' || (live.key(key, self.full.full) && !went_well(live.paint(self.full.style()))) {
                    stop.stop();
                }
            }
        };
        let mut show = |view: &mut ConnectionsView, watched: &Watched| {
            let live = &mut *live.borrow_mut();
            live.order.apply(&mut view.connections);
            if let Some(limit) = self.limit {
                view.connections.retain(|one| one.limit == limit);
            }
            if !live.screen.moving {
                return went_well(self.line(view));
            }
            live.history = live.opened.as_ref().map(|id| watched.history(id)).unwrap_or_default();
            live.view = Some(view.clone());
            went_well(live.paint(self.full.style()))
        };
        let count = if self.once { Some(1) } else { self.count };
        watch(filter, self.interval.interval, count, &stop, &mut poll, &mut show)
            .map_err(|missing| Failure::run(format!("cannot read the TCP connections: {missing}")))?;
        failed.take().map_or(Ok(0), |error| Err(Failure::run(format!("cannot write the result: {error}"))))
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
