//! The audit of one or both ends: their inventories side by side.

use crate::live::here;
use crate::remote::{Remote, RemoteError};
use crate::trace;
use narrows_collect::Live;
use narrows_diagnose::audit::{audit, path};
use narrows_model::host::audit::Audit;
use narrows_traffic::Stop;

/// This host alone; its network device is that of the default route.
pub fn this_host() -> Audit {
    audit(Some(&narrows_collect::inventory(&Live::new(), None)), None)
}

/// Both ends of a path. `trace`: until it is raised the path is traced from both ends, with its MTU; why that was not possible is the second
/// value.
/// Errors: the server is lost, or refuses its inventory.
pub fn both(remote: &Remote, stop: Option<&Stop>) -> Result<(Audit, Option<String>), RemoteError> {
    let server = remote.open_look()?.inventory()?;
    let mut audit = audit(Some(&here(remote)), Some(&server));
    let Some(stop) = stop else { return Ok((audit, None)) };
    let plan = trace::beside_load(remote.data_address().ip().to_canonical(), true);
    let traced = trace::both_ways(remote, plan, stop, &mut || {}, &mut |_| true);
    let why = match traced {
        Ok((record, why)) => {
            path::add(&mut audit, &trace::report(&record));
            why.map(|why| why.to_string())
        }
        Err(why) => Some(why.to_string()),
    };
    Ok((audit, why))
}
