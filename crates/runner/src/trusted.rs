//! The tokens of servers that the user trusts: one line per server in `trusted` in the state directory, as ssh keeps known hosts.
//! Readable by the owner alone, because a token is a secret.

use crate::remote::{RemoteError, SshServer};
use crate::state;
use crate::trust::{TrustError, read_token};
use narrows_sys::files;
use narrows_sys::process::ssh_command;
use narrows_wire::Token;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use thiserror::Error;

/// Servers that one file holds at most.
const MAX_SERVERS: usize = 10_000;
/// Longer ones are not read.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Why a token could not be stored, read or fetched.
#[derive(Debug, Error)]
pub enum TrustedError {
    /// There is no state directory.
    #[error(
        "cannot store tokens: neither XDG_STATE_HOME nor HOME is set to an absolute path; use --token-file or NARROWS_TOKEN"
    )]
    NoPlace,
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] narrows_sys::Error),
    /// A token file, or what was fetched.
    #[error(transparent)]
    Token(#[from] TrustError),
    #[error("cannot store the token in {}: it holds {MAX_SERVERS} servers already; remove old ones with `narrows trust HOST --forget`", .0.display())]
    Full(PathBuf),
    /// This host has no token.
    #[error("cannot read the token of this host: there is none in {}; start `narrows serve` once, or name its file with --token-file", .0.display())]
    NoServer(PathBuf),
    /// The token is the service's.
    #[error(
        "cannot read the token of this host's service: the members of its group read it; run `sudo usermod -aG narrows USER` and log in \
        again, or name a file with --token-file"
    )]
    Closed,
    /// ssh failed: the command, and why.
    #[error("cannot fetch the token: `{0}` {1}")]
    Ssh(String, String),
    /// The target is invalid.
    #[error(transparent)]
    Target(#[from] RemoteError),
}

/// A server whose token is stored.
#[derive(Debug)]
pub struct Trusted {
    /// Name or address, as the user writes it.
    pub host: String,
    pub port: u16,
    pub token: Token,
}

/// The file of the stored tokens.
pub fn file() -> Result<PathBuf, TrustedError> {
    state::directory().map(|state| state.join("trusted")).ok_or(TrustedError::NoPlace)
}

