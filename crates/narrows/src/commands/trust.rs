//! `narrows trust`: stores the token of a server once.

use crate::failure::{Failure, Outcome};
use crate::flags::WayArgs;
use crate::output::printed;
use narrows_runner::{DEFAULT_PORT, trust, trusted};

/// Store the token of a server, so that --token-file is not needed again
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("token_file", |it| it.help("File with the server's token")),
    after_help = "Examples:\n  \
    narrows trust server --token-file token   a copy of the server's token file\n  \
    narrows trust ssh://admin@server          fetch the token by ssh\n  \
    narrows trust                             list the servers\n\
    The tokens are in the file `trusted` in the state directory, which only its owner can read."
)]
pub(crate) struct Args {
    /// Host as measurements name it, or ssh://[user@]host (default: list the stored servers)
    host: Option<String>,
    /// Remove the stored token of HOST
    #[arg(long, requires = "host", conflicts_with = "token_file")]
    forget: bool,
    /// Print the token of this host's own server
    #[arg(long, conflicts_with_all = ["host", "forget"])]
    show: bool,
    #[command(flatten)]
    way: WayArgs,
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        if self.show {
            let (token, files) = trusted::own_token(self.way.token_file()).map_err(Failure::run)?;
            if let [first, others @ ..] = files.as_slice()
                && !others.is_empty()
            {
                let others: Vec<String> = others.iter().map(|file| file.display().to_string()).collect();
                let (first, others) = (first.display(), others.join(", "));
                crate::failure::note!(
                    "this is the token in {first}; another server of this host has that in {others}: --token-file names it"
                );
            }
            return printed(&token.reveal());
        }
        let file = trusted::file().map_err(Failure::run)?;
        let Some(word) = &self.host else { return list(&file) };
        let (host, port, ssh) = self.way.spec(word).server().map_err(Failure::usage)?;
        if self.forget {
            let was_there = trusted::put(&file, &host, port, None).map_err(Failure::run)?;
            let says = if was_there { "removed the token of" } else { "there was no token of" };
            return printed(&format!("{says} {host}, port {port}"));
        }
        let given = trust::client_token(self.way.token_file()).map_err(Failure::run)?;
        let token = match (given, ssh) {
            (Some(token), _) => token,
            (None, Some(ssh)) => trusted::fetch(&ssh, self.way.remote_command()).map_err(Failure::run)?,
            (None, None) => {
                return Err(Failure::usage(format!(
                    "cannot store the token of {host}: there is none; name its file with --token-file, or fetch it with \
                     `narrows trust ssh://{host}{}`",
                    if port == DEFAULT_PORT { String::new() } else { format!(" -p {port}") }
                )));
            }
        };
        let replaced = trusted::put(&file, &host, port, Some(&token)).map_err(Failure::run)?;
        let says = if replaced { "replaced" } else { "stored" };
        printed(&format!("{says} the token of {host}, port {port}, in {}", file.display()))
    }
}

fn list(file: &std::path::Path) -> Outcome {
    let servers = trusted::list(file).map_err(Failure::run)?;
    if servers.is_empty() {
        return printed("no tokens are stored");
    }
    let line = |it: &trusted::Trusted| format!("{}  port {}  key {}\n", it.host, it.port, it.token.fingerprint);
    printed(&servers.iter().map(line).collect::<String>())
}
