//! The token: one string that identifies both sides. The client pins the server's key by its fingerprint and authenticates
//! with the secret.
//!
//! `narrows1.FINGERPRINT.SECRET`, both parts in base64url without padding (RFC 4648, section 5).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// SHA-256 over the server's certificate in DER.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub [u8; 32]);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

/// The secret part. It has no `==`: holders of two secrets compare them in constant time.
#[derive(Clone)]
pub struct Secret([u8; 24]);

impl Secret {
    /// From random bytes.
    pub const fn new(bytes: [u8; 24]) -> Self {
        Self(bytes)
    }

    /// The raw bytes.
    pub const fn bytes(&self) -> &[u8; 24] {
        &self.0
    }

    /// Its form in a token and in `Authorization: Bearer`.
    pub fn reveal(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }

    /// Parses the secret of an `Authorization` header.
    pub fn from_bearer(header: &str) -> Option<Self> {
        let (scheme, word) = header.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("bearer") || word.len() > 64 {
            return None;
        }
        Some(Self(URL_SAFE_NO_PAD.decode(word.trim()).ok()?.try_into().ok()?))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[derive(Debug, Clone)]
pub struct Token {
    /// Of the server's key.
    pub fingerprint: Fingerprint,
    pub secret: Secret,
}

/// An invalid token. The string itself is never repeated: it may be another system's secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("invalid token: a token is one line that starts with `{PREFIX}.`, as `narrows serve` writes it")]
pub struct NoToken;

const PREFIX: &str = "narrows1";

impl Token {
    /// Another one of the same server.
    pub fn with_secret(&self, secret: &str) -> Result<Self, NoToken> {
        format!("{PREFIX}.{}.{secret}", self.fingerprint).parse()
    }

    pub fn reveal(&self) -> String {
        format!("{PREFIX}.{}.{}", self.fingerprint, self.secret.reveal())
    }
}

impl FromStr for Token {
    type Err = NoToken;

    fn from_str(text: &str) -> Result<Self, NoToken> {
        let mut parts = text.trim().split('.');
        let (Some(PREFIX), Some(fingerprint), Some(secret), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(NoToken);
        };
        // The lengths first, so that a file of any size costs nothing.
        if fingerprint.len() != 43 || secret.len() != 32 {
            return Err(NoToken);
        }
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| NoToken);
        Ok(Self {
            fingerprint: Fingerprint(decode(fingerprint)?.try_into().map_err(|_| NoToken)?),
            secret: Secret(decode(secret)?.try_into().map_err(|_| NoToken)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_token_round_trips(fingerprint in any::<[u8; 32]>(), secret in any::<[u8; 24]>()) {
            let token = Token { fingerprint: Fingerprint(fingerprint), secret: Secret::new(secret) };
            let back: Token = format!(" {}\n", token.reveal()).parse().expect("a token");
            prop_assert_eq!(back.fingerprint, token.fingerprint);
            prop_assert_eq!(back.secret.bytes(), token.secret.bytes());
            let bearer = Secret::from_bearer(&format!("Bearer {}", token.secret.reveal())).expect("a bearer");
            prop_assert_eq!(bearer.bytes(), &secret);
        }

        #[test]
        fn arbitrary_text_is_no_token(text in "\\PC{0,120}") {
            prop_assert!(text.parse::<Token>().is_err());
        }
    }

    #[test]
    fn debug_text_holds_no_secret() {
        let token = Token { fingerprint: Fingerprint([1; 32]), secret: Secret::new([2; 24]) };
        assert!(!format!("{token:?}").contains(&token.secret.reveal()));
    }
}
