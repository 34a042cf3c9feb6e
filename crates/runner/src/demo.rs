//! The demonstration in the lab: a path of 1 Gbit/s and 35 ms that a small receive window limits to 37 Mbit/s.

use crate::DEFAULT_PORT;
use narrows_lab::{Lab, LabSpec};
use narrows_model::lab::Impairment;
use narrows_model::{Direction, Family, Place};
use narrows_sys::{clock, files, net, process, random};
use serde::de::DeserializeOwned;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use thiserror::Error;

/// Why a program could not be run between two hosts of the lab.
#[derive(Debug, Error)]
pub enum StageError {
    #[error(transparent)]
    Lab(#[from] narrows_lab::Error),
    #[error(transparent)]
    System(#[from] narrows_sys::Error),
    /// A process did not start.
    #[error("cannot start {0}: {1}")]
    Start(&'static str, std::io::Error),
    /// A saved run cannot be read.
    #[error(transparent)]
    Kept(#[from] crate::stored::LoadError),
    /// A program on the lab's client failed, with its message.
    #[error("{0} on the lab's client failed: {1}")]
    Failed(&'static str, String),
    /// The server did not come up.
    #[error("the server in the lab did not open its port within 5 seconds")]
    NoServer,
}

/// A lab with a running server, and the token for its clients.
pub struct Stage {
    pub lab: Lab,
    /// Directory of the token and of the state of both hosts; removed on drop.
    pub scratch: PathBuf,
    program: PathBuf,
    /// The words after `serve`.
    serve: Vec<String>,
    /// `None`: killed.
    server: Option<Child>,
}

impl Stage {
    /// Brings up a lab and starts `narrows serve` with these flags in it.
    pub fn up(spec: &LabSpec, serve: &[&str]) -> Result<Self, StageError> {
        Self::with_program(spec, serve, process::own_program()?)
    }

    /// As [`Stage::up`], with another program file as narrows.
    pub fn with_program(spec: &LabSpec, serve: &[&str], program: PathBuf) -> Result<Self, StageError> {
        let lab = Lab::up(spec)?;
        // Unique for each stage, also among the threads of a process.
        let tag: [u8; 4] = random::bytes()?;
        let scratch = std::env::temp_dir().join(format!("narrows-{}-{:08x}", spec.name, u32::from_ne_bytes(tag)));
        files::make_directory(&scratch)?;
        let serve = serve.iter().map(|word| (*word).to_owned()).collect();
        let mut stage = Self { lab, scratch, program, serve, server: None };
        stage.start_server()?;
        Ok(stage)
    }

    /// Starts the server, which may have been killed before.
    pub fn start_server(&mut self) -> Result<(), StageError> {
        let server = self
            .lab
            .host("server")?
            .command(&self.program.to_string_lossy())
            .args(["serve", "--port", &DEFAULT_PORT.to_string(), "--token-file"])
            .arg(self.scratch.join("token"))
            .args(&self.serve)
            .env("XDG_STATE_HOME", self.scratch.join("server"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| StageError::Start("the server", error))?;
        self.server = Some(server);
        self.await_server()
    }

    /// The server's process; `None`: killed.
    pub fn server_id(&self) -> Option<u32> {
        self.server.as_ref().map(Child::id)
    }

    /// Ends the server with SIGKILL.
    pub fn kill_server(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }

    fn await_server(&self) -> Result<(), StageError> {
        let address = self.lab.address_of("server", Family::Ipv4).ok_or(StageError::NoServer)?;
        let to = SocketAddr::new(address, DEFAULT_PORT);
        for _ in 0..100 {
            let open = self
                .lab
                .host("client")?
                .run(|| net::connect(to, Duration::from_secs(1), |_| Ok::<_, narrows_sys::Error>(())).is_ok())?;
            if open && files::exists(&self.scratch.join("token")) {
                return Ok(());
            }
            clock::sleep(Duration::from_millis(50));
        }
        Err(StageError::NoServer)
    }

    /// A command that runs narrows on the client host with these arguments and the token.
    pub fn client(&self, words: &[&str]) -> Result<Command, StageError> {
        let mut command = self.on_client(words)?;
        command.arg("--token-file").arg(self.scratch.join("token"));
        Ok(command)
    }

    /// The same with these arguments only.
    pub fn on_client(&self, words: &[&str]) -> Result<Command, StageError> {
        let mut command = self.lab.host("client")?.command(&self.program.to_string_lossy());
        command.args(words).env("XDG_STATE_HOME", self.scratch.join("client")).stdin(Stdio::null());
        Ok(command)
    }

    /// Runs narrows on the client host. `what` it is, for errors.
    pub(crate) fn run(&self, what: &'static str, words: &[&str]) -> Result<(), StageError> {
        output(what, &mut self.client(words)?).map(drop)
    }

    /// Runs narrows on the client host and reads its report, which it writes as JSON.
    pub(crate) fn report<T: DeserializeOwned>(&self, what: &'static str, words: &[&str]) -> Result<T, StageError> {
        let output = output(what, &mut self.client(words)?)?;
        serde_json::from_slice(&output)
            .map_err(|error| StageError::Failed(what, format!("cannot read its report: {error}")))
    }
}

fn output(what: &'static str, command: &mut Command) -> Result<Vec<u8>, StageError> {
    let output = command.output().map_err(|error| StageError::Start(what, error))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(StageError::Failed(what, String::from_utf8_lossy(&output.stderr).trim().chars().take(400).collect()))
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.kill_server();
        let _ = files::remove_tree(&self.scratch);
    }
}

/// Plays the demonstration with the output of the real program and returns its exit code.
pub fn play(keep_report: Option<&Path>, say: &mut dyn FnMut(&str)) -> Result<i32, StageError> {
    let way = Impairment { rate_bps: 1_000_000_000, delay_us: 17_500, ..Impairment::default() };
    let spec = LabSpec { name: "demo".to_owned(), up: way.clone(), down: way, ..LabSpec::default() };
    say("lab: client -- 1 Gbit/s, 35 ms -- server; the server's tcp_rmem maximum is 256 KiB");
    let stage = Stage::up(&spec, &["--allow-tune"])?;
    stage.lab.fault("tcp-receive-window", Place::Server, Some("256k"), Direction::Both)?;
    // By its address: a system without /etc/hosts has no names for the hosts of a lab.
    let server = stage.lab.address_of("server", Family::Ipv4).ok_or(StageError::NoServer)?.to_string();
    say(&format!("client$ narrows diagnose {server} --try"));
    let mut command = stage.client(&["diagnose", &server, "--try", "--exit-zero", "--no-save"])?;
    if let Some(path) = keep_report {
        command.arg("--output").arg(path);
    }
    let status = command.status().map_err(|error| StageError::Start("the diagnosis", error))?;
    Ok(status.code().unwrap_or(1))
}
