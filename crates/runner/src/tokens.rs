//! The named tokens of a server: each has rights, a rate limit and an end, and can be revoked alone. They are in the file `tokens` of the
//! state directory, of which only the SHA-256 of each secret is kept.

use crate::lock;
use crate::trust::{self, TrustError};
use narrows_model::words::{date, units};
use narrows_sys::{clock, files, random};
use narrows_wire::Token;
use narrows_wire::token::Secret;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use subtle::{Choice, ConstantTimeEq as _};
use thiserror::Error;

/// Named tokens of one server at most.
const MAX_TOKENS: usize = 1_000;
/// A larger file is not read.
const MAX_FILE_BYTES: u64 = 1 << 20;
const MAX_NAME: usize = 32;
/// The slowest rate: the least that a load of one stream is paced to.
const MIN_RATE_BPS: u64 = 8_000;
/// What the audit log calls clients without a named token.
pub(crate) const RESERVED: [&str; 4] = ["default", "guest", "stdio", "stranger"];

/// What a token may allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Allowed {
    /// Load on the path.
    Measure,
    /// Changes of the host, if the server allows them (`--allow-tune`).
    Tune,
    /// Raw frames, on the interfaces of the server (`--frames`).
    Frames,
}

impl Allowed {
    pub const ALL: [Self; 3] = [Self::Measure, Self::Tune, Self::Frames];

    /// The word on the command line and in the file.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Measure => "measure",
            Self::Tune => "tune",
            Self::Frames => "frames",
        }
    }
}

/// A named token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    pub name: String,
    pub allow: BTreeSet<Allowed>,
    /// The most that a load of its holder may send or be sent, in bits per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// When it ends, in seconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_unix_s: Option<u64>,
    /// SHA-256 of the secret, in hexadecimal.
    digest: String,
}

impl Named {
    /// Whether its time is over.
    pub fn has_expired(&self, now_unix_s: u64) -> bool {
        self.until_unix_s.is_some_and(|until| now_unix_s >= until)
    }

    /// Its rights in words: `measure,tune at most 1.00 Gbit/s until 2099-12-31T00:00:00Z`.
    pub fn rights(&self) -> String {
        let allow: Vec<_> = self.allow.iter().map(|allowed| allowed.word()).collect();
        let rate = self.rate_bps.map_or_else(String::new, |bps| format!(" at most {}", units::bps(bps as f64)));
        let until = self.until_unix_s.map_or_else(String::new, |until| format!(" until {}", date::utc(until)));
        format!("{}{rate}{until}", allow.join(","))
    }
}

/// Why a token could not be made, listed or revoked.
#[derive(Debug, Error)]
pub enum TokensError {
    /// A name that is none.
    #[error(
        "invalid token name `{0}`: use 1 to {MAX_NAME} letters, digits, `.`, `_` and `-`, the first a letter or digit"
    )]
    Name(String),
    /// A name that the server uses itself.
    #[error("invalid token name `{0}`: the audit log uses it for clients without a named token; choose another name")]
    Reserved(String),
    /// There is one already.
    #[error("cannot add token `{0}`: it exists; revoke it first, or choose another name")]
    Exists(String),
    #[error("cannot revoke token `{0}`: there is none with this name; `narrows serve token list` lists them")]
    Unknown(String),
    /// An end that is none.
    #[error("invalid date `{0}`: write 2030-12-31, 2030-12-31T23:59:59Z (RFC 3339), or a duration from now, as 30d")]
    Until(String),
    /// An end in the past.
    #[error("invalid date `{0}`: it is in the past")]
    Past(String),
    #[error("cannot add a token that allows nothing; use --allow")]
    Nothing,
    /// A rate below the least.
    #[error("invalid rate {0} bit/s: the minimum is {MIN_RATE_BPS} bit/s")]
    Rate(u64),
    /// Frames are not bounded by a rate.
    #[error("cannot limit raw frames to a rate; drop --rate, or use --allow without frames")]
    FramesRate,
    #[error("cannot add another token: {} holds {MAX_TOKENS}; revoke old ones", .0.display())]
    Full(PathBuf),
    /// The file is damaged.
    #[error("cannot read {path}: {1}; remove it to revoke all named tokens", path = .0.display())]
    Damaged(PathBuf, String),
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] narrows_sys::Error),
}

/// The time by this host's clock, in seconds since the Unix epoch.
pub fn now_unix_s() -> u64 {
    clock::unix_us() / 1_000_000
}

