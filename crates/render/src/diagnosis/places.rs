//! Places in words.

use crate::words::{clean, fit};
use narrows_model::{Place, Report};

/// `on the server (flits)`, `on the path`.
pub(crate) fn on(place: Place, report: &Report) -> String {
    let name = match place {
        Place::Client => &report.hosts.client.name,
        Place::Server => &report.hosts.server.name,
        Place::Path => "",
    };
    if name.is_empty() { format!("on the {place}") } else { format!("on the {place} ({})", fit(&clean(name), 40)) }
}
