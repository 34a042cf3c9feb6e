//! The audit of one or both ends: their inventories side by side.

use crate::instruments::LiveInstruments;
use crate::remote::{Remote, RemoteError};
use narrows_model::host::audit::Audit;

/// This host alone; its network device is that of the default route.
#[must_use]
pub fn this_host(instruments: LiveInstruments) -> Audit {
    narrows_diagnose::audit::audit(Some(&instruments.inventory(None)), None)
}

/// Both ends of a path.
///
/// # Errors
/// The server cannot be asked, or refuses.
pub fn both(remote: &Remote, instruments: LiveInstruments) -> Result<Audit, RemoteError> {
    let theirs = remote.open_look()?.inventory()?;
    let ours = instruments.inventory(Some(remote.data_address().ip().to_canonical()));
    Ok(narrows_diagnose::audit::audit(Some(&ours), Some(&theirs)))
}