/// The end that a user means: an RFC 3339 date, or a duration from now, in seconds since the Unix epoch.
pub fn parse_until(word: &str, now_unix_s: u64) -> Result<u64, TokensError> {
    let end = date::parse(word).or_else(|| {
        // A bare number would be seconds, which nobody means here.
        let duration =
            word.ends_with(|c: char| c.is_ascii_alphabetic()).then(|| units::parse_duration(word).ok())??;
        Some(now_unix_s + duration.as_secs())
    });
    let end = end.ok_or_else(|| TokensError::Until(shown(word)))?;
    if end > now_unix_s { Ok(end) } else { Err(TokensError::Past(shown(word))) }
}

fn shown(word: &str) -> String {
    word.chars().take(MAX_NAME + 1).collect::<String>().escape_default().to_string()
}

fn check_name(name: &str) -> Result<(), TokensError> {
    let sound = (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
        && name.starts_with(|c: char| c.is_ascii_alphanumeric());
    match sound {
        true if RESERVED.contains(&name) => Err(TokensError::Reserved(name.to_owned())),
        true => Ok(()),
        false => Err(TokensError::Name(shown(name))),
    }
}

fn digest(secret: &Secret) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, secret.bytes());
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn file(state: &Path) -> PathBuf {
    state.join("tokens")
}

/// The file of the named tokens; empty where there is none.
pub(crate) fn read(state: &Path) -> Result<Vec<u8>, TokensError> {
    let file = file(state);
    if files::exists(&file) { Ok(files::read(&file, MAX_FILE_BYTES)?) } else { Ok(Vec::new()) }
}

/// The named tokens of a state directory, sorted by name; none where there is no file.
pub fn list(state: &Path) -> Result<Vec<Named>, TokensError> {
    parsed(file(state), &read(state)?)
}

fn parsed(file: PathBuf, bytes: &[u8]) -> Result<Vec<Named>, TokensError> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let tokens: Vec<Named> =
        serde_json::from_slice(bytes).map_err(|error| TokensError::Damaged(file.clone(), error.to_string()))?;
    if let Some(bad) = tokens.iter().find(|token| check_name(&token.name).is_err()) {
        return Err(TokensError::Damaged(file, format!("invalid token name `{}`", shown(&bad.name))));
    }
    Ok(tokens)
}

fn store(state: &Path, tokens: &mut [Named]) -> Result<(), TokensError> {
    tokens.sort_by(|one, other| one.name.cmp(&other.name));
    let file = file(state);
    let mut bytes =
        serde_json::to_vec_pretty(tokens).map_err(|error| TokensError::Damaged(file.clone(), error.to_string()))?;
    bytes.push(b'\n');
    Ok(files::write_whole(&file, &bytes, 0o600)?)
}

/// Two commands at once would lose the change of one.
fn exclusive(state: &Path) -> Result<files::Locked, TokensError> {
    files::make_directory(state)?;
    Ok(files::lock(&state.join("tokens.lock"))?)
}

/// Makes a token, and the server's key if there is none yet. The secret is in the result alone.
pub fn add(
    state: &Path,
    name: &str,
    allow: BTreeSet<Allowed>,
    rate_bps: Option<u64>,
    until_unix_s: Option<u64>,
) -> Result<Token, TokensError> {
    check_name(name)?;
    if allow.is_empty() {
        return Err(TokensError::Nothing);
    }
    if let Some(slow) = rate_bps.filter(|bps| *bps < MIN_RATE_BPS) {
        return Err(TokensError::Rate(slow));
    }
    if rate_bps.is_some() && allow.contains(&Allowed::Frames) {
        return Err(TokensError::FramesRate);
    }
    let _lock = exclusive(state)?;
    let mut tokens = list(state)?;
    if tokens.iter().any(|token| token.name == name) {
        return Err(TokensError::Exists(name.to_owned()));
    }
    if tokens.len() >= MAX_TOKENS {
        return Err(TokensError::Full(file(state)));
    }
    let token = Token { fingerprint: trust::server_fingerprint(state)?, secret: Secret::new(random::bytes()?) };
    tokens.push(Named { name: name.to_owned(), allow, rate_bps, until_unix_s, digest: digest(&token.secret) });
    store(state, &mut tokens)?;
    Ok(token)
}

/// Removes a token. A running server takes it no more, and ends the sessions of its holder.
pub fn revoke(state: &Path, name: &str) -> Result<(), TokensError> {
    let _lock = exclusive(state)?;
    let mut tokens = list(state)?;
    let before = tokens.len();
    tokens.retain(|token| token.name != name);
    if tokens.len() == before {
        return Err(TokensError::Unknown(shown(name)));
    }
    store(state, &mut tokens)
}

/// Reads the file: the process that speaks to the network may not do it itself.
pub(crate) type Source = Box<dyn Fn() -> Result<Vec<u8>, String> + Send + Sync>;

/// Maximum age of a server's token list: strangers who try secrets must not keep it busy rereading the file.
pub(crate) const FRESH: Duration = Duration::from_millis(20);
/// How old it may be where the file cannot be read: a helper that is late revokes nobody.
const KEPT: Duration = Duration::from_secs(1);
/// For a reading of the file, where the last one is as good for the time being.
pub(crate) const MOMENT: Duration = Duration::from_millis(100);

