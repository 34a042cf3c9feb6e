//! `narrows mcp`: commands as tools of assistants.

use crate::failure::{Failure, Outcome};

/// Serve assistants by the Model Context Protocol over standard input and output
#[derive(Debug, clap::Args)]
#[command(after_help = "Example, as an assistant's configuration has it:\n  \
    {\"mcpServers\": {\"narrows\": {\"command\": \"narrows\", \"args\": [\"mcp\"]}}}\n\
    Its tools are audit, connections, trace, diagnose, measure, mesh, history, report and fleet_status.")]
pub(crate) struct Args {
    /// Let tools try fixes: settings are changed, and rolled back
    #[arg(long)]
    allow_tune: bool,
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        narrows_runner::mcp::serve(self.allow_tune).map_err(Failure::run)?;
        Ok(0)
    }
}
