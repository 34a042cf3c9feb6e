//! A member as the conductor sees it: a process behind ssh.
//!
//! A host without narrows of this version gets this program over the same connection: into a file that has lost its name before the
//! program is started from it, so that nothing is left whatever ends it.

use super::member::MESH_ID;
use super::orders::{Answer, BEAT, Hello, Order, heard, line, say};
use crate::remote::SshServer;
use crate::{Stop, VERSION, lock};
use narrows_model::words::show::clean;
use narrows_sys::clock;
use narrows_sys::process::ssh_command;
use std::io::{BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// A program: its bytes and its CPU, as `uname -m` says it.
struct Program {
    bytes: Arc<Vec<u8>>,
    cpu: &'static str,
}

/// The programs that hosts get, the first of a CPU before the others of it.
pub(super) struct Programs(Vec<Program>);

/// Numbers of CPUs in the header of a program (`e_machine`, elf.h), and their names.
const CPUS: [(u16, &str); 2] = [(62, "x86_64"), (183, "aarch64")];

/// A debug build with its symbols is a quarter of a gigabyte.
const PROGRAM_MAX_BYTES: u64 = 1 << 30;

impl Programs {
    /// These files, and this program.
    /// Errors: one of them cannot be read, or is no program for a known CPU.
    pub(super) fn read(files: &[PathBuf]) -> Result<Self, String> {
        let mut all: Vec<Program> = files.iter().map(|file| Program::read(file)).collect::<Result<_, _>>()?;
        // Where it is for a CPU that no other host has, each has its own.
        all.extend(Program::read(Path::new("/proc/self/exe")).ok());
        Ok(Self(all))
    }

    fn of(&self, cpu: &[u8]) -> Option<&Program> {
        self.0.iter().find(|program| program.cpu.as_bytes() == cpu)
    }
}

impl Program {
    fn read(file: &Path) -> Result<Self, String> {
        let bytes = narrows_sys::files::read(file, PROGRAM_MAX_BYTES)
            .map_err(|error| format!("cannot read the program for the hosts: {error}"))?;
        let machine = bytes.get(18..20).filter(|_| bytes.starts_with(b"\x7fELF"));
        let machine = machine.map(|of| u16::from_le_bytes([of[0], of[1]]));
        let cpu = CPUS.iter().find(|(number, _)| machine == Some(*number)).map(|(_, name)| *name);
        let cpu =
            cpu.ok_or_else(|| format!("cannot use {}: it is no Linux program for x86_64 or aarch64", file.display()))?;
        Ok(Self { bytes: Arc::new(bytes), cpu })
    }
}

/// What the other shell runs; where its network ends before it has the program, it waits no longer than [`SENDS`]. `instead`: the command
/// that is narrows there, where the user names one.
fn script(programs: &Programs, instead: Option<&str>) -> String {
    if let Some(command) = instead {
        return format!("exec {command} mesh-member");
    }
    let any = "X".repeat(8);
    let sizes: Vec<String> = programs.0.iter().map(|it| format!("{}) s={};;", it.cpu, it.bytes.len())).collect();
    format!(
        "[ \"$(narrows --version 2>/dev/null)\" = 'narrows {VERSION}' ] && exec narrows mesh-member; \
         s=0; case $(uname -m) in {} esac; umask 077; for d in \"$XDG_RUNTIME_DIR\" /dev/shm /tmp \"$HOME\"; do \
         [ -d \"$d\" ] && f=$(mktemp \"$d/narrows.{any}\" 2>/dev/null) || continue; \
         printf '#!/bin/sh\\n:\\n' >\"$f\"; chmod 700 \"$f\"; \
         if \"$f\" 2>/dev/null; then exec 4>\"$f\" 3<\"$f\"; rm \"$f\"; echo \"send $(uname -m)\"; \
         if timeout 1 true 2>/dev/null; then timeout {} head -c $s >&4; else head -c $s >&4; fi; exec 4>&-; exec /proc/self/fd/3 mesh-member; fi; rm \"$f\"; done; \
         echo 'no folder from which programs may be started' >&2; exit 1",
        sizes.join(" "),
        SENDS.as_secs()
    )
}

/// What tells the meshes of this process from others on the same hosts.
fn id() -> &'static str {
    static ID: OnceLock<String> = OnceLock::new();
    ID.get_or_init(|| format!("{:016x}", narrows_sys::random::bytes().map_or(0, u64::from_ne_bytes)))
}

/// A process behind ssh; it ends with this.
pub(super) struct Host {
    child: Child,
    input: Arc<Mutex<ChildStdin>>,
    lines: Receiver<Result<Vec<u8>, String>>,
    words: Arc<Mutex<Vec<u8>>>,
    /// Raised, it waits for nothing more.
    stop: Stop,
}

/// The program may take so long: 30 MB at 1 Mbit/s.
const SENDS: Duration = Duration::from_secs(300);

/// How often a wait looks whether it was stopped.
const LOOKS: Duration = Duration::from_millis(200);

/// Lines of a shell before the member speaks.
const GREETINGS_MAX: usize = 64;

/// What is kept of ssh's own words.
const WORDS_MAX_BYTES: usize = 2 << 10;