/// The named tokens as a running server sees them. A file that cannot be read allows nobody.
pub(crate) struct Tokens {
    file: PathBuf,
    source: Source,
    fresh: Duration,
    known: Mutex<Known>,
    /// Of whoever reads the file.
    turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug)]
struct Known {
    looked: Option<Instant>,
    /// When the file could be read last.
    read: Option<Instant>,
    bytes: Result<Vec<u8>, String>,
    tokens: Vec<Arc<Named>>,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Tokens {
    /// Those of a state directory, whose file `source` reads, not more often than once in `fresh`.
    pub(crate) fn new(state: &Path, source: Source, fresh: Duration) -> Self {
        let known = Known { looked: None, read: None, bytes: Ok(Vec::new()), tokens: Vec::new() };
        Self { file: file(state), source, fresh, known: Mutex::new(known), turn: Arc::default() }
    }

    /// Reads the file again if what is known is old, on a thread of its own, and waits for it as long as `patience`.
    pub(crate) async fn renew(self: &Arc<Self>, patience: Duration) {
        let renew = async {
            let turn = self.turn.clone().lock_owned().await;
            if lock(&self.known).looked.is_none_or(|looked| looked.elapsed() >= self.fresh) {
                let reading = self.clone();
                let read = move || {
                    reading.read();
                    drop(turn);
                };
                let _ = tokio::task::spawn_blocking(read).await;
            }
        };
        let _ = tokio::time::timeout(patience, renew).await;
    }

    /// Reads the file. Blocks.
    fn read(&self) {
        let bytes = (self.source)();
        let mut known = lock(&self.known);
        let now = clock::now();
        known.looked = Some(now);
        match bytes {
            Ok(_) => known.read = Some(now),
            Err(_) if known.read.is_some_and(|read| now.duration_since(read) < KEPT) => return,
            Err(_) => {}
        }
        if bytes != known.bytes {
            let tokens = bytes.clone().and_then(|bytes| parsed(self.file.clone(), &bytes).map_err(|e| e.to_string()));
            let tokens = tokens.unwrap_or_else(|why| {
                crate::say(&format!("{why}; no named token is accepted"));
                Vec::new()
            });
            known.tokens = tokens.into_iter().map(Arc::new).collect();
            known.bytes = bytes;
        }
    }

    /// The token of a secret. All are compared, in a time that does not tell which it is.
    pub(crate) fn find(&self, secret: &Secret) -> Option<Arc<Named>> {
        let shown = digest(secret);
        let mut found = None;
        for token in &lock(&self.known).tokens {
            let same: Choice = token.digest.as_bytes().ct_eq(shown.as_bytes());
            if same.into() {
                found = Some(token.clone());
            }
        }
        found
    }

    /// Why a token lets its holder in no more; `None`: it still does.
    pub(crate) fn ended(&self, token: &Named) -> Option<&'static str> {
        let known = lock(&self.known);
        if !known.tokens.iter().any(|other| **other == *token) {
            let why = if known.bytes.is_ok() { "its token was revoked" } else { "the named tokens cannot be read" };
            return Some(why);
        }
        token.has_expired(now_unix_s()).then_some("its token has expired")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    const NOW: u64 = 1_800_000_000;

    /// As a server sees them that looks each time.
    struct Live(Tokens);

    impl Live {
        fn find(&self, secret: &Secret) -> Option<Arc<Named>> {
            self.0.read();
            self.0.find(secret)
        }

        fn ended(&self, token: &Named) -> Option<&'static str> {
            self.0.read();
            self.0.ended(token)
        }
    }

    fn live(state: &Path) -> Live {
        let own = state.to_owned();
        Live(Tokens::new(state, Box::new(move || read(&own).map_err(|error| error.to_string())), Duration::ZERO))
    }

