//! Which flags the user gave.

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

/// The flags of a command that the user gave; the others have their defaults. Flatten it before them: what is read is no longer
/// among the matches.
#[derive(Debug)]
pub(crate) struct Given(Vec<String>);

impl Given {
    /// `id`: the long name, with underscores.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.0.iter().any(|given| given == id)
    }
}

impl FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = |id: &&str| matches.value_source(id) == Some(ValueSource::CommandLine);
        let mut given: Vec<String> = matches.ids().map(clap::Id::as_str).filter(given).map(str::to_owned).collect();
        // Whatever their order, they mean the same.
        given.sort();
        Ok(Self(given))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Given {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}
