//! A place for a test: a directory, a network namespace, and the program in both.

use narrows_sys::netns::Namespaces;
use narrows_sys::{clock, process};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::time::Duration;

pub(crate) const SIGINT: i32 = 2;
pub(crate) const SIGKILL: i32 = 9;
pub(crate) const SIGTERM: i32 = 15;

/// A directory that is home and state to all that a test runs.
pub(crate) struct World {
    directory: tempfile::TempDir,
}

/// What a run of the program left.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs a test that needs no network.
pub(crate) fn alone() -> World {
    World { directory: tempfile::tempdir().expect("a directory") }
}

/// Runs a test in a network namespace of its own; its processes inherit it. The host's name there is `here`.
pub(crate) fn on_loopback(test: impl FnOnce(&World) + Send) {
    let world = alone();
    let made = Namespaces::create("here", || {
        narrows_sys::rtnl::Links::open().and_then(|mut links| links.set_up("lo", true)).expect("the loopback device");
        test(&world);
        Ok::<_, narrows_sys::Error>(())
    });
    made.expect("root, of a user namespace at least");
}

impl World {
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A file with this text; its path as a word.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).expect("a file");
        word(&self.path(name))
    }

    /// The state directory of the program.
    pub(crate) fn state(&self) -> PathBuf {
        self.path("state/narrows")
    }

    /// The program, with nothing of this process's environment but where to find other programs.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = process::bound_command(env!("CARGO_BIN_EXE_narrows"));
        command.args(words).env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.env("HOME", self.directory.path()).env("XDG_STATE_HOME", self.path("state"));
        command.current_dir(self.directory.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, words: &[&str]) -> Said {
        Self::run_command(self.command(words))
    }

    /// Runs the program on another host.
    pub(crate) fn run_on(&self, host: &Namespaces, words: &[&str]) -> Said {
        let mut command = self.command(words);
        host.apply(&mut command);
        Self::run_command(command)
    }

    pub(crate) fn run_command(mut command: Command) -> Said {
        let output = command.output().expect("the program");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        let said = Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) };
        said.check();
        said
    }

    /// Runs the program, which must fail with this code and one sentence on standard error; the sentence.
    pub(crate) fn sentence(&self, code: i32, words: &[&str]) -> String {
        let said = self.run(words);
        assert_eq!(said.code, Some(code), "narrows {}: {said:?}", words.join(" "));
        let sentence = said.err.strip_prefix("narrows: ").and_then(|rest| rest.strip_suffix('\n'));
        let sentence = sentence.unwrap_or_else(|| panic!("narrows {}: no sentence: {said:?}", words.join(" ")));
        assert!(!sentence.contains('\n'), "narrows {}: more than one: {sentence}", words.join(" "));
        sentence.to_owned()
    }

    pub(crate) fn start(&self, words: &[&str]) -> Running {
        Running::of(self.command(words))
    }

    /// Starts the program on another host.
    pub(crate) fn start_on(&self, host: &Namespaces, words: &[&str]) -> Running {
        let mut command = self.command(words);
        host.apply(&mut command);
        Running::of(command)
    }

    /// Starts a server on another host, at the usual port.
    pub(crate) fn serve_on(&self, host: &Namespaces, flags: &[&str]) -> Running {
        let mut server = self.start_on(host, &[&["serve"], flags].concat());
        server.await_error("narrows serves on port 5220 ");
        server
    }

    /// Starts a server on a free port; it, the port as a word, and its token file.
    pub(crate) fn serve(&self, flags: &[&str]) -> (Running, String, String) {
        let mut server = self.start(&[&["serve", "--port", "0"], flags].concat());
        let line = server.line_of_errors();
        let port = line.strip_prefix("narrows serves on port ").and_then(|rest| rest.split(' ').next());
        (server, port.unwrap_or_else(|| panic!("no server: {line}")).to_owned(), self.token_file())
    }

    /// The token file of a server that was started without flags for it.
    pub(crate) fn token_file(&self) -> String {
        word(&self.state().join("token"))
    }
}

/// A path as a word of a command line.
pub(crate) fn word(path: &Path) -> String {
    path.to_str().expect("text").to_owned()
}

/// Whether it becomes so within half a minute. It is looked at this often.
pub(crate) fn soon(every: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let began = clock::now();
    let mut so = is_so();
    while !so && began.elapsed() < Duration::from_secs(30) {
        clock::sleep(every);
        so = is_so();
    }
    so
}

impl Said {
    /// It, which must have ended with this code.
    #[track_caller]
    pub(crate) fn with_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    /// The same without a word on standard error.
    #[track_caller]
    pub(crate) fn quiet(self, code: i32) -> Self {
        assert_eq!((self.code, self.err.as_str()), (Some(code), ""), "{self:?}");
        self
    }

    /// Its output, which is JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|why| panic!("{why}: {self:?}"))
    }

    /// Nothing of the program's insides shows.
    fn check(&self) {
        for text in [&self.out, &self.err] {
            for inside in ["panicked", "backtrace", "RUST_", "src/", "https://docs.rs"] {
                assert!(!text.contains(inside), "`{inside}`: {self:?}");
            }
        }
    }
}

/// A process that ends with the test.
pub(crate) struct Ended(pub(crate) Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A run of the program that goes on. It ends with the test.
pub(crate) struct Running {
    child: Ended,
    out: BufReader<ChildStdout>,
    err: BufReader<ChildStderr>,
    /// What was read of its output.
    heard: String,
}

impl Running {
    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.spawn().expect("the program");
        let out = BufReader::new(child.stdout.take().expect("piped"));
        let err = BufReader::new(child.stderr.take().expect("piped"));
        Self { child: Ended(child), out, err, heard: String::new() }
    }

    pub(crate) fn line_of_errors(&mut self) -> String {
        let mut line = String::new();
        self.err.read_line(&mut line).expect("its errors");
        line
    }

    /// Waits for a line of its errors that begins so.
    pub(crate) fn await_error(&mut self, begin: &str) {
        loop {
            let line = self.line_of_errors();
            assert_ne!(line, "", "no `{begin}`");
            if line.starts_with(begin) {
                return;
            }
        }
    }

    /// Waits for a line of its output that begins so.
    pub(crate) fn await_line(&mut self, begin: &str) {
        loop {
            let at = self.heard.len();
            assert_ne!(self.out.read_line(&mut self.heard).expect("its output"), 0, "no `{begin}`: {}", self.heard);
            if self.heard[at..].starts_with(begin) {
                return;
            }
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.0.id()
    }

    pub(crate) fn signal(&self, signal: i32) {
        process::signal(self.pid(), signal).expect("it lives");
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Said {
        let mut said = Said { code: None, out: std::mem::take(&mut self.heard), err: String::new() };
        self.out.read_to_string(&mut said.out).expect("its output");
        self.err.read_to_string(&mut said.err).expect("its errors");
        said.code = self.child.0.wait().expect("a child").code();
        said.check();
        said
    }
}
