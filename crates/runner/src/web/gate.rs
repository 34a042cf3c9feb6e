//! Who may see the page: sessions that begin with a token and end by themselves, names that a reverse proxy gives, and how often a token may
//! be tried. Time is an argument.

use super::spec::Proxy;
use crate::lock;
use crate::server::rights::Caller;
use axum::http::{HeaderMap, HeaderName, header};
use narrows_wire::token::Secret;
use ring::digest::{SHA256, digest};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq as _;

/// A session that nobody uses ends after so long, and each after this.
const IDLE: Duration = Duration::from_secs(3_600);
const LASTS: Duration = Duration::from_secs(12 * 3_600);
/// With more, one of the same token ends, that which was unused the longest.
const SESSIONS_MAX: usize = 1_000;
/// Wrong tokens in a window: of one source, and of all.
const WRONG_OF_SOURCE: u32 = 5;
const WRONG_MAX: u32 = 100;
const WINDOW: Duration = Duration::from_secs(60);
/// Of what an action did no more is kept for the next page.
const SAID_CHARS: usize = 300;
/// The prefix binds it to this host and to TLS (RFC 6265bis, section 4.1.3.2).
const COOKIE: &str = "__Host-narrows";

/// Who shows a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) name: String,
    /// Whether it may change anything.
    pub(crate) may_change: bool,
}

/// Who a token is; asked again at each request, so that a revoked one ends its sessions.
pub(crate) type Find = Box<dyn Fn(&Secret) -> Option<Known> + Send + Sync>;

/// Who asks.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    pub(crate) known: Known,
    /// What its forms must show.
    pub(crate) key: String,
    pub(crate) has_session: bool,
    pub(crate) from: Option<IpAddr>,
    /// What the last action of its session did, for the page that is asked for.
    pub(crate) said: Option<String>,
}

impl Visitor {
    /// Whether a form shows the key of its session.
    pub(crate) fn is_own(&self, shown: &str) -> bool {
        self.has_session && bool::from(self.key.as_bytes().ct_eq(shown.as_bytes()))
    }
}

/// Why there is no session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denied {
    WrongToken,
    TooOften,
}

struct Session {
    /// Whose token it began with.
    name: String,
    secret: Secret,
    key: String,
    began: Instant,
    used: Instant,
    /// What its last action did, until a page shows it.
    said: Option<String>,
}

#[derive(Default)]
struct Table {
    /// By the digest of the cookie: a look-up tells nothing of it by its time.
    sessions: HashMap<[u8; 32], Session>,
    /// When the window began, wrong tokens in it, and those of each source.
    wrong: Option<(Instant, u32, HashMap<IpAddr, u32>)>,
}

pub(crate) struct Gate {
    find: Find,
    proxy: Option<(HeaderName, Vec<IpAddr>)>,
    table: Mutex<Table>,
    /// The name of its cookie: two pages at one host have no other way to tell theirs apart.
    cookie: String,
}

impl Gate {
    /// `of`: what the page is of.
    /// Errors: the header of the proxy has no valid name.
    pub(crate) fn new(of: &str, find: Find, proxy: Option<Proxy>) -> Result<Self, String> {
        let named = |proxy: Proxy| {
            let name = HeaderName::try_from(proxy.header.as_str());
            name.map(|name| (name, proxy.from)).map_err(|_| format!("invalid header `{}` of the proxy", proxy.header))
        };
        let cookie = digest_of(of)[..4].iter().fold(COOKIE.to_owned(), |name, byte| format!("{name}-{byte:02x}"));
        Ok(Self { find, proxy: proxy.map(named).transpose()?, table: Mutex::default(), cookie })
    }

