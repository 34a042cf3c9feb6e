//! What comes and goes on the control connection: the cookie, states of one byte, JSON with its length, and error codes.
//!
//! States and JSON arrive in any pieces, and several in one segment: [`Inbox`] keeps what is not read yet.

use serde::Serialize;

/// Bytes of a cookie: 36 characters and a NUL.
pub const COOKIE: usize = 37;
/// The characters of a cookie.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// What identifies a test and its data connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cookie([u8; COOKIE]);

impl Cookie {
    /// A cookie of random bytes.
    pub fn of(random: [u8; COOKIE - 1]) -> Self {
        let mut bytes = [0; COOKIE];
        for (byte, random) in bytes.iter_mut().zip(random) {
            *byte = ALPHABET[usize::from(random % 32)];
        }
        Self(bytes)
    }

    /// Reads a cookie; `None`: these bytes are none. Older clients use other printable characters.
    pub fn decode(bytes: &[u8; COOKIE]) -> Option<Self> {
        let (end, text) = bytes.split_last()?;
        (*end == 0 && text.iter().all(u8::is_ascii_graphic)).then_some(Self(*bytes))
    }

    /// As it is sent.
    pub const fn bytes(&self) -> &[u8; COOKIE] {
        &self.0
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0[..COOKIE - 1]).into_owned()
    }
}

/// The states of a test, as one end tells the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The streams are open.
    TestStart = 1,
    TestRunning = 2,
    /// The client is done.
    TestEnd = 4,
    /// The server expects parameters.
    ParamExchange = 9,
    /// The server expects the streams.
    CreateStreams = 10,
    /// The server gives up.
    ServerTerminate = 11,
    /// The client gives up.
    ClientTerminate = 12,
    ExchangeResults = 13,
    /// The results are complete.
    DisplayResults = 14,
    /// The server is ready.
    IperfStart = 15,
    IperfDone = 16,
    /// The server is busy.
    AccessDenied = -1,
    ServerError = -2,
}

impl State {
    const ALL: [Self; 13] = [
        Self::TestStart,
        Self::TestRunning,
        Self::TestEnd,
        Self::ParamExchange,
        Self::CreateStreams,
        Self::ServerTerminate,
        Self::ClientTerminate,
        Self::ExchangeResults,
        Self::DisplayResults,
        Self::IperfStart,
        Self::IperfDone,
        Self::AccessDenied,
        Self::ServerError,
    ];

    /// As it is sent.
    pub const fn byte(self) -> u8 {
        (self as i8).cast_unsigned()
    }

    /// Reads a state; `None`: there is no such state.
    pub fn of(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.byte() == byte)
    }
}

/// A message as JSON with its length before it.
/// Errors: the value cannot be written, such as a number that is not finite.
pub fn json(value: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let text = serde_json::to_vec(value)?;
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    Ok([&length.to_be_bytes(), text.as_slice()].concat())
}

/// Bytes that came and are not read yet.
#[derive(Debug, Default)]
pub struct Inbox(Vec<u8>);

impl Inbox {
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let taken = *self.0.first_chunk::<N>()?;
        self.0.drain(..N);
        Some(taken)
    }

    /// The next byte, which should be a [`State`]; `None`: it has not come.
    pub fn byte(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    /// The cookie's bytes.
    pub fn cookie(&mut self) -> Option<[u8; COOKIE]> {
        self.take()
    }

    /// The two codes after [`State::ServerError`]: iperf3's and the operating system's. `ended`: nothing more comes; old servers leave
    /// out the second one.
    pub fn codes(&mut self, ended: bool) -> Option<(i32, i32)> {
        let both = self
            .take::<8>()
            .map(|[a, b, c, d, e, f, g, h]| (i32::from_be_bytes([a, b, c, d]), i32::from_be_bytes([e, f, g, h])));
        both.or_else(|| ended.then(|| self.take::<4>()).flatten().map(|code| (i32::from_be_bytes(code), 0)))
    }

    /// The next JSON, if all of it has come.
    /// Errors: its length, if it is above `most`.
    pub fn json(&mut self, most: usize) -> Result<Option<Vec<u8>>, usize> {
        let Some(length) = self.0.first_chunk::<4>() else { return Ok(None) };
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        if length > most {
            return Err(length);
        }
        if self.0.len() < 4 + length {
            return Ok(None);
        }
        let text = self.0[4..4 + length].to_vec();
        self.0.drain(..4 + length);
        Ok(Some(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn states_are_signed_bytes() {
        assert_eq!([State::TestStart, State::AccessDenied, State::ServerError].map(State::byte), [1, 0xFF, 0xFE]);
        assert!(State::ALL.into_iter().all(|state| State::of(state.byte()) == Some(state)));
        assert_eq!(State::of(3), None);
    }

    #[test]
    fn a_cookie_is_printable_and_ends_with_nul() {
        let cookie = Cookie::of(std::array::from_fn(|at| at as u8 * 7));
        assert_eq!(Cookie::decode(cookie.bytes()), Some(cookie));
        assert_eq!((cookie.text().len(), cookie.bytes()[36]), (36, 0));
        assert_eq!(Cookie::decode(&[b'a'; COOKIE]), None);
        assert_eq!(Cookie::decode(&[0; COOKIE]), None);
    }

    #[test]
    fn old_servers_send_one_code() {
        let mut inbox = Inbox::default();
        inbox.push(&[0, 0, 0, 142]);
        assert_eq!(inbox.codes(false), None);
        assert_eq!(inbox.codes(true), Some((142, 0)));
        inbox.push(&[0, 0, 0, 134, 0, 0, 0, 2]);
        assert_eq!(inbox.codes(false), Some((134, 2)));
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(text in "[a-z]{0,60}", cut in 1_usize..9) {
            let sent = [&[9_u8][..], &json(&text).expect("text"), &[1, 2]].concat();
            let mut inbox = Inbox::default();
            let (mut state, mut got) = (None, None);
            for piece in sent.chunks(cut) {
                inbox.push(piece);
                state = state.or_else(|| inbox.byte());
                if state.is_some() && got.is_none() {
                    got = inbox.json(100).expect("short");
                }
            }
            prop_assert_eq!(state, Some(9));
            prop_assert_eq!(serde_json::from_slice::<String>(&got.expect("whole")).expect("JSON"), text);
            prop_assert_eq!((inbox.byte(), inbox.byte(), inbox.byte()), (Some(1), Some(2), None));
        }

        #[test]
        fn any_bytes_are_bounded(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut inbox = Inbox::default();
            inbox.push(&bytes);
            if let Ok(Some(text)) = inbox.json(100) {
                prop_assert!(text.len() <= 100);
            }
        }
    }
}
