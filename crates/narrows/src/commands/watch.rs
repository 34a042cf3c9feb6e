//! `narrows watch`: live counters of the interfaces of both ends.

use crate::failure::{Failure, Outcome};
use crate::flags::{FormatArg, FullArg, IntervalArg, WayArgs};
use crate::session::stop_on_interrupt;
use narrows_model::WatchView;
use narrows_render::watch::{Help, frame};
use narrows_render::{Document as _, Format};
use narrows_runner::Keys;
use narrows_runner::live::LiveInstruments;
use narrows_runner::remote::Remote;
use narrows_runner::watch::{here, there, watch};
use std::cell::Cell;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

/// Watch the traffic of both ends' interfaces
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("full", |it| it.help("Show interfaces without traffic, too")),
    after_help = "Examples:\n  \
    narrows watch server             while a test runs in another terminal\n  \
    narrows watch --local --interval 250ms\n  \
    narrows watch server --count 9 --format ndjson | jq -c '.ends[].interfaces[]'"
)]
pub(crate) struct Args {
    /// A name or address that runs `narrows serve`, or ssh://[user@]host[:port]
    #[arg(required_unless_present = "local", conflicts_with = "local")]
    host: Option<String>,
    #[command(flatten)]
    way: WayArgs,
    /// This host alone
    #[arg(long)]
    local: bool,
    #[command(flatten)]
    interval: IntervalArg,
    /// End after so many readings
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    #[command(flatten)]
    format: FormatArg<WatchView>,
    #[command(flatten)]
    full: FullArg,
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        if !(Duration::from_millis(50)..=Duration::from_secs(3600)).contains(&self.interval.interval) {
            let ms = self.interval.ms();
            return Err(Failure::usage(format!("interval in ms is {ms}, but must be from 50 to 3600000")));
        }
        let stop = stop_on_interrupt()?;
        let remote = match &self.host {
            Some(host) => Some(self.way.connect(host, false, LiveInstruments { collect: false })?),
            None => None,
        };
        let session = remote.as_ref().map(Remote::open_look).transpose().map_err(Failure::run)?;
        let mut ends = vec![here()];
        if let (Some(session), Some(remote)) = (&session, &remote) {
            // A server that does not show its interfaces fails here, not in each reading.
            session.interfaces().map_err(Failure::run)?;
            ends.push(there(session, &remote.hello().host));
        }
        let mut screen = Screen::new(self.format.format());
        let mut failed = None;
        let keys = if screen.moving { Keys::open() } else { None };
        let help = Cell::new(if keys.is_some() { Help::Keys } else { Help::None });
        let mut poll = || match keys.as_ref().and_then(Keys::next) {
            Some(b'q') => stop.stop(),
            Some(b'?') => help.set(if help.get() == Help::Legend { Help::Keys } else { Help::Legend }),
            _ => {}
        };
        let (interval, count) = (self.interval.interval, self.count);
        watch(
            &mut ends,
            interval,
            count,
            &stop,
            &mut poll,
            &mut |view| match self.show(&mut screen, view, help.get()) {
                Ok(()) => true,
                // A closed pipe (`narrows … | head`) is not a failure.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => false,
                Err(error) => {
                    failed = Some(error);
                    false
                }
            },
        );
        failed.map_or(Ok(0), |error| Err(Failure::run(format!("cannot write the result: {error}"))))
    }

    fn show(&self, screen: &mut Screen, view: &WatchView, help: Help) -> io::Result<()> {
        let style = self.full.style();
        if screen.moving {
            let rows = terminal_size::terminal_size().map_or(24, |(_, rows)| usize::from(rows.0));
            return screen.paint(&frame(view, style, rows.saturating_sub(1), help), style.width);
        }
        write(&view.write(self.format.format(), style).map_err(io::Error::other)?.unwrap_or_default())
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Redraws a frame in place (ECMA-48: CPL, EL, ED). Longer lines are cut by the terminal (DECAWM off and on again in one write): a line
/// that wraps would make the frame higher than it is counted.
struct Screen {
    /// Whether frames are redrawn in place.
    moving: bool,
    /// Lines of the frame on the screen.
    lines: usize,
    width: usize,
}

impl Screen {
    fn new(format: Format) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        Self { moving: format == Format::Text && io::stdout().is_terminal() && !dumb, lines: 0, width: 0 }
    }

    /// The bytes that replace the frame on the screen. After a change of the width the whole screen is cleared, because lines were
    /// wrapped.
    fn redraw(&mut self, frame: &str, width: usize) -> String {
        let mut out = match self.lines {
            0 => String::new(),
            _ if self.width != width => "\x1b[H\x1b[2J".to_owned(),
            lines => format!("\x1b[{lines}F"),
        };
        out += "\x1b[?7l";
        for line in frame.lines() {
            out += line;
            out += "\x1b[K\n";
        }
        out += "\x1b[J\x1b[?7h";
        (self.lines, self.width) = (frame.lines().count(), width);
        out
    }

    fn paint(&mut self, frame: &str, width: usize) -> io::Result<()> {
        let bytes = self.redraw(frame, width);
        // Not through anstream: cursor movement is needed even without colours.
        let mut out = io::stdout().lock();
        out.write_all(bytes.as_bytes())?;
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_replaces_the_one_before() {
        let mut screen = Screen { moving: true, lines: 0, width: 0 };
        assert_eq!(screen.redraw("a\nb\n", 80), "\x1b[?7la\x1b[K\nb\x1b[K\n\x1b[J\x1b[?7h");
        assert_eq!(screen.redraw("c\n", 80), "\x1b[2F\x1b[?7lc\x1b[K\n\x1b[J\x1b[?7h", "what was below is wiped");
        assert_eq!(screen.redraw("c\n", 60), "\x1b[H\x1b[2J\x1b[?7lc\x1b[K\n\x1b[J\x1b[?7h", "a new width begins anew");
    }
}
