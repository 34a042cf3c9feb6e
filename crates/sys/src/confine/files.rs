//! The files that this process reaches, by Landlock (Linux 5.13; kernel `Documentation/userspace-api/landlock.rst`).

use crate::{Error, Result};
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, LandlockStatus, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _,
    RulesetStatus, Scope, path_beneath_rules,
};
use std::io;
use std::path::PathBuf;

/// How much of it this kernel enforces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enforced {
    Whole,
    /// What its older version has; whether TCP is among it (Linux 6.7).
    Partly {
        tcp: bool,
    },
    /// Nothing: it has no Landlock.
    Not,
}

/// From here on only the files and directories of `read` and `write` can be opened, to be read, and those of `write` also to be written,
/// made and removed; nothing is executed, no TCP connection is opened and no TCP port bound (Linux 6.7), and no process outside is
/// signalled (6.12). What is open stays open. Paths that do not exist are left out.
/// Errors: the kernel has Landlock and refuses the rules.
pub fn only(read: &[PathBuf], write: &[PathBuf]) -> Result<Enforced> {
    let abi = ABI::V6;
    let reading = AccessFs::ReadFile | AccessFs::ReadDir;
    let files = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::MakeReg | AccessFs::RemoveFile;
    let directories = AccessFs::MakeDir | AccessFs::RemoveDir;
    let rules = || {
        Ruleset::default()
            .handle_access(AccessFs::from_all(abi))?
            .handle_access(AccessNet::from_all(abi))?
            .scope(Scope::from_all(abi))?
            .create()?
            .add_rules(path_beneath_rules(read, reading))?
            .add_rules(path_beneath_rules(write, reading | files | directories))?
            .restrict_self()
    };
    let status = rules().map_err(|error| Error::new("restrict", "files by Landlock", io::Error::other(error)))?;
    Ok(match (status.ruleset, status.landlock) {
        (RulesetStatus::FullyEnforced, _) => Enforced::Whole,
        (RulesetStatus::PartiallyEnforced, LandlockStatus::Available { effective_abi, .. }) => {
            Enforced::Partly { tcp: effective_abi >= ABI::V4 }
        }
        (RulesetStatus::PartiallyEnforced, _) => Enforced::Partly { tcp: false },
        (RulesetStatus::NotEnforced, _) => Enforced::Not,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_thread_reads_what_is_named_and_nothing_else() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let at = listener.local_addr().expect("bound");
        let folder = std::env::temp_dir().join(format!("narrows-landlock-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a directory");
        let made = folder.clone();
        // Landlock binds the thread alone.
        let confined = std::thread::spawn(move || {
            super::super::no_new_privileges().expect("always allowed");
            let own = [folder.clone()];
            let enforced = only(&["/proc/self".into(), "/no/such/file".into()], &own).expect("Landlock");
            if enforced != Enforced::Whole {
                return println!("NOT CHECKED: files and TCP, since this kernel has no or an older Landlock");
            }
            fs::read("/proc/self/stat").expect("it is named");
            let denied = |error: io::Error| assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
            denied(fs::read("/etc/passwd").expect_err("not named"));
            denied(fs::read("/proc/self/root/etc/passwd").expect_err("not named, by a detour"));
            denied(fs::write("/proc/self/comm", "x").expect_err("only to be read"));
            crate::files::write_whole(&folder.join("own"), b"x", 0o600).expect("named to be written");
            crate::files::make_directory(&folder.join("a")).expect("named to be written");
            denied(fs::write(std::env::temp_dir().join("narrows-landlock"), "x").expect_err("not named"));
            denied(TcpStream::connect(at).expect_err("no TCP"));
        });
        confined.join().expect("no panic");
        fs::remove_dir_all(&made).expect("removed");
    }
}