    #[test]
    fn a_file_that_cannot_be_read_for_a_moment_revokes_nobody() {
        let state = tempfile::tempdir().expect("a directory");
        let token = add(state.path(), "ci", allow(&[Allowed::Measure]), None, None).expect("made");
        let (own, fails) = (state.path().to_owned(), Arc::new(std::sync::atomic::AtomicBool::new(false)));
        let failing = fails.clone();
        let source = move || match failing.load(std::sync::atomic::Ordering::Relaxed) {
            true => Err("the helper is busy".to_owned()),
            false => read(&own).map_err(|error| error.to_string()),
        };
        let live = Live(Tokens::new(state.path(), Box::new(source), Duration::ZERO));
        let named = live.find(&token.secret).expect("found");
        fails.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(live.ended(&named), None);
        let long_ago = clock::now().checked_sub(KEPT).expect("the host runs for longer");
        lock(&live.0.known).read = Some(long_ago);
        assert_eq!(live.ended(&named), Some("the named tokens cannot be read"));
        assert!(live.find(&token.secret).is_none());
        fails.store(false, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(live.ended(&named), None);
    }

    fn allow(words: &[Allowed]) -> BTreeSet<Allowed> {
        words.iter().copied().collect()
    }

    #[test]
    fn a_token_is_made_listed_found_and_revoked() {
        let state = tempfile::tempdir().expect("a directory");
        let live = live(state.path());
        let token = add(state.path(), "ci", allow(&[Allowed::Measure]), Some(1_000_000_000), Some(4_102_444_799))
            .expect("made");
        let other = add(state.path(), "admin", allow(&Allowed::ALL), None, None).expect("made");
        assert_eq!(token.fingerprint, other.fingerprint);
        let named = live.find(&token.secret).expect("found");
        assert_eq!(named.rights(), "measure at most 1.00 Gbit/s until 2099-12-31T23:59:59Z");
        assert_eq!(live.find(&other.secret).expect("found").name, "admin");
        assert!(live.find(&Secret::new([7; 24])).is_none());
        let names: Vec<_> = list(state.path()).expect("a list").into_iter().map(|it| it.name).collect();
        assert_eq!(names, ["admin", "ci"]);
        let text = narrows_sys::files::read_text(&file(state.path())).expect("there");
        assert!(!text.contains(&token.secret.reveal()), "the secret is not stored");
        assert_eq!(file(state.path()).metadata().expect("there").permissions().mode() & 0o777, 0o600);
        assert_eq!(live.ended(&named), None);
        revoke(state.path(), "ci").expect("revoked");
        assert_eq!(live.ended(&named), Some("its token was revoked"));
        assert!(live.find(&token.secret).is_none() && live.find(&other.secret).is_some());
        // Of the same name, but another.
        add(state.path(), "ci", allow(&[Allowed::Measure]), Some(1_000_000_000), Some(4_102_444_799)).expect("made");
        assert_eq!(live.ended(&named), Some("its token was revoked"));
    }

    #[test]
    fn an_expired_token_and_a_damaged_file_let_nobody_in() {
        let state = tempfile::tempdir().expect("a directory");
        let live = live(state.path());
        let token = add(state.path(), "old", allow(&[Allowed::Tune]), None, Some(1)).expect("made");
        let named = live.find(&token.secret).expect("found");
        assert_eq!(live.ended(&named), Some("its token has expired"));
        assert!(named.has_expired(1) && !named.has_expired(0));
        narrows_sys::files::write_whole(&file(state.path()), b"[{}", 0o600).expect("written");
        assert!(live.find(&token.secret).is_none());
        let error = list(state.path()).expect_err("damaged").to_string();
        assert!(error.contains("tokens: ") && error.contains("remove it to revoke all"), "{error}");
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let state = tempfile::tempdir().expect("a directory");
        let refused = |name: &str, words: &[Allowed], rate| {
            add(state.path(), name, allow(words), rate, None).expect_err("refused").to_string()
        };
        let measure = [Allowed::Measure];
        for name in ["", "-x", "a b", "ü", "../x", &"a".repeat(33), "a\u{1b}[2J"] {
            assert!(refused(name, &measure, None).starts_with("invalid token name `"), "{name}");
        }
        assert!(refused("guest", &measure, None).contains("the audit log uses it"));
        assert!(refused("x", &[], None).contains("allows nothing"));
        assert!(refused("x", &measure, Some(1)).contains("the minimum is 8000 bit/s"));
        assert!(refused("x", &[Allowed::Frames], Some(1 << 30)).contains("cannot limit raw frames"));
        add(state.path(), "x", allow(&measure), None, None).expect("made");
        assert!(refused("x", &measure, None).contains("it exists; revoke it first"));
        assert!(revoke(state.path(), "y").expect_err("none").to_string().contains("there is none with this name"));
    }

    #[test]
    fn an_end_is_a_date_or_a_duration() {
        assert_eq!(parse_until("30d", NOW).expect("a duration"), NOW + 30 * 86_400);
        assert_eq!(parse_until("12h", NOW).expect("a duration"), NOW + 12 * 3_600);
        assert_eq!(parse_until("2099-12-31T23:59:59Z", NOW).expect("a date"), 4_102_444_799);
        for word in ["", "soon", "30", "2099-13-01", "30x"] {
            assert!(parse_until(word, NOW).expect_err("none").to_string().starts_with("invalid date"), "{word}");
        }
        for word in ["2001-01-01", "0s"] {
            assert!(parse_until(word, NOW).expect_err("past").to_string().ends_with("it is in the past"), "{word}");
        }
    }
}
