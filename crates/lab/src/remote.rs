//! A lab that another process holds: starting it, querying it, entering its hosts, ending it.

use crate::processes;
use crate::protocol::{LINE_MAX, Order, Reply, Request, Status};
use crate::registry::Registry;
use crate::{ActiveFault, Error, LabSpec, Result, Site};
use narrows_model::Direction;
use narrows_model::lab::Impairment;
use narrows_sys::netns::{self, Namespaces};
use narrows_sys::{event, process};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

/// How long the holder may take to build a lab.
const BUILD: Duration = Duration::from_secs(20);
/// Time limit for an answer, and for the end.
const PATIENCE: Duration = Duration::from_secs(5);

/// How to start the holder: a program with arguments that lead to [`crate::hold`].
#[derive(Debug, Clone)]
pub struct Launcher {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// Added to its environment.
    pub environment: Vec<(String, String)>,
}

impl Launcher {
    /// This program itself, as `narrows lab hold`.
    pub fn own() -> Result<Self> {
        let arguments = vec!["lab".to_owned(), "hold".to_owned()];
        Ok(Self { program: process::own_program()?, arguments, environment: Vec::new() })
    }
}

/// The labs of this user, each in a process of its own.
#[derive(Debug, Clone)]
pub struct Labs {
    registry: Registry,
}

impl Labs {
    /// Those of this user.
    pub fn of_user() -> Self {
        Self::at(Registry::of_user())
    }

    /// The labs of another directory.
    pub const fn at(registry: Registry) -> Self {
        Self { registry }
    }

    pub fn names(&self) -> Vec<String> {
        self.registry.names()
    }

    /// Builds a lab that outlives this process. The remains of a killed one with the same name are removed.
    /// Errors: a lab of that name is up: it and what runs in it are left alone. What the holder reported.
    pub fn up(&self, spec: &LabSpec, launcher: &Launcher) -> Result<Status> {
        spec.check()?;
        // One that is just being killed does not answer, and is gone in a moment.
        if let Ok(state) = self.registry.running(&spec.name)
            && (self.status(&spec.name).is_ok() || !process::wait_gone(state.pid, PATIENCE)?)
        {
            let processes = processes::of(&self.registry.state_path(&spec.name)).len();
            return Err(Error::AlreadyUp { name: spec.name.clone(), processes });
        }
        self.replace(spec, launcher)
    }