    /// Begins a session with a token, or with its secret alone: what the browser is to keep, and whose token it is.
    pub(crate) fn enter(&self, token: &str, source: Option<IpAddr>, now: Instant) -> Result<(String, Known), Denied> {
        let mut table = lock(&self.table);
        let source = source.unwrap_or(IpAddr::from([0; 4]));
        if table.wrong.as_ref().is_some_and(|(since, ..)| now.saturating_duration_since(*since) >= WINDOW) {
            table.wrong = None;
        }
        let is_often = table
            .wrong
            .as_ref()
            .is_some_and(|(_, all, of)| *all >= WRONG_MAX || of.get(&source).is_some_and(|of| *of >= WRONG_OF_SOURCE));
        let secret = token.trim().rsplit('.').next().and_then(|it| Secret::from_bearer(&format!("Bearer {it}")));
        let (Some((secret, known)), Ok(cookie), Ok(key)) = (
            secret.and_then(|secret| (self.find)(&secret).map(|known| (secret, known))),
            narrows_sys::random::bytes().map(Secret::new),
            narrows_sys::random::bytes().map(Secret::new),
        ) else {
            // Who shows the right one is let in all the same: others behind the same proxy cannot keep it out.
            if is_often {
                return Err(Denied::TooOften);
            }
            let (_, all, of) = table.wrong.get_or_insert_with(|| (now, 0, HashMap::new()));
            *all += 1;
            *of.entry(source).or_default() += 1;
            return Err(Denied::WrongToken);
        };
        table.sessions.retain(|_, it| it.lives(now));
        if table.sessions.len() >= SESSIONS_MAX
            && let Some(oldest) =
                table.sessions.iter().min_by_key(|(_, it)| (it.name != known.name, it.used)).map(|(id, _)| *id)
        {
            table.sessions.remove(&oldest);
        }
        let session =
            Session { name: known.name.clone(), secret, key: key.reveal(), began: now, used: now, said: None };
        table.sessions.insert(digest_of(&cookie.reveal()), session);
        let lasts = LASTS.as_secs();
        let name = &self.cookie;
        let cookie = format!("{name}={}; Path=/; Max-Age={lasts}; Secure; HttpOnly; SameSite=Strict", cookie.reveal());
        Ok((cookie, known))
    }

    /// Whether the session of a request goes on; that it is asked for does not use it.
    pub(crate) fn lives(&self, headers: &HeaderMap, now: Instant) -> bool {
        let Some(id) = cookie(headers, &self.cookie).map(digest_of) else { return false };
        let table = lock(&self.table);
        table.sessions.get(&id).is_some_and(|it| it.lives(now) && (self.find)(&it.secret).is_some())
    }

    /// Who a request is from.
    pub(crate) fn visitor(&self, headers: &HeaderMap, caller: &Caller, now: Instant) -> Option<Visitor> {
        let from = caller.address;
        if let Some(id) = cookie(headers, &self.cookie).map(digest_of) {
            let mut table = lock(&self.table);
            let known = table.sessions.get_mut(&id).filter(|it| it.lives(now)).and_then(|session| {
                let known = (self.find)(&session.secret)?;
                session.used = now;
                Some(Visitor { known, key: session.key.clone(), has_session: true, from, said: None })
            });
            if known.is_some() {
                return known;
            }
            table.sessions.remove(&id);
        }
        let (name, proxies) = self.proxy.as_ref()?;
        let name = headers.get(name).filter(|_| from.is_some_and(|from| proxies.contains(&from)))?;
        let name = name.to_str().ok().map(str::trim).filter(|name| !name.is_empty() && name.len() <= 200)?;
        // Another page could send such a request with the proxy's cookie: it is for reading.
        let known = Known { name: name.to_owned(), may_change: false };
        Some(Visitor { known, key: String::new(), has_session: false, from, said: None })
    }

    /// Keeps what an action did for the next page of its session: no address makes a page say anything.
    pub(crate) fn say(&self, headers: &HeaderMap, words: &str) {
        let Some(id) = cookie(headers, &self.cookie).map(digest_of) else { return };
        if let Some(session) = lock(&self.table).sessions.get_mut(&id) {
            session.said = Some(words.chars().take(SAID_CHARS).collect()).filter(|it: &String| !it.is_empty());
        }
    }

    /// What the last action of this session did, where no page has shown it yet.
    pub(crate) fn said(&self, headers: &HeaderMap) -> Option<String> {
        let id = digest_of(cookie(headers, &self.cookie)?);
        lock(&self.table).sessions.get_mut(&id)?.said.take()
    }

    /// Ends the session of a request; what the browser is to forget.
    pub(crate) fn leave(&self, headers: &HeaderMap) -> String {
        if let Some(id) = cookie(headers, &self.cookie).map(digest_of) {
            lock(&self.table).sessions.remove(&id);
        }
        format!("{}=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Strict", self.cookie)
    }
}

impl Session {
    fn lives(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.used) < IDLE && now.saturating_duration_since(self.began) < LASTS
    }
}

