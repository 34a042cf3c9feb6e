//! Builds a program of this folder for the kernel: part of the build scripts that need one.

use std::path::Path;
use std::process::Command;

/// What a build script says when it fails.
pub(crate) struct Words {
    /// Who needs the compiler.
    pub(crate) whom: &'static str,
    /// How to build without XDP.
    pub(crate) without: &'static str,
}

/// Whether the feature `xdp` asks for programs at all.
pub(crate) fn is_wanted() -> bool {
    println!("cargo::rerun-if-env-changed=CLANG");
    std::env::var_os("CARGO_FEATURE_XDP").is_some()
}

/// Builds `program` from `folder` with these flags beside the usual ones; cargo is told what is wrong.
pub(crate) fn build(folder: &Path, program: &str, flags: &[&str], words: &Words) {
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let out = std::env::var("OUT_DIR").unwrap_or_default();
    let built = Command::new(&clang)
        .args(["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Wextra", "-Werror"])
        // A header names helpers that only some programs call; a table's declaration is all of its initialiser.
        .args(["-Wno-unused-function", "-Wno-unused-variable", "-Wno-missing-field-initializers"])
        // No folder of the machine that builds it is in it.
        .arg(format!("-ffile-prefix-map={}=bpf", folder.display()))
        .arg("-fdebug-compilation-dir=.")
        .args(flags)
        .arg("-c")
        .arg(folder.join(format!("{program}.c")))
        .arg("-o")
        .arg(Path::new(&out).join(format!("{program}.o")))
        .output();
    match built {
        Ok(done) if done.status.success() => {}
        Ok(done) => {
            for line in String::from_utf8_lossy(&done.stderr).lines() {
                println!("cargo::error={line}");
            }
            let whom = words.whom;
            println!(
                "cargo::error=`{clang}` cannot build bpf/{program}.c for the kernel; {whom} needs clang 11 or newer"
            );
        }
        Err(error) => println!(
            "cargo::error=cannot run `{clang}` ({error}): install clang (Debian: apt-get install clang), name it in the \
             variable CLANG, or build without XDP: {}",
            words.without
        ),
    }
}
