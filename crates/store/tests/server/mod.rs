//! A PostgreSQL server for a test: of the installed package, in a directory of its own, ended with the test.

#![allow(dead_code, clippy::disallowed_methods, clippy::unwrap_used)] // each user needs a part; a test that starts a program

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The server; it runs until it is dropped.
pub(crate) struct Server {
    directory: tempfile::TempDir,
    programs: PathBuf,
    user: Option<u32>,
    port: u16,
    running: Option<Child>,
}

impl Server {
    /// Starts one; `None`, and a line about it, where it is not installed or cannot run.
    pub(crate) fn start() -> Option<Self> {
        let made = Self::made();
        if let Err(why) = &made {
            println!("NOT CHECKED: PostgreSQL, since {why}");
        }
        made.ok()
    }

    fn made() -> Result<Self, String> {
        let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let mut programs: Vec<PathBuf> = versions.map(|it| it.path().join("bin")).collect();
        programs.sort();
        let missing = "it is missing (Debian: apt-get install postgresql)";
        let programs = programs.pop().filter(|it| it.join("initdb").exists()).ok_or(missing)?;
        // The server refuses to run as root.
        let user = if narrows_sys::process::is_root() {
            let users = std::fs::read_to_string("/etc/passwd").unwrap();
            let user = users.lines().find_map(|line| line.strip_prefix("postgres:")?.split(':').nth(1)?.parse().ok());
            Some(user.ok_or("there is no user postgres")?)
        } else {
            None
        };
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let directory = tempfile::tempdir().unwrap();
        chown(directory.path(), user, None).map_err(|_| "this namespace has no user postgres")?;
        let mut server = Self { directory, programs, user, port, running: None };
        let data = server.directory.path().join("data");
        server.do_program("initdb", &["-A", "trust", "-U", "postgres", "--no-sync", "-D", data.to_str().unwrap()]);
        server.go_on();
        Ok(server)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = narrows_sys::process::bound_command(self.programs.join(program).to_str().unwrap());
        command.current_dir(self.directory.path()).stdin(Stdio::null()).stdout(Stdio::null());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }

    fn do_program(&self, program: &str, words: &[&str]) {
        let done = self.command(program).args(words).output().unwrap();
        assert!(done.status.success(), "{program}: {}", String::from_utf8_lossy(&done.stderr));
    }

    /// Makes an empty database; its address.
    pub(crate) fn database(&self, name: &str) -> PathBuf {
        let (place, port) = (self.directory.path().to_str().unwrap(), self.port.to_string());
        self.do_program("createdb", &["-h", place, "-p", &port, "-U", "postgres", name]);
        // The server trusts all; the password must not appear anywhere.
        format!("postgres://postgres:secret@127.0.0.1:{port}/{name}").into()
    }

    /// The address of a database by the socket.
    pub(crate) fn by_socket(&self, name: &str) -> PathBuf {
        let place = self.directory.path().to_str().unwrap().replace('/', "%2F");
        format!("postgres://postgres@{place}:{}/{name}", self.port).into()
    }

    /// Starts it, again after [`Self::stop`].
    pub(crate) fn go_on(&mut self) {
        let (place, port) = (self.directory.path().to_str().unwrap(), self.port.to_string());
        let log = self.directory.path().join("log");
        let data = self.directory.path().join("data");
        let words = ["-D", data.to_str().unwrap(), "-k", place, "-p", &port, "-c", "listen_addresses=127.0.0.1"];
        let errors = std::fs::File::create(&log).unwrap();
        self.running = Some(self.command("postgres").args(words).stderr(errors).spawn().unwrap());
        let begun = Instant::now();
        while !said(&log).contains("ready to accept connections") {
            assert!(begun.elapsed() < Duration::from_secs(60), "{}", said(&log));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends it as a crash would: its processes end without a word, and it recovers when it is started again.
    pub(crate) fn stop(&mut self) {
        if let Some(mut child) = self.running.take() {
            let data = self.directory.path().join("data");
            let _ = self.command("pg_ctl").args(["stop", "-m", "immediate", "-D", data.to_str().unwrap()]).output();
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

fn said(log: &Path) -> String {
    std::fs::read_to_string(log).unwrap_or_default()
}
