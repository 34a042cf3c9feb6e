//! The user's commands of a benchmark: what resets a device, and what switches it to another configuration.

use narrows_runner::command::{self, CommandError};
use narrows_traffic::Stop;
use std::time::Duration;

/// Runs a command and waits for its end.
/// Errors: it cannot be run, did not end in time or well: what is to be said after its name.
pub(super) fn run(words: &[String], limit: Duration, stop: Option<&Stop>) -> Result<(), String> {
    let (_, ended) = command::run(words, limit, &|| stop.is_some_and(Stop::is_set));
    ended.map_err(|error| match error {
        CommandError::Failed(why) => why,
        CommandError::Stopped => "was still running at the end of the load and was killed".to_owned(),
    })
}
