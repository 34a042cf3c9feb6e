//! What a refused request gets: a status and a [`Refusal`] as JSON.

use crate::VERSION;
use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use narrows_wire::PROTOCOL;
use narrows_wire::api::{Reason, Refusal};

/// A request that is not done. Its answer carries it as an extension, for the audit log.
#[derive(Debug, Clone)]
pub(crate) struct Refused {
    pub(super) reason: Reason,
    pub(super) message: String,
}

impl Refused {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }

    /// What the client is told.
    pub(crate) fn sentence(&self) -> &str {
        &self.message
    }

    pub(crate) fn not_found(what: &str) -> Self {
        Self::new(Reason::NotFound, format!("unknown {what}; it may have ended"))
    }

    pub(crate) fn failed(why: impl std::fmt::Display) -> Self {
        Self::new(Reason::Failed, why.to_string())
    }

    pub(crate) fn bad(why: impl std::fmt::Display) -> Self {
        Self::new(Reason::BadRequest, why.to_string())
    }

    pub(super) fn no_token() -> Self {
        Self::new(
            Reason::NoToken,
            "the server requires a token: copy the file whose path `narrows serve` printed at start, and pass it with \
            --token-file",
        )
    }

    pub(crate) fn wrong_token() -> Self {
        Self::new(Reason::WrongToken, "wrong token: copy the file whose path `narrows serve` printed at start")
    }

    const fn status(&self) -> StatusCode {
        match self.reason {
            Reason::NoToken | Reason::WrongToken => StatusCode::UNAUTHORIZED,
            Reason::VersionMismatch => StatusCode::UPGRADE_REQUIRED,
            Reason::Busy => StatusCode::TOO_MANY_REQUESTS,
            Reason::NotAllowed => StatusCode::FORBIDDEN,
            Reason::BadRequest => StatusCode::BAD_REQUEST,
            Reason::NotFound => StatusCode::NOT_FOUND,
            Reason::Failed | Reason::Other => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response<Body> {
        let status = self.status();
        let noted = self.clone();
        let refusal =
            Refusal { reason: self.reason, message: self.message, version: VERSION.to_owned(), protocol: PROTOCOL };
        let mut response = json(&refusal);
        *response.status_mut() = status;
        response.extensions_mut().insert(noted);
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// A value as the body of an answer, with an end of line for those who read it in a terminal.
pub(crate) fn json(value: &impl serde::Serialize) -> Response<Body> {
    match serde_json::to_vec(value) {
        Ok(mut bytes) => {
            bytes.push(b'\n');
            let mut response = Response::new(Body::from(bytes));
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            response
        }
        Err(error) => {
            let mut response = Response::new(Body::from(error.to_string()));
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            response
        }
    }
}