impl Host {
    /// Starts ssh, from the thread that it ends with.
    pub(super) fn start(
        server: &SshServer,
        programs: &Programs,
        instead: Option<&str>,
        stop: &Stop,
    ) -> Result<Self, String> {
        let mut ssh = ssh_command("ssh");
        ssh.args(["-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"]);
        if let Some(port) = server.port {
            ssh.args(["-p", &port.to_string()]);
        }
        let command = format!("{MESH_ID}={}; export {MESH_ID}; {}", id(), script(programs, instead));
        ssh.args(["--", &server.destination, &command]);
        // Ctrl-C at the terminal is for this program, which ends ssh when it is done.
        ssh.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = ssh.spawn().map_err(|error| format!("cannot start ssh: {error}"))?;
        let (Some(output), Some(input), Some(errors)) = (child.stdout.take(), child.stdin.take(), child.stderr.take())
        else {
            return Err("ssh has no standard streams".to_owned());
        };
        // Few: what a member says without being asked waits there, and not in this memory.
        let (found, lines) = sync_channel(2);
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            loop {
                let next = match line(&mut output) {
                    Ok(Some(line)) => Ok(line),
                    Ok(None) => break,
                    Err(error) => Err(error.to_string()),
                };
                let ends = next.is_err();
                if found.send(next).is_err() || ends {
                    break;
                }
            }
        });
        let words = Arc::new(Mutex::new(Vec::new()));
        let kept = words.clone();
        std::thread::spawn(move || {
            let mut errors = BufReader::new(errors);
            while let Ok(Some(line)) = line(&mut errors) {
                let mut kept = lock(&kept);
                kept.extend(line.into_iter().chain(*b"; "));
                let excess = kept.len().saturating_sub(WORDS_MAX_BYTES);
                kept.drain(..excess);
            }
        });
        Ok(Self { child, input: Arc::new(Mutex::new(input)), lines, words, stop: stop.clone() })
    }

    /// Sends the program where it is wanted, and hears who is there. `patience`: for all of it.
    pub(super) fn greet(&mut self, programs: &Programs, patience: Duration) -> Result<Hello, String> {
        let until = clock::now() + patience;
        let mut first = self.next(until)?;
        // What a shell says to whoever comes in.
        for _ in 0..GREETINGS_MAX {
            if first.starts_with(b"{") || first.starts_with(b"send ") {
                break;
            }
            first = self.next(until)?;
        }
        if let Some(cpu) = first.strip_prefix(b"send ") {
            let program = programs.of(cpu).ok_or_else(|| {
                let (cpu, own) = (clean(&String::from_utf8_lossy(cpu)), std::env::consts::ARCH);
                format!(
                    "its CPU is {cpu}, and this program is for {own}: name one for it (--program), or install it there"
                )
            })?;
            self.send(program)?;
            first = self.next(clock::now() + patience)?;
        }
        let Answer::Hello(hello) = heard(&first)? else { return Err("unexpected greeting".to_owned()) };
        if hello.version != VERSION {
            return Err(format!("it runs narrows {}, and this is {VERSION}", clean(&hello.version)));
        }
        hello.token.parse::<narrows_wire::Token>().map_err(|_| "invalid token".to_owned())?;
        let input = Arc::downgrade(&self.input);
        std::thread::spawn(move || {
            while let Some(input) = input.upgrade() {
                if say(&mut *lock(&input), &Order::Beat).is_err() {
                    break;
                }
                drop(input);
                clock::sleep(BEAT);
            }
        });
        Ok(hello)
    }

    /// Sends the program, in a thread of its own: a host that does not read holds up nobody.
    fn send(&self, program: &Program) -> Result<(), String> {
        let (input, bytes, (sent, outcome)) = (self.input.clone(), program.bytes.clone(), channel());
        std::thread::spawn(move || sent.send(lock(&input).write_all(&bytes)));
        let until = clock::now() + SENDS;
        loop {
            match outcome.recv_timeout(LOOKS) {
                Ok(outcome) => return outcome.map_err(|error| self.lost(&error.to_string())),
                Err(RecvTimeoutError::Timeout) if self.stop.is_set() => return Err("interrupted".to_owned()),
                Err(RecvTimeoutError::Timeout) if clock::now() < until => {}
                Err(_) => return Err(self.lost("it takes too long to send it the program: install narrows there")),
            }
        }
    }

    pub(super) fn ask(&mut self, order: &Order, patience: Duration) -> Result<Answer, String> {
        say(&mut *lock(&self.input), order).map_err(|error| self.lost(&error.to_string()))?;
        heard(&self.next(clock::now() + patience)?)
    }

    fn next(&self, until: Instant) -> Result<Vec<u8>, String> {
        loop {
            let left = until.saturating_duration_since(clock::now());
            match self.lines.recv_timeout(left.min(LOOKS)) {
                Ok(line) => return line,
                Err(RecvTimeoutError::Timeout) if self.stop.is_set() => return Err("interrupted".to_owned()),
                Err(RecvTimeoutError::Timeout) if left <= LOOKS => return Err(self.lost("it does not answer")),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) if self.stop.is_set() => return Err("interrupted".to_owned()),
                Err(RecvTimeoutError::Disconnected) => {
                    // Its words may come a moment after its end.
                    clock::sleep(Duration::from_millis(100));
                    let words = self.words();
                    return Err(if words.is_empty() { "the connection ended".to_owned() } else { words });
                }
            }
        }
    }

    /// What ssh said itself.
    fn words(&self) -> String {
        clean(String::from_utf8_lossy(&lock(&self.words)).trim_end_matches("; "))
    }

    /// Why it is lost, with what ssh said.
    fn lost(&self, why: &str) -> String {
        let words = self.words();
        if words.is_empty() { why.to_owned() } else { format!("{why} (ssh: {words})") }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
