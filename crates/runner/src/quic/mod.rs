//! A client of QUIC's protocol `perf`: the far end of a measurement is a server that acknowledges and sends, and says nothing of itself.

mod connection;
mod counting;

use crate::ends::TrialFailed;
use crate::foreign::{self, Enough, Foreign, Here};
use crate::lock;
use crate::remote::{RemoteError, Trust, family_of, find_foreign};
pub(crate) use connection::endpoint;
use connection::{Broken, Other, open};
use narrows_model::{Family, LoadPlan, LoadRecord, StreamSpec, Target, Trial};
use narrows_wire::quic;
pub use narrows_wire::quic::PORT;
use quinn::crypto::rustls::QuicClientConfig;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Connections that are made at the same time.
const AT_ONCE: usize = 32;

/// A server of QUIC with its addresses.
#[derive(Debug, Clone)]
pub struct Server {
    asked: String,
    host: String,
    addresses: Vec<SocketAddr>,
    trust: Trust,
}

impl Server {
    /// Looks the server up. `word`: `host` or `host:port`; `port`: where it names none.
    /// Errors: the word makes no sense, or the host is not known.
    pub fn find(word: &str, family: Option<Family>, port: u16, trust: Trust) -> Result<Self, RemoteError> {
        let asked = word.trim();
        let (host, _, addresses) = find_foreign((asked, asked, "host or host:port"), family, port)?;
        Ok(Self { asked: asked.to_owned(), host, addresses, trust })
    }

    fn address(&self) -> SocketAddr {
        self.addresses.first().copied().unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], quic::PORT)))
    }
}

impl Foreign for Server {
    const NAME: &'static str = "QUIC";

    fn target(&self) -> Target {
        let address = self.address();
        Target { asked: self.asked.clone(), address: address.to_string(), family: family_of(address.ip()) }
    }

    fn peer(&self) -> Option<IpAddr> {
        Some(self.address().ip().to_canonical())
    }

    fn refuses(&self, plan: &LoadPlan) -> Option<String> {
        quic::refuses(plan)
    }

    fn trial(&mut self, plan: &LoadPlan, here: &Here, enough: Enough<'_>) -> Result<Trial, TrialFailed> {
        let LoadPlan::Tcp(load) = plan else { return Err(foreign::failed("QUIC has no such load".to_owned())) };
        let tls = self.trust.config(&[quic::PROTOCOL]).map_err(|error| foreign::failed(error.to_string()))?;
        let tls = QuicClientConfig::try_from(tls).map_err(|error| foreign::failed(error.to_string()))?;
        let (tls, broken) = (Arc::new(tls), Broken::default());
        let before = here.instruments.counters(self.peer());
        let (specs, mut streams) = (plan.streams(), Vec::new());
        // The first finds the address that answers. The others come together: one that nobody drives is lost after a while.
        let (first, others) = specs.split_at(specs.len().min(1));
        for some in std::iter::once(first).chain(others.chunks(AT_ONCE)) {
            let (server, tls, to, stop) = (&*self, &tls, &broken, &here.stop);
            let opened = std::thread::scope(|scope| {
                let open = |spec: &StreamSpec| {
                    let spec = *spec;
                    scope.spawn(move || open(server, tls, spec, load, to, stop))
                };
                let threads: Vec<_> = some.iter().map(open).collect();
                threads.into_iter().map(|it| crate::result_of(it.join())).collect::<Result<Vec<_>, _>>()
            });
            for (stream, address) in opened.map_err(|why| foreign::not_opened(why, stop))? {
                // All connections go to the address that answered.
                self.addresses.sort_by_key(|it| *it != address);
                streams.push(stream);
            }
        }
        let mut ran = foreign::run(plan, streams, before, self.peer(), here, enough)?;
        let Other { broken, has_ended } = std::mem::take(&mut *lock(&broken));
        let name = format!("the QUIC server {}", self.asked);
        if let LoadRecord::Tcp(record) = &mut ran.client {
            let said = "what the far end received is what it acknowledged, less about 35 bytes a packet";
            record.remarks.push(format!("{}; {said}", self.trust.words()));
            if let (false, Some(why)) = (ran.is_short, &broken) {
                record.remarks.push(format!("lost a connection to {name}: {why}"));
            }
        }
        let server = quic::record(plan, &ran.client);
        ran.end(plan, server, &name, broken.as_deref(), has_ended)
    }
}
