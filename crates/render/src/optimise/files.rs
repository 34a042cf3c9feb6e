//! The set as files for configuration management: sysctl.d, a script of commands, Ansible tasks.

use crate::words::clean;
use narrows_model::run::optimise::{OptimiseReport, OptimisedSetting};
use narrows_model::{Place, Setting};
use std::fmt::Write as _;

/// A file: its name, and its text.
pub type File = (String, String);

/// Both hosts that have settings, with them.
pub(super) fn hosts(report: &OptimiseReport) -> impl Iterator<Item = (Place, Vec<&OptimisedSetting>)> {
    let of = |place| (place, report.settings.iter().filter(|it| it.at == place).collect::<Vec<_>>());
    [Place::Client, Place::Server].map(of).into_iter().filter(|(_, settings)| !settings.is_empty())
}

const HEAD: &str = "# Written by narrows optimise";

/// A file for `/etc/sysctl.d`; `None` without a sysctl.
pub(super) fn sysctl_d(settings: &[&OptimisedSetting]) -> Option<String> {
    let lines = settings.iter().filter_map(|it| match &it.set {
        Setting::Sysctl { key, value } => Some(format!("{} = {}\n", clean(key), clean(value))),
        _ => None,
    });
    let lines: String = lines.collect();
    (!lines.is_empty()).then(|| format!("{HEAD}\n{lines}"))
}

/// A script of `ethtool`, `ip` and `tc`; `None` if all settings are sysctls.
pub(super) fn script(settings: &[&OptimisedSetting]) -> Option<String> {
    let others = settings.iter().filter(|it| !matches!(it.set, Setting::Sysctl { .. }));
    // The name of a device is what its host says: nothing that a shell interprets gets into a script.
    let plain = |it: &str| it.chars().all(|c| c.is_ascii_alphanumeric() || " _.:/@+-".contains(c));
    let line = |command: String| if plain(&command) { command + "\n" } else { format!("# not written: {command}\n") };
    let lines: String = others.map(|it| line(clean(&it.set.to_string()))).collect();
    (!lines.is_empty()).then(|| format!("#!/bin/sh\n{HEAD}; not persistent: run it at boot\nset -e\n{lines}"))
}

/// Ansible tasks of a host.
pub(super) fn ansible(settings: &[&OptimisedSetting]) -> String {
    let mut out = format!("{HEAD}\n");
    for it in settings {
        let command = clean(&it.set.to_string());
        let _ = match &it.set {
            Setting::Sysctl { key, value } => writeln!(
                out,
                "- name: {}\n  ansible.posix.sysctl:\n    name: {}\n    value: {}\n    sysctl_file: /etc/sysctl.d/90-narrows.conf",
                quoted(&format!("Set {key}")),
                clean(key),
                quoted(value)
            ),
            _ => writeln!(
                out,
                "- name: {}\n  ansible.builtin.command: {}\n  changed_when: true",
                quoted(&command),
                quoted(&command)
            ),
        };
    }
    out
}

/// A YAML scalar in single quotes.
fn quoted(text: &str) -> String {
    format!("'{}'", clean(text).replace('\'', "''"))
}

/// All files of a set.
pub fn files(report: &OptimiseReport) -> Vec<File> {
    let mut files = Vec::new();
    for (place, settings) in hosts(report) {
        files.extend(sysctl_d(&settings).map(|it| (format!("{place}-90-narrows.conf"), it)));
        files.extend(script(&settings).map(|it| (format!("{place}-ethtool.sh"), it)));
        files.push((format!("{place}-ansible.yml"), ansible(&settings)));
    }
    files
}