    /// As [`Labs::up`]; a running lab of that name is taken down first, with the processes on its hosts.
    pub fn replace(&self, spec: &LabSpec, launcher: &Launcher) -> Result<Status> {
        spec.check()?;
        match self.down(&spec.name) {
            Ok(()) | Err(Error::NotUp { .. }) => {}
            // An unreadable state names no process: it is overwritten.
            Err(Error::Format { .. }) => {}
            Err(error) => return Err(error),
        }
        self.registry.forget(&spec.name)?;
        let failed = |cause: String| Error::Holder { name: spec.name.clone(), cause };
        let program = launcher.program.to_string_lossy();
        let mut command = process::free_command(&program);
        command.args(&launcher.arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.envs(launcher.environment.iter().map(|(key, value)| (key, value)));
        command.current_dir("/");
        let mut child = command.spawn().map_err(|error| failed(format!("cannot start {program}: {error}")))?;
        let order = Order {
            directory: self.registry.directory().to_owned(),
            user_namespace: !process::is_root(),
            spec: spec.clone(),
        };
        let told = serde_json::to_string(&order).map_err(|error| failed(error.to_string())).and_then(|text| {
            let mut stdin = child.stdin.take().ok_or_else(|| failed("it has no standard input".to_owned()))?;
            stdin.write_all(format!("{text}\n").as_bytes()).map_err(|error| failed(error.to_string()))
        });
        let answer = told.and_then(|()| {
            let stdout = child.stdout.take().ok_or_else(|| failed("it has no standard output".to_owned()))?;
            first_reply(stdout, &spec.name)
        });
        match answer {
            Ok(Reply::Status(status)) => Ok(*status),
            other => {
                // It is of no use: it must not stay behind.
                let _ = child.kill();
                let _ = child.wait();
                match other {
                    Ok(Reply::Error { text }) => Err(failed(text)),
                    Ok(other) => Err(failed(format!("unexpected answer {other:?}"))),
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// Sends a request to a lab.
    /// Errors: it is not up, does not answer, or reports an error.
    pub fn ask(&self, name: &str, request: &Request) -> Result<Reply> {
        self.registry.running(name)?;
        let path = self.registry.socket_path(name);
        let failed = |operation: &'static str| {
            let path = path.clone();
            move |source| Error::Socket { operation, path, source }
        };
        let stream = UnixStream::connect(&path).map_err(failed("reach the lab at"))?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed("set the time limit of"))?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(failed("set the time limit of"))?;
        let format = |error: serde_json::Error| Error::Format {
            what: format!("the answer of lab `{name}`"),
            cause: error.to_string(),
        };
        let text = serde_json::to_string(request).map_err(format)?;
        (&stream).write_all(format!("{text}\n").as_bytes()).map_err(failed("send to"))?;
        let mut line = String::new();
        BufReader::new((&stream).take(LINE_MAX)).read_line(&mut line).map_err(failed("receive from"))?;
        match serde_json::from_str(&line).map_err(format)? {
            Reply::Error { text } => Err(Error::Holder { name: name.to_owned(), cause: text }),
            reply => Ok(reply),
        }
    }

    fn unexpected(name: &str, reply: &Reply) -> Error {
        Error::Format { what: format!("the answer of lab `{name}`"), cause: format!("unexpected: {reply:?}") }
    }

    /// The status of a lab.
    pub fn status(&self, name: &str) -> Result<Status> {
        match self.ask(name, &Request::Status)? {
            Reply::Status(status) => Ok(*status),
            other => Err(Self::unexpected(name, &other)),
        }
    }

    /// Replaces the path in these directions; active faults stay.
    pub fn set(&self, name: &str, direction: Direction, impairment: Impairment) -> Result<Status> {
        match self.ask(name, &Request::Set { direction, impairment })? {
            Reply::Status(status) => Ok(*status),
            other => Err(Self::unexpected(name, &other)),
        }
    }

    /// Injects a fault.
    pub fn fault(
        &self,
        name: &str,
        id: &str,
        at: impl Into<Site>,
        value: Option<&str>,
        direction: Direction,
    ) -> Result<Vec<ActiveFault>> {
        let at = at.into();
        let request = Request::Fault { id: id.to_owned(), at, value: value.map(str::to_owned), direction };
        match self.ask(name, &request)? {
            Reply::Faults { faults } => Ok(faults),
            other => Err(Self::unexpected(name, &other)),
        }
    }

    /// Removes a fault, or `all`.
    pub fn unfault(&self, name: &str, id: &str, at: Option<Site>) -> Result<Vec<ActiveFault>> {
        match self.ask(name, &Request::Unfault { id: id.to_owned(), at })? {
            Reply::Faults { faults } => Ok(faults),
            other => Err(Self::unexpected(name, &other)),
        }
    }

    /// Ends a lab and the processes on its hosts: terminates them, and kills those that do not end. Nothing of it
    /// is left when this returns.
    /// Errors: it is not up (the remains of a killed one are removed all the same); it cannot be ended.
    pub fn down(&self, name: &str) -> Result<()> {
        let running = self.registry.running(name);
        if matches!(running, Ok(_) | Err(Error::NotUp { .. })) {
            processes::end_all(&self.registry.state_path(name))?;
        }
        let state = match running {
            Ok(state) => state,
            Err(error @ Error::NotUp { .. }) => {
                self.registry.forget(name)?;
                return Err(error);
            }
            Err(error) => return Err(error),
        };
        let asked = self.ask(name, &Request::Down);
        if asked.is_err() || !process::wait_gone(state.pid, PATIENCE)? {
            const SIGKILL: i32 = 9;
            // It may end between the check and the signal.
            if process::start_time(state.pid) == Some(state.started) {
                process::signal(state.pid, SIGKILL)?;
            }
            if !process::wait_gone(state.pid, PATIENCE)? {
                return Err(Error::Holder { name: name.to_owned(), cause: "it cannot be ended".to_owned() });
            }
        }
        self.registry.forget(name)
    }

    /// Runs `work` on a thread inside a host, and returns its result.
    /// Errors: the lab is not up, there is no such host, or it belongs to a user namespace that this process is not in.
    pub fn within<T: Send>(&self, name: &str, host: &str, work: impl FnOnce() -> T + Send) -> Result<T> {
        let (pid, descriptors) = self.host_of(name, host)?;
        Ok(Namespaces::of_holder(pid, descriptors)?.run(work)?)
    }

    /// Who holds a host, and by which descriptors.
    fn host_of(&self, name: &str, host: &str) -> Result<(u32, [i32; 3])> {
        let state = self.registry.running(name)?;
        let known = || state.hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>().join(", ");
        let found = state.hosts.iter().find(|state| state.name == host);
        let found = found.ok_or_else(|| Error::UnknownHost { name: host.to_owned(), known: known() })?;
        Ok((state.pid, found.descriptors))
    }

    /// Replaces this process by a command inside a host: on success this does not return.
    ///
    /// Without root it must be called while the process has one thread, since it enters a user namespace.
    /// Errors: the lab is not up, there is no such host, or no such program.
    pub fn exec(
        &self,
        name: &str,
        host: &str,
        program: &str,
        arguments: &[String],
    ) -> Result<std::convert::Infallible> {
        let (pid, descriptors) = self.host_of(name, host)?;
        netns::join_user_namespace(pid)?;
        let namespaces = Namespaces::of_holder(pid, descriptors)?;
        let mut command = process::free_command(program);
        namespaces.apply(&mut command);
        command.env(processes::MARK, self.registry.state_path(name));
        let source = command.args(arguments).env("NARROWS_LAB", name).env("NARROWS_LAB_HOST", host).exec();
        Err(narrows_sys::Error::new("run", program, source).into())
    }
}

/// The first line of JSON that a new holder writes.
fn first_reply(stdout: std::process::ChildStdout, name: &str) -> Result<Reply> {
    let failed = |cause: &str| Error::Holder { name: name.to_owned(), cause: cause.to_owned() };
    let deadline = narrows_sys::clock::now() + BUILD;
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    let mut stdout = stdout;
    loop {
        let left = deadline.saturating_duration_since(narrows_sys::clock::now());
        let [ready, _] = event::wait_readable([stdout.as_fd(), stdout.as_fd()], Some(left))?;
        if !ready {
            if left.is_zero() {
                return Err(failed("no answer for 20 s"));
            }
            continue;
        }
        let got = stdout.read(&mut chunk).map_err(|error| failed(&error.to_string()))?;
        bytes.extend_from_slice(chunk.get(..got).unwrap_or_default());
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let text = String::from_utf8_lossy(bytes.get(..whole).unwrap_or_default());
        let json = text.lines().find(|line| line.starts_with('{'));
        if let Some(line) = json {
            return serde_json::from_str(line).map_err(|error| failed(&format!("unexpected answer `{line}`: {error}")));
        }
        if got == 0 || bytes.len() as u64 > LINE_MAX {
            return Err(failed("it ended without an answer"));
        }
    }
}
