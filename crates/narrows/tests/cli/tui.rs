//! The live views, driven through a pseudo-terminal: keys, a change of the size, and the terminal as it was afterwards.

use crate::world::{Ended, SIGTERM, World, alone, on_loopback};
use narrows_sys::clock;
use narrows_sys::pty::Pty;
use std::num::NonZero;
use std::time::Duration;

fn cells(number: u16) -> NonZero<u16> {
    NonZero::new(number).expect("a size")
}

/// A program on a terminal.
struct OnTerminal {
    child: Ended,
    pty: Pty,
    screen: vt100::Parser,
}

impl OnTerminal {
    fn start(world: &World, [columns, rows]: [u16; 2], words: &[&str]) -> Self {
        let pty = Pty::open(columns, rows).expect("a terminal");
        let mut command = world.command(words);
        command.env("TERM", "xterm-256color");
        pty.apply(&mut command).expect("on the terminal");
        let child = Ended(command.spawn().expect("the program"));
        Self { child, pty, screen: vt100::Parser::new(cells(rows), cells(columns), 200) }
    }

    fn text(&self) -> String {
        self.screen.screen().contents()
    }

    /// Waits until the screen is so.
    fn until(&mut self, what: &str, is: impl Fn(&vt100::Screen) -> bool) {
        let deadline = clock::now() + Duration::from_secs(30);
        while !is(self.screen.screen()) {
            assert!(clock::now() < deadline, "not {what}:\n{}", self.text());
            let bytes = self.pty.read(Duration::from_millis(100)).expect("a terminal");
            self.screen.process(&bytes);
        }
    }

    fn until_shows(&mut self, text: &str) {
        self.until(text, |screen| screen.contents().contains(text));
    }

    fn press(&mut self, keys: &str) {
        self.pty.press(keys).expect("a terminal");
    }

    fn resize(&mut self, columns: u16, rows: u16) {
        self.screen.screen_mut().set_size(cells(rows), cells(columns));
        self.pty.resize(columns, rows).expect("a terminal");
    }

    /// Waits for the end; the exit code, and what is on the screen then. The terminal is as it was.
    fn end(mut self) -> (Option<i32>, String) {
        let deadline = clock::now() + Duration::from_secs(30);
        let status = loop {
            let bytes = self.pty.read(Duration::from_millis(100)).expect("a terminal");
            self.screen.process(&bytes);
            if let Some(status) = self.child.0.try_wait().expect("its status") {
                break status;
            }
            assert!(clock::now() < deadline, "it does not end:\n{}", self.text());
        };
        loop {
            let bytes = self.pty.read(Duration::ZERO).expect("a terminal");
            if bytes.is_empty() {
                break;
            }
            self.screen.process(&bytes);
        }
        let screen = self.screen.screen();
        assert!(!screen.alternate_screen() && !screen.hide_cursor(), "{}", screen.contents());
        assert!(self.pty.edits_lines().expect("its modes"));
        (status.code(), screen.contents())
    }
}

#[test]
fn without_a_terminal_it_is_refused() {
    assert_eq!(
        alone().sentence(2, &["measure", "tcp", "server", "--tui"]),
        "cannot show a live view: no terminal, standard output is none; drop --tui"
    );
}

/// A paced measurement with its live view.
fn measuring(world: &World, port: &str, size: [u16; 2], flags: &[&str]) -> OnTerminal {
    let token = world.token_file();
    let words = ["measure", "tcp", "127.0.0.1", "--port", port, "--token-file", &token, "--tui", "-i", "100ms"];
    OnTerminal::start(world, size, &[&words[..], &["--pacing-rate", "50M"], flags].concat())
}

#[test]
fn a_measurement_is_drawn_takes_keys_and_leaves_the_terminal_as_it_was() {
    on_loopback(|world| {
        let (_server, port, _) = world.serve(&[]);
        let mut it = measuring(world, &port, [80, 24], &["-t", "4s", "-d", "both"]);
        it.until("in the alternate screen", vt100::Screen::alternate_screen);
        it.until("two directions with RTT", |screen| {
            let text = screen.contents();
            text.lines().filter(|line| line.contains("bit/s") && line.contains("RTT ")).count() == 2
        });
        assert!(!it.pty.edits_lines().expect("its modes"));
        let last = it.text().lines().last().unwrap_or_default().to_owned();
        assert!(last.contains("q quit") && last.contains("PgUp PgDn page"), "{}", it.text());
        it.press("?");
        it.until_shows(" Help ");
        it.press("?p");
        it.until_shows(" paused ");
        it.resize(60, 20);
        it.until("in the last of 20 rows", |screen| {
            screen.rows(0, 60).nth(19).is_some_and(|line| line.starts_with(" paused "))
        });
        // A key that comes in the same moment as a change of the size waits for the next one (crossterm).
        it.press("p");
        it.until("going on", |screen| screen.rows(0, 60).nth(19).is_some_and(|line| line.starts_with(" q quit")));
        it.resize(120, 40);
        it.until("done in 40 rows", |screen| {
            screen.rows(0, 120).nth(39).is_some_and(|line| line.starts_with(" done "))
        });
        it.until_shows("receiver");
        it.press("\x1b[H");
        it.until_shows(" 0.00-0.10 ");
        it.press("q");
        let (code, text) = it.end();
        assert!(code == Some(0) && text.contains("receiver") && text.contains("saved as "), "{code:?}\n{text}");
    });
}

