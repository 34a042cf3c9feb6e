//! A client of ndt7: the far end of a measurement is a server of Measurement Lab's tool, which says what its kernel knows of the connection.

mod websocket;

use crate::ends::TrialFailed;
use crate::foreign::{self, Enough, Foreign, Here};
use crate::lock;
use crate::remote::{RemoteError, Trust, family_of, find_foreign};
use narrows_model::{Family, LoadPlan, Target, Trial};
use narrows_wire::ndt7;
use std::net::{IpAddr, SocketAddr};
use websocket::{Words, open};

/// How the name of a server begins: with TLS, and without.
const SCHEMES: [(&str, bool, u16); 2] = [("ndt7://", true, 443), ("ndt7+ws://", false, 80)];

/// Whether a word names a server of ndt7.
pub fn is_ndt7(word: &str) -> bool {
    SCHEMES.iter().any(|(scheme, ..)| word.trim().starts_with(scheme))
}

/// A server of ndt7 with its addresses.
#[derive(Debug, Clone)]
pub struct Server {
    asked: String,
    host: String,
    port: u16,
    addresses: Vec<SocketAddr>,
    /// `None`: without TLS.
    trust: Option<Trust>,
}

impl Server {
    /// Looks the server up. `word`: `ndt7://host[:port]`, or `ndt7+ws://host[:port]` without TLS.
    /// Errors: the word makes no sense, or the host is not known.
    pub fn find(word: &str, family: Option<Family>, trust: Trust) -> Result<Self, RemoteError> {
        let asked = word.trim();
        let of = |(scheme, tls, port)| asked.strip_prefix(scheme).map(|place: &str| (place, tls, port));
        let (place, tls, port) = SCHEMES.into_iter().find_map(of).unwrap_or((asked, true, 443));
        let form = "ndt7://host or ndt7://host:port";
        let (host, port, addresses) = find_foreign((asked, place, form), family, port)?;
        Ok(Self { asked: asked.to_owned(), host, port, addresses, trust: tls.then_some(trust) })
    }
}

impl Foreign for Server {
    const NAME: &'static str = "ndt7";

    fn target(&self) -> Target {
        let address = self.addresses.first().copied().unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], self.port)));
        Target { asked: self.asked.clone(), address: address.to_string(), family: family_of(address.ip()) }
    }

    fn peer(&self) -> Option<IpAddr> {
        self.addresses.first().map(|address| address.ip().to_canonical())
    }

    fn refuses(&self, plan: &LoadPlan) -> Option<String> {
        ndt7::refuses(plan).map(str::to_owned)
    }

    fn trial(&mut self, plan: &LoadPlan, here: &Here, enough: Enough<'_>) -> Result<Trial, TrialFailed> {
        let flow = plan.streams().first().map(|stream| stream.flow);
        let (LoadPlan::Tcp(tcp), Some(flow)) = (plan, flow) else {
            return Err(foreign::failed("ndt7 has no such load".to_owned()));
        };
        let (words, before) = (Words::default(), here.instruments.counters(self.peer()));
        let opened = open(self, flow, tcp, &words, &here.stop);
        let (stream, address) = opened.map_err(|why| foreign::not_opened(why, &here.stop))?;
        // The next test begins with the address that answered.
        self.addresses.sort_by_key(|it| *it != address);
        let ran = foreign::run(plan, vec![stream], before, self.peer(), here, enough)?;
        let other = lock(&words);
        let server = ndt7::record(plan, &ran.client, &other.said, self.trust.is_some());
        let name = format!("the ndt7 server {}", self.asked);
        ran.end(plan, server, &name, other.broken.as_deref(), other.has_ended)
    }
}
