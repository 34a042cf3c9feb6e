//! The other end through ssh: `ssh HOST narrows serve --stdio`, with its standard input and output as the control connection.

use super::error::{RemoteError, plain};
use crate::instruments::LiveInstruments;
use crate::lock;
use narrows_model::Family;
use narrows_sys::process::ssh_command;
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};

/// What is kept of ssh's own words.
const MAX_WORDS_BYTES: usize = 4 << 10;

/// How to reach a server.
#[derive(Debug, Clone)]
pub struct Options {
    /// What this end measures with.
    pub instruments: LiveInstruments,
    /// The command that is narrows on the other end of ssh.
    pub remote_command: String,
    /// The port of the data connections where ssh starts the server; 0: a free one.
    pub ssh_data_port: u16,
    /// Whether a server that ssh starts may change its host.
    pub allow_tune: bool,
    /// Whether nobody is there whom ssh could ask.
    pub unattended: bool,
    /// The devices by which a server that ssh starts may send and count frames.
    pub frames: Vec<String>,
    /// A local command that stands in for ssh and everything after it.
    pub instead_of_ssh: Option<Vec<String>>,
}

impl Options {
    /// The defaults; the remote command is `narrows`, or what the environment variable `NARROWS_REMOTE_COMMAND` says.
    pub fn new(instruments: LiveInstruments) -> Self {
        let remote_command = std::env::var("NARROWS_REMOTE_COMMAND")
            .ok()
            .filter(|command| !command.trim().is_empty())
            .unwrap_or_else(|| "narrows".to_owned());
        Self {
            instruments,
            remote_command,
            ssh_data_port: 0,
            allow_tune: false,
            unattended: false,
            frames: Vec::new(),
            instead_of_ssh: None,
        }
    }
}

#[derive(Debug)]
pub(super) struct Ssh {
    child: Child,
    command: String,
    words: Arc<Mutex<Vec<u8>>>,
    reading: tokio::task::JoinHandle<()>,
}

/// The command and its arguments. The destination was checked not to look like an option.
fn words(destination: &str, port: Option<u16>, family: Option<Family>, options: &Options) -> Vec<String> {
    if let Some(local) = &options.instead_of_ssh {
        return local.clone();
    }
    let mut words = vec!["ssh".to_owned(), "-T".to_owned()];
    words.extend(family.map(|family| if family == Family::Ipv4 { "-4".to_owned() } else { "-6".to_owned() }));
    if options.unattended {
        words.extend(["-o".to_owned(), "BatchMode=yes".to_owned()]);
    }
    if let Some(port) = port {
        words.extend(["-p".to_owned(), port.to_string()]);
    }
    let tune = if options.allow_tune { " --allow-tune" } else { "" };
    let frames = match options.frames.as_slice() {
        [] => String::new(),
        devices => format!(" --frames {}", devices.join(",")),
    };
    words.extend([
        "--".to_owned(),
        destination.to_owned(),
        format!("{} serve --stdio --port {}{tune}{frames}", options.remote_command, options.ssh_data_port),
    ]);
    words
}

/// Whether a shell takes a word for nothing but itself.
fn is_plain(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '@');
    !word.is_empty() && !word.starts_with('-') && word.chars().all(plain)
}

impl Ssh {
    /// Starts it, from the thread whose end shall be its end.
    pub(super) fn start(
        destination: &str,
        port: Option<u16>,
        family: Option<Family>,
        options: &Options,
    ) -> Result<(Self, ChildStdout, ChildStdin), RemoteError> {
        if let Some(device) = options.frames.iter().find(|device| !is_plain(device)) {
            let why = format!("interface name `{}` is not safe for a remote shell", device.escape_default());
            return Err(RemoteError::Here(format!("{why}; start `narrows serve --frames` there, and use its address")));
        }
        let words = words(destination, port, family, options);
        let command = words.join(" ");
        let failed = |said: String| RemoteError::Ssh(command.clone(), said);
        let (program, arguments) = words.split_first().ok_or_else(|| failed("the command is empty".to_owned()))?;
        let mut start = ssh_command(program);
        start.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if options.unattended {
            // It asks nothing, and Ctrl-C at the terminal is for this program.
            start.process_group(0);
        }
        let mut start = tokio::process::Command::from(start);
        start.kill_on_drop(true);
        let mut child = start.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => failed(format!("`{program}` is not installed on this host")),
            _ => failed(error.to_string()),
        })?;
        let (Some(output), Some(input), Some(errors)) = (child.stdout.take(), child.stdin.take(), child.stderr.take())
        else {
            return Err(failed("it has no standard input and output".to_owned()));
        };
        let words = Arc::new(Mutex::new(Vec::new()));
        let reading = tokio::spawn(listen(errors, words.clone()));
        Ok((Self { child, command, words, reading }, output, input))
    }

    /// Why it did not work: its last words, or how it ended.
    pub(super) async fn failure(&mut self, otherwise: &str) -> RemoteError {
        let status = tokio::time::timeout(Duration::from_secs(1), self.child.wait()).await;
        // Its words may come a moment after its end.
        let _ = tokio::time::timeout(Duration::from_millis(500), &mut self.reading).await;
        let heard = {
            let heard = lock(&self.words);
            String::from_utf8_lossy(&heard)
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty())
                .collect::<Vec<_>>()
                .join("; ")
        };
        let said = match (heard.is_empty(), status) {
            (false, _) => plain(&heard),
            (true, Ok(Ok(status))) => format!("it ended with {status}, without output"),
            (true, _) => otherwise.to_owned(),
        };
        RemoteError::Ssh(self.command.clone(), said)
    }

    /// Lets it end by itself, since its input was closed, and ends it where it does not.
    pub(super) async fn finish(&mut self) {
        if tokio::time::timeout(Duration::from_secs(3), self.child.wait()).await.is_err() {
            let _ = self.child.kill().await;
        }
    }
}

async fn listen(mut errors: ChildStderr, words: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = [0; 1024];
    while let Ok(count @ 1..) = errors.read(&mut buffer).await {
        let mut words = lock(&words);
        words.extend_from_slice(buffer.get(..count).unwrap_or_default());
        let excess = words.len().saturating_sub(MAX_WORDS_BYTES);
        words.drain(..excess);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_the_one_that_a_user_would_type() {
        let mut options = Options::new(LiveInstruments::All);
        options.remote_command = "narrows".to_owned();
        assert_eq!(
            words("ops@db7", None, None, &options).join(" "),
            "ssh -T -- ops@db7 narrows serve --stdio --port 0"
        );
        options.allow_tune = true;
        options.remote_command = "sudo /opt/narrows".to_owned();
        assert_eq!(
            words("db7", Some(2222), Some(Family::Ipv6), &options).join(" "),
            "ssh -T -6 -p 2222 -- db7 sudo /opt/narrows serve --stdio --port 0 --allow-tune"
        );
        options.allow_tune = false;
        options.frames = vec!["eth1".to_owned(), "eth2.7".to_owned()];
        assert_eq!(
            words("db7", None, None, &options).join(" "),
            "ssh -T -- db7 sudo /opt/narrows serve --stdio --port 0 --frames eth1,eth2.7"
        );
        assert!(is_plain("eth2.7@x") && !is_plain("$(reboot)") && !is_plain("a b") && !is_plain("-x"));
    }
}