/// All servers of a file; lines that are none are passed over. A missing file has none.
pub fn list(file: &Path) -> Result<Vec<Trusted>, TrustedError> {
    let bytes = match files::read(file, MAX_FILE_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.source.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let server = |line: &str| {
        let mut words = line.split_whitespace();
        let (host, port, token) = (words.next()?, words.next()?, words.next()?);
        Some(Trusted { host: host.to_owned(), port: port.parse().ok()?, token: token.parse().ok()? })
    };
    Ok(String::from_utf8_lossy(&bytes).lines().filter_map(server).collect())
}

/// The stored token of a server; `None` where there is none or the file cannot be read.
pub fn token_of(file: &Path, host: &str, port: u16) -> Option<Token> {
    let found = list(file).ok()?.into_iter().find(|it| it.host.eq_ignore_ascii_case(host) && it.port == port);
    found.map(|it| it.token)
}

/// As [`token_of`], in the user's own file.
pub fn stored(host: &str, port: u16) -> Option<Token> {
    token_of(&file().ok()?, host, port)
}

/// Stores the token of a server in place of an older one; `None` forgets it. Whether there was an older one.
pub fn put(file: &Path, host: &str, port: u16, token: Option<&Token>) -> Result<bool, TrustedError> {
    let mut servers = list(file)?;
    let before = servers.len();
    servers.retain(|it| !(it.host.eq_ignore_ascii_case(host) && it.port == port));
    let replaced = servers.len() < before;
    if token.is_some() && servers.len() >= MAX_SERVERS {
        return Err(TrustedError::Full(file.to_owned()));
    }
    let line = |host: &str, port: u16, token: &Token| format!("{host} {port} {}\n", token.reveal());
    let mut text: String = servers.iter().map(|it| line(&it.host, it.port, &it.token)).collect();
    text.extend(token.map(|token| line(host, port, token)));
    if let Some(directory) = file.parent() {
        files::make_directory(directory)?;
    }
    files::write_whole(file, text.as_bytes(), 0o600)?;
    Ok(replaced)
}

/// The token of this host's own server: of a file, or of the state directory of this user, or of the system's server.
/// Also its file, and those of other servers of this host, whose tokens are others.
pub fn own_token(token_file: Option<&Path>) -> Result<(Token, Vec<PathBuf>), TrustedError> {
    if let Some(file) = token_file {
        return Ok((read_token(file)?, vec![file.to_owned()]));
    }
    let system = PathBuf::from("/var/lib/narrows");
    // Where root runs it, and where the packages' unit does as the user narrows.
    let services = [system.clone(), system.join("serve")];
    let places: Vec<PathBuf> =
        state::directory().into_iter().chain(services).map(|place| place.join("token")).collect();
    let (mut closed, mut found) = (false, Vec::<(Token, PathBuf)>::new());
    for place in &places {
        match read_token(place) {
            Err(TrustError::File(error)) if error.source.kind() == ErrorKind::NotFound => {}
            Err(TrustError::File(error)) if error.source.kind() == ErrorKind::PermissionDenied => closed = true,
            Err(_) if !found.is_empty() => {}
            token => {
                let token = token?;
                if found.iter().all(|(known, _)| known.fingerprint != token.fingerprint) {
                    found.push((token, place.clone()));
                }
            }
        }
    }
    let (tokens, files): (Vec<Token>, Vec<PathBuf>) = found.into_iter().unzip();
    match (tokens.into_iter().next(), closed) {
        (Some(token), _) => Ok((token, files)),
        (None, true) => Err(TrustedError::Closed),
        (None, false) => Err(TrustedError::NoServer(places.into_iter().next().unwrap_or(system))),
    }
}

/// Asks a host by ssh for the token of its server: `narrows trust --show` there.
pub fn fetch(server: &SshServer, remote_command: &str) -> Result<Token, TrustedError> {
    let port = server.port.map(|port| ["-p".to_owned(), port.to_string()]);
    let ask = format!("{remote_command} trust --show");
    let words: Vec<String> = ["-T".to_owned()]
        .into_iter()
        .chain(port.into_iter().flatten())
        .chain(["--".to_owned(), server.destination.clone(), ask])
        .collect();
    let command = format!("ssh {}", words.join(" "));
    let failed = |why: String| TrustedError::Ssh(command.clone(), why);
    // ssh may ask for a password, and what it says is for the user.
    let output = ssh_command("ssh").args(&words).stdin(Stdio::inherit()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| match error.kind() {
        ErrorKind::NotFound => failed("cannot start: ssh is not installed here".to_owned()),
        _ => failed(format!("cannot start: {error}")),
    })?;
    if !output.status.success() {
        return Err(failed(format!("failed with {}", output.status)));
    }
    let text = String::from_utf8_lossy(output.stdout.get(..4096).unwrap_or(&output.stdout)).into_owned();
    text.trim().parse().map_err(|error| failed(format!("printed something else than a token: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_wire::token::{Fingerprint, Secret};
    use std::os::unix::fs::PermissionsExt as _;

    fn token(byte: u8) -> Token {
        Token { fingerprint: Fingerprint([byte; 32]), secret: Secret::new([byte; 24]) }
    }

    #[test]
    fn a_token_is_stored_once_per_server_for_the_owner_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("state/trusted");
        assert!(token_of(&file, "db7", 5220).is_none() && list(&file).expect("none").is_empty());
        assert!(!put(&file, "db7", 5220, Some(&token(1))).expect("stored"));
        assert!(!put(&file, "fd00::1", 6000, Some(&token(2))).expect("stored"));
        assert!(put(&file, "DB7", 5220, Some(&token(3))).expect("replaced"));
        let found = |host, port| token_of(&file, host, port).map(|it| it.reveal());
        assert_eq!(found("db7", 5220), Some(token(3).reveal()));
        assert_eq!(found("fd00::1", 6000), Some(token(2).reveal()));
        assert_eq!(found("db7", 6000), None, "another port is another server");
        let mode = |path: &Path| path.metadata().expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().expect("a parent"))), (0o600, 0o700));
        assert!(put(&file, "db7", 5220, None).expect("forgotten"));
        assert!(!put(&file, "db7", 5220, None).expect("nothing to forget"));
        assert_eq!(list(&file).expect("one").len(), 1);
    }

    #[test]
    fn a_damaged_line_costs_itself_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("trusted");
        let text = format!("garbage\nx 99999 y\na 1 {}\n\u{1b}[2J 5 z\n", token(1).reveal());
        files::write_whole(&file, text.as_bytes(), 0o600).expect("written");
        assert_eq!(list(&file).expect("a list").iter().map(|it| it.host.as_str()).collect::<Vec<_>>(), ["a"]);
    }
}