fn cookie<'a>(headers: &'a HeaderMap, named: &str) -> Option<&'a str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|it| it.to_str().ok()).flat_map(|it| it.split(';'));
    all.filter_map(|it| it.trim().split_once('=')).find(|(name, _)| *name == named).map(|(_, value)| value)
}

fn digest_of(word: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, word.as_bytes()).as_ref());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn caller(last: u8) -> Caller {
        Caller { address: Some(IpAddr::from([192, 0, 2, last])), pending: None }
    }

    fn gate(valid: Arc<AtomicBool>) -> Gate {
        let find = move |secret: &Secret| {
            let is = secret.bytes() == &[7; 24] && valid.load(Ordering::Relaxed);
            is.then(|| Known { name: "users".to_owned(), may_change: true })
        };
        let proxy = Proxy { header: "x-user".to_owned(), from: vec![IpAddr::from([192, 0, 2, 9])] };
        Gate::new("a site", Box::new(find), Some(proxy)).expect("a gate")
    }

    fn token() -> String {
        format!("narrows1.x.{}", Secret::new([7; 24]).reveal())
    }

    fn with(cookie: &str) -> HeaderMap {
        let value = cookie.split(';').next().unwrap_or_default();
        HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_str(&format!("a=b; {value}")).expect("a header"))])
    }

    #[test]
    fn a_session_ends_when_it_is_idle_too_long_old_left_or_its_token_revoked() {
        let (valid, now) = (Arc::new(AtomicBool::new(true)), narrows_sys::clock::now());
        let gate = gate(valid.clone());
        let enter = || with(&gate.enter(&token(), None, now).expect("a session").0);
        let is = |headers: &HeaderMap, after: Duration| gate.visitor(headers, &caller(1), now + after).is_some();
        let headers = enter();
        assert!(is(&headers, IDLE / 2) && is(&headers, IDLE) && !is(&headers, IDLE * 3) && !is(&headers, IDLE));
        let headers = enter();
        assert!((1..20).all(|nth| is(&headers, IDLE * nth / 2)) && !is(&headers, LASTS));
        let headers = enter();
        assert!(gate.leave(&headers).contains("Max-Age=0") && !is(&headers, Duration::ZERO));
        let headers = enter();
        valid.store(false, Ordering::Relaxed);
        assert!(!is(&headers, Duration::ZERO));
    }

    #[test]
    fn a_cookie_is_for_this_host_over_tls_and_not_for_scripts() {
        let gate = gate(Arc::new(AtomicBool::new(true)));
        let (cookie, known) = gate.enter(&token(), None, narrows_sys::clock::now()).expect("one");
        assert_eq!(known.name, "users");
        for word in ["__Host-", "; Path=/;", "; Secure", "; HttpOnly", "; SameSite=Strict"] {
            assert!(cookie.contains(word), "{cookie}");
        }
    }

    #[test]
    fn wrong_tokens_are_few_in_a_minute_and_harm_no_other_source() {
        let (gate, now) = (gate(Arc::new(AtomicBool::new(true))), narrows_sys::clock::now());
        let tries = |last: u8, at: Instant| gate.enter("x", caller(last).address, at).map(|_| ());
        for _ in 0..WRONG_OF_SOURCE {
            assert_eq!(tries(1, now), Err(Denied::WrongToken));
        }
        assert_eq!((tries(1, now), tries(2, now)), (Err(Denied::TooOften), Err(Denied::WrongToken)));
        assert!(gate.enter(&token(), caller(1).address, now).is_ok(), "nobody keeps the right token out");
        assert!(gate.enter(&token(), caller(3).address, now).is_ok());
        assert!(gate.enter(&token(), caller(1).address, now + WINDOW).is_ok());
    }

    #[test]
    fn only_the_proxy_may_name_a_reader_who_changes_nothing() {
        let (gate, now) = (gate(Arc::new(AtomicBool::new(true))), narrows_sys::clock::now());
        let headers = HeaderMap::from_iter([(HeaderName::from_static("x-user"), HeaderValue::from_static("ada"))]);
        assert!(gate.visitor(&headers, &caller(1), now).is_none());
        let visitor = gate.visitor(&headers, &caller(9), now).expect("a reader");
        assert_eq!((visitor.known.name.as_str(), visitor.known.may_change, visitor.is_own("")), ("ada", false, false));
    }
}
