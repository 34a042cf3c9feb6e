//! `narrows man`: the manual pages, made from the flags and their help.

use super::GRAMMAR;
use crate::failure::{Failure, Outcome};
use clap::Command;
use clap_mangen::Man;
use narrows_runner::stored;
use std::path::{Path, PathBuf};

/// Write the manual pages into a directory
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Existing directory
    directory: PathBuf,
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        let mut all = GRAMMAR.get().map_or_else(clap::Command::default, |of| of());
        all.build();
        write(&all, &self.directory)?;
        Ok(0)
    }
}

/// Writes the page of a command and of all below it.
fn write(command: &Command, directory: &Path) -> Result<(), Failure> {
    let page = Man::new(command.clone()).manual("narrows");
    let mut text = Vec::new();
    page.render(&mut text).map_err(|error| Failure::run(format!("cannot write the manual: {error}")))?;
    let file = directory.join(page.get_filename());
    stored::write(&file, &String::from_utf8_lossy(&text)).map_err(Failure::run)?;
    command.get_subcommands().filter(|below| !below.is_hide_set()).try_for_each(|below| write(below, directory))
}
