//! The audit of one or both ends: their inventories side by side.

use crate::live::here;
use crate::remote::{Remote, RemoteError};
use narrows_collect::Live;
use narrows_diagnose::audit::audit;
use narrows_model::host::audit::Audit;

/// This host alone; its network device is that of the default route.
#[must_use]
pub fn this_host() -> Audit {
    audit(Some(&narrows_collect::inventory(&Live::new(), None)), None)
}

/// Both ends of a path.
pub fn both(remote: &Remote) -> Result<Audit, RemoteError> {
    let server = remote.open_look()?.inventory()?;
    Ok(audit(Some(&here(remote)), Some(&server)))
}
