//! A host of its own for a test: namespace, state directory, servers, clients and processes.

use narrows_model::{Limit, TcpPlan};
use narrows_runner::live::LiveInstruments;
use narrows_runner::remote::{Options, Remote, RemoteError, Session, TargetSpec};
use narrows_runner::server::{ServeConfig, Server, ServerHandle};
use narrows_sys::netns::Namespaces;
use narrows_sys::{clock, process, sysctl};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

pub(crate) struct World {
    state: tempfile::TempDir,
}

/// Runs a test in a world of its own. Its threads and processes inherit the namespace.
pub(crate) fn world(test: impl FnOnce(&World) + Send) {
    let world = World { state: tempfile::tempdir().expect("a directory") };
    let created = Namespaces::create("control", || {
        let up = narrows_sys::rtnl::Links::open().and_then(|mut rtnl| rtnl.set_up("lo", true));
        up.expect("the loopback device");
        test(&world);
        Ok::<_, narrows_sys::Error>(())
    });
    created.expect("root, as every test here");
}

impl World {
    pub(crate) fn state(&self) -> &Path {
        self.state.path()
    }

    pub(crate) fn config(&self) -> ServeConfig {
        let mut config = ServeConfig::new(self.state().to_owned(), LiveInstruments::All);
        config.port = 0;
        config
    }

    pub(crate) fn serve(&self, change: impl FnOnce(&mut ServeConfig)) -> ServerHandle {
        let mut config = self.config();
        change(&mut config);
        Server::start(config).expect("a server")
    }

    /// A process of [`END`]; it ends with the test.
    pub(crate) fn process(&self, words: &[&str]) -> Process {
        let mut command = process::bound_command(END);
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a process");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        Process { child, output }
    }

    /// A server as a process; its port.
    pub(crate) fn server_process(&self, flags: &[&str]) -> (Process, u16) {
        let state = self.state().display().to_string();
        let mut words = vec!["serve", &state];
        words.extend(flags);
        let mut server = self.process(&words);
        let port = server.word("ready").parse().expect("a port");
        (server, port)
    }

    pub(crate) fn token_file(&self) -> String {
        self.state().join("token").display().to_string()
    }
}

/// The program that plays one end.
pub(crate) const END: &str = env!("CARGO_BIN_EXE_control-end");

pub(crate) fn options() -> Options {
    Options::new(LiveInstruments::All)
}

/// The server of that port, with its token.
pub(crate) fn spec(world: &World, port: u16) -> TargetSpec {
    let token = narrows_runner::trust::read_token(&world.state().join("token")).expect("a token");
    TargetSpec { asked: "127.0.0.1".to_owned(), family: None, port, token: Some(token) }
}

pub(crate) fn connect(world: &World, port: u16) -> Remote {
    Remote::connect(&spec(world, port), &options()).expect("the server")
}

/// The same without the token, where the server is open.
pub(crate) fn connect_as_guest(world: &World, port: u16) -> Remote {
    Remote::connect(&TargetSpec { token: None, ..spec(world, port) }, &options()).expect("an open server")
}

/// A connection with a session that has its turn at once.
pub(crate) fn with_session(world: &World, port: u16) -> (Remote, Session) {
    let remote = connect(world, port);
    let session = remote.open_session(&mut |_, _| true).expect("a session");
    (remote, session)
}

/// The sentence of a connection that must fail.
pub(crate) fn connect_error(spec: &TargetSpec, options: &Options) -> RemoteError {
    Remote::connect(spec, options).map(|_| ()).expect_err(&spec.asked)
}

pub(crate) fn short_plan() -> TcpPlan {
    TcpPlan { limit: Limit::DurationMs(300), interval_ms: 50, ..TcpPlan::default() }
}

/// Waits until something is so; how long it took, for the log.
pub(crate) fn until(what: &str, condition: impl Fn() -> bool) {
    let start = clock::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}: not after 20 s");
        clock::sleep(Duration::from_millis(5));
    }
    println!("{what}: after {} ms", start.elapsed().as_millis());
}

pub(crate) fn read_sysctl(key: &str) -> String {
    sysctl::read(key).expect("readable")
}

/// A process of a test.
pub(crate) struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// Waits until it says a line that begins with a word; the rest of the line.
    pub(crate) fn word(&mut self, word: &str) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.output.read_line(&mut line).expect("its output"), 0, "it ended before it said `{word}`");
            if let Some(rest) = line.trim().strip_prefix(word) {
                return rest.trim().to_owned();
            }
        }
    }

    pub(crate) fn signal(&self, signal: i32) {
        process::signal(self.child.id(), signal).expect("it lives");
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it lives");
        self.child.wait().expect("a child");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
