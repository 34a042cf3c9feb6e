//! Fleets: hosts that are tested again and again.

use narrows_fleet::{cost, plan::Fleet};
use narrows_model::run::fleet::FleetCheck;
use narrows_sys::files;
use std::path::Path;

/// No file of a fleet is larger: a hundred thousand hosts take a few megabytes.
const FILE_MAX_BYTES: u64 = 64 << 20;

/// What the file of a fleet asks for.
/// Errors: it cannot be read, or makes no sense: each mistake in a line.
pub fn check(file: &Path) -> Result<FleetCheck, String> {
    let text = files::read(file, FILE_MAX_BYTES).map_err(|error| error.to_string())?;
    let text = String::from_utf8(text).map_err(|_| format!("cannot read {}: it is no UTF-8", file.display()))?;
    let fleet = Fleet::read(&text).map_err(|why| format!("cannot use {}: {why}", file.display()))?;
    Ok(cost::check(&fleet))
}
