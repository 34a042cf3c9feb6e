//! Requests to one agent, each with a timeout: the asynchronous library behind blocking calls.

use crate::error::SnmpError;
use crate::mib::Object;
use crate::target::check;
use async_snmp::v3::ReportStatus;
use async_snmp::{
    Auth, AuthProtocol, Client, Error, ErrorStatus, Oid, ResponseShapePolicy, Retry, UsmConfig, Value, WalkOptions,
};
use narrows_model::host::snmp::{SnmpAccess, SnmpAgent};
use std::future::Future;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};

/// How often a request is repeated if no answer arrives.
pub(crate) const REPEATS: u32 = 2;
/// The maximum number of objects per request: one reading of an interface must be one answer.
const OBJECTS_A_QUESTION: usize = 32;
/// The maximum time for listing a column, as a multiple of the timeout of one answer.
const COLUMN_TIMES: u32 = 20;

/// A socket of its own and the library's state.
pub(crate) struct Session {
    /// Taken when this is dropped.
    runtime: Option<Runtime>,
    client: Client,
    agent: String,
    timeout: Duration,
    secret: &'static str,
}

impl Session {
    /// Opens the socket; sends nothing yet. An unanswered request is repeated `repeats` times within the timeout.
    pub(crate) fn open(of: &SnmpAgent, timeout: Duration, repeats: u32) -> Result<Self, SnmpError> {
        check(of)?;
        let agent = of.agent.trim().to_owned();
        let unreachable = |why: String| SnmpError::Unreachable { agent: agent.clone(), why };
        let auth = auth(&of.access).map_err(|why| SnmpError::BadTarget { agent: agent.clone(), why })?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| unreachable(error.to_string()))?;
        let retry = Retry::fixed(repeats, Duration::ZERO).map_err(|error| unreachable(error.to_string()))?;
        let builder = Client::builder(agent.as_str(), auth)
            .request_timeout(timeout / (repeats + 1))
            .construction_timeout(timeout)
            .retry(retry)
            .max_oids_per_request(OBJECTS_A_QUESTION)
            .response_shape_policy(ResponseShapePolicy::Strict)
            // An agent answers a wrong password or user without authentication. That must not look like
            // silence, but values are accepted only with authentication, and the time of such an answer is used for one
            // request and not kept. It must come from the agent's own address.
            .allow_unauthenticated_v3_time_correction(true)
            .strict_source(matches!(of.access, SnmpAccess::V3 { .. }));
        let opened = blocking(&runtime, builder.connect()).and_then(|done| done.map_err(|error| error.to_string()));
        let client = match opened {
            Ok(client) => client,
            Err(why) => {
                runtime.shutdown_background();
                return Err(unreachable(why));
            }
        };
        let secret = match of.access {
            SnmpAccess::V2c { .. } => "community",
            SnmpAccess::V3 { .. } => "user name or password",
        };
        Ok(Self { runtime: Some(runtime), client, agent, timeout, secret })
    }

    pub(crate) fn agent(&self) -> &str {
        &self.agent
    }

    /// The values of several objects, in their order, from one answer. A missing value is an exception
    /// (`NoSuchObject`, `NoSuchInstance`).
    pub(crate) fn get(&self, objects: &[(Object, u32)]) -> Result<Vec<Value>, SnmpError> {
        let what = objects.first().map_or("nothing", |(object, _)| object.name);
        let oids: Vec<Oid> = objects.iter().map(|(object, instance)| object.of(*instance)).collect();
        let answer = self.wait(what, self.client.get_many(&oids))?;
        if answer.varbinds.len() != objects.len() {
            let why = format!("{} values for {} objects", answer.varbinds.len(), objects.len());
            return Err(SnmpError::Wrong { agent: self.agent.clone(), object: what.to_owned(), why });
        }
        Ok(answer.varbinds.into_iter().map(|bound| bound.value).collect())
    }

    /// All instances of a column with their numbers, at most `most`.
    pub(crate) fn column(&self, object: Object, most: usize) -> Result<Vec<(u32, Value)>, SnmpError> {
        let root = object.column();
        let options = WalkOptions { result_limit: Some(most), ..WalkOptions::default() };
        let walk = self.client.walk_with(root.clone(), options).map_err(|error| self.error(&error, object.name, 0))?;
        let time = self.timeout * COLUMN_TIMES;
        let bound = self.wait(object.name, async {
            tokio::time::timeout(time, walk.collect()).await.unwrap_or_else(|_| {
                let (target, elapsed) = (self.client.peer_addr(), time);
                Err(Box::new(Error::Timeout { target, elapsed, retries: 0 }))
            })
        })?;
        let instance = |oid: &Oid| oid.strip_prefix(&root).filter(|rest| rest.len() == 1).map(|rest| rest.arcs()[0]);
        Ok(bound.into_iter().filter_map(|bound| Some((instance(&bound.oid)?, bound.value))).collect())
    }

    fn wait<T: Send>(
        &self,
        object: &str,
        question: impl Future<Output = async_snmp::Result<T>> + Send,
    ) -> Result<T, SnmpError> {
        let Some(runtime) = &self.runtime else {
            return Err(SnmpError::Unreachable { agent: self.agent.clone(), why: "the session was closed".to_owned() });
        };
        let strange = self.strange();
        match blocking(runtime, question) {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(self.error(&error, object, self.strange().saturating_sub(strange))),
            Err(why) => Err(SnmpError::Unreachable { agent: self.agent.clone(), why }),
        }
    }

    /// Datagrams so far that match no request.
    fn strange(&self) -> u64 {
        self.client.stats().malformed_datagrams
    }

    fn error(&self, error: &Error, object: &str, strange: u64) -> SnmpError {
        let (agent, object) = (self.agent.clone(), object.to_owned());
        match error.exchange_source() {
            Error::Timeout { .. } if strange > 0 => {
                let datagrams = format!("{strange} datagram{}", if strange == 1 { "" } else { "s" });
                SnmpError::Unreadable { agent, object, datagrams }
            }
            // Of one request with its repeats, or of a whole column that took too long.
            Error::Timeout { elapsed, retries, .. } => {
                let within = if *retries > 0 { self.timeout } else { *elapsed };
                let within_ms = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
                SnmpError::NoAnswer { agent, object, within_ms, asked: retries + 1, secret: self.secret }
            }
            Error::Report { status, .. } => {
                SnmpError::Refused { agent, object, why: status.to_string(), advice: advice(status) }
            }
            Error::Auth { .. } => SnmpError::Refused {
                agent,
                object,
                why: "its answer is not authenticated with the password".to_owned(),
                advice: "check the user's password and hash on both sides",
            },
            Error::Snmp { status, .. } => SnmpError::Refused {
                agent,
                object,
                why: status.to_string(),
                advice: match status {
                    ErrorStatus::AuthorizationError | ErrorStatus::NoAccess => {
                        "give the community or user read access to IF-MIB"
                    }
                    _ => "check the agent's log",
                },
            },
            Error::WalkAborted { reason: async_snmp::WalkAbortReason::ResultLimitExceeded { limit }, .. } => {
                SnmpError::TooMany { agent, object, limit: *limit }
            }
            Error::Network { source, .. } => SnmpError::Unreachable { agent, why: source.to_string() },
            other => SnmpError::Wrong { agent, object, why: short(&other.to_string()) },
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Without blocking: this may run on a thread of an async runtime, where tokio forbids it.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Runs a request to its end. If the calling thread runs async code, this happens on a separate thread.
fn blocking<T: Send>(runtime: &Runtime, question: impl Future<Output = T> + Send) -> Result<T, String> {
    if Handle::try_current().is_err() {
        return Ok(runtime.block_on(question));
    }
    std::thread::scope(|scope| {
        let asker = std::thread::Builder::new().name("snmp".to_owned());
        let thread = asker.spawn_scoped(scope, || runtime.block_on(question)).map_err(|error| error.to_string())?;
        thread.join().map_err(|_| "the request ended abnormally".to_owned())
    })
}

/// An error of the library may contain a whole answer.
fn short(text: &str) -> String {
    const MAX_CHARS: usize = 200;
    if text.chars().count() <= MAX_CHARS {
        text.to_owned()
    } else {
        text.chars().take(MAX_CHARS).chain(['…']).collect()
    }
}

fn advice(status: &ReportStatus) -> &'static str {
    match status {
        ReportStatus::UnknownUserName { .. } => "create the user on the device, or correct the name in the plan",
        ReportStatus::WrongDigest { .. } => "check the authentication password and hash on both sides",
        ReportStatus::UnsupportedSecurityLevel { .. } => {
            "allow the user there what the plan asks for: with a password SHA-1 (authNoPriv), else neither (noAuthNoPriv)"
        }
        ReportStatus::NotInTimeWindow { .. } => "the device's engine time is off: try again, or restart its agent",
        _ => "check the agent's log",
    }
}

/// SNMP v3 with a password signs by SHA-1 and does not encrypt.
fn auth(access: &SnmpAccess) -> Result<Auth, String> {
    match access {
        SnmpAccess::V2c { community } => Ok(Auth::v2c(community.expose())),
        SnmpAccess::V3 { user, password: None } => Ok(Auth::usm(user)),
        SnmpAccess::V3 { user, password: Some(password) } => {
            let user = UsmConfig::new(user.clone()).auth(AuthProtocol::Sha1, password.expose());
            user.map(Auth::from).map_err(|error| error.to_string())
        }
    }
}
