//! Places in words.

use crate::words::{clean, fit};
use narrows_model::{Place, Report};
use std::net::SocketAddr;

/// `on the server (flits)`, `on the path`.
pub(crate) fn on(place: Place, report: &Report) -> String {
    let [client, server] = names(report, 40);
    let name = match place {
        Place::Client => client,
        Place::Server => server,
        Place::Path => String::new(),
    };
    if name.is_empty() { format!("on the {place}") } else { format!("on the {place} ({name})") }
}

/// What the client and the server are called, each name in at most `max` columns. Network namespaces share the name of their host: it is
/// followed by the server's address there.
pub(crate) fn names(report: &Report, max: usize) -> [String; 2] {
    let [client, server] = [&report.hosts.client.name, &report.hosts.server.name].map(|name| clean(name));
    let [shown_client, shown_server] = [&client, &server].map(|name| fit(name, max));
    if client.is_empty() || client != server {
        return [shown_client, shown_server];
    }
    let address = &report.run.target.address;
    let address = address.parse::<SocketAddr>().map_or_else(|_| clean(address), |it| it.ip().to_string());
    [shown_client, format!("{shown_server}, {address}")]
}