#[test]
fn keys_and_signals_end_a_measurement_before_its_time() {
    on_loopback(|world| {
        let (_server, port, _) = world.serve(&[]);
        for how in ["q", "\x03", "SIGTERM"] {
            let mut it = measuring(world, &port, [80, 24], &["-t", "30s"]);
            it.until_shows("RTT ");
            if how == "SIGTERM" {
                narrows_sys::process::signal(it.child.0.id(), SIGTERM).expect("a process");
            } else {
                it.press(how);
            }
            let (code, text) = it.end();
            assert!(code == Some(130) && text.contains("interrupted: this is what was measured"), "{code:?}\n{text}");
        }
    });
}

#[test]
fn a_diagnosis_shows_its_steps_and_then_its_report() {
    on_loopback(|world| {
        let (_server, port, token) = world.serve(&[]);
        let words = ["diagnose", "127.0.0.1", "--port", &port, "--token-file", &token, "--tui", "-t", "2s"];
        let mut it =
            OnTerminal::start(world, [80, 24], &[&words[..], &["--no-profile", "--pacing-rate", "50M"]].concat());
        it.until_shows("diagnosis of the path to 127.0.0.1");
        it.until_shows("* inventory of both hosts");
        it.until("a load with its rate", |screen| {
            let text = screen.contents();
            text.contains("* load: ") && text.contains("bit/s") && text.contains("RTT ")
        });
        it.until_shows(" done ");
        let top = it.text();
        it.press("\x1b[6~");
        it.until("scrolled", |screen| screen.contents() != top);
        it.press("q");
        let (code, text) = it.end();
        assert!(matches!(code, Some(0 | 3)) && text.contains("saved as "), "{code:?}\n{text}");
    });
}

#[test]
fn connections_are_filtered_opened_and_left() {
    on_loopback(|world| {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let stream = std::net::TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
        let local = stream.local_addr().expect("an address").to_string();
        let mut it = OnTerminal::start(world, [80, 24], &["connections", "--full", "--interval", "100ms"]);
        it.until("alternate", vt100::Screen::alternate_screen);
        it.until_shows("by rate");
        it.press("s");
        it.until_shows("by RTT");
        it.press("/nothing like this\r");
        it.until("filtered", |screen| !screen.contents().contains(&local));
        it.press("/\x1b");
        it.until_shows(&local);
        it.press("\r");
        it.until_shows("limit    idle: no data");
        it.press("\r");
        it.until_shows("by RTT");
        it.press("q");
        let (code, text) = it.end();
        assert!(code == Some(0) && text.contains(&local), "{code:?}\n{text}");
    });
}

#[test]
fn interfaces_and_hops_are_live_on_a_terminal() {
    on_loopback(|world| {
        let watch = ["watch", "--local", "--full", "--interval", "100ms"];
        let trace = ["trace", "127.0.0.1", "--watch", "-n", "--no-mtu", "-i", "100ms"];
        for (words, shows) in [(&watch[..], "client (here)"), (&trace[..], "last probes")] {
            let mut it = OnTerminal::start(world, [80, 24], words);
            it.until("alternate", vt100::Screen::alternate_screen);
            it.until_shows(shows);
            it.resize(60, 20);
            it.until("in the last of 20 rows", |screen| {
                screen.rows(0, 60).nth(19).is_some_and(|line| line.starts_with(" q quit"))
            });
            it.press("q");
            let (code, text) = it.end();
            assert_eq!(code, Some(0), "{text}");
        }
    });
}

#[test]
fn a_campaign_is_quit_and_goes_on() {
    let world = alone();
    let plan = world.file(
        "plan.toml",
        r#"
name = "pauses"
hosts = ["here"]
repetitions = 4
[load]
kind = "command"
duration = "300ms"
command = ["sh", "-c", "sleep 0.3; echo rate $(( {n} * 100 ))"]
pattern = 'rate (\d+)'
unit = "requests/s"
[[factor]]
flag = "n"
values = [1, 2]
"#,
    );
    let mut it = OnTerminal::start(&world, [80, 24], &["campaign", &plan, "--tui"]);
    it.until_shows("[3/8] block 2, here: n=");
    it.until_shows("pauses: 2 of 8 runs, mean sh (requests/s) 150");
    it.resize(60, 20);
    it.until("in the last of 20 rows", |screen| {
        screen.rows(0, 60).nth(19).is_some_and(|line| line.starts_with(" q quit"))
    });
    it.press("q");
    let (code, text) = it.end();
    assert!(code == Some(130) && text.contains(" of 8 runs are made"), "{code:?}\n{text}");
    let mut it = OnTerminal::start(&world, [120, 40], &["campaign", &plan, "--tui"]);
    it.until_shows(" left\n[");
    let (code, text) = it.end();
    assert!(code == Some(0) && text.contains("pauses: 8 of 8 runs") && text.contains("n: 1 → 2"), "{code:?}\n{text}");
}
