//! The hosts of a mesh, as the user names them, and what is asked for.

use crate::DEFAULT_PORT;
use crate::remote::{SshServer, TargetSpec};
use crate::trusted;
use narrows_model::run::mesh::{MeshPlan, MeshRecord};
use narrows_wire::Token;
use std::path::{Path, PathBuf};

/// A host as the user names it.
#[derive(Debug, Clone)]
pub struct MeshHost {
    /// `ssh://[user@]host[:port]`; or `host[:port]` of `narrows serve`, whose token is stored.
    pub name: String,
    /// Empty without one.
    pub group: String,
}

/// Where a host is found.
pub(super) enum MeshPlace {
    Ssh(SshServer),
    /// `narrows serve`, with its token.
    Serves {
        host: String,
        port: u16,
        token: Token,
    },
}

impl MeshHost {
    pub(super) fn place(&self) -> Result<MeshPlace, String> {
        let asked = self.name.strip_prefix("serve://").unwrap_or(&self.name).to_owned();
        let target = TargetSpec { asked, family: None, port: DEFAULT_PORT, token: None };
        let (host, port, server) = target.server().map_err(|error| error.to_string())?;
        if let Some(server) = server {
            return Ok(MeshPlace::Ssh(server));
        }
        let token = trusted::stored(&host, port).ok_or_else(|| {
            format!(
                "cannot use {}: no token of its narrows serve is stored; run `narrows trust {0}`, or write ssh://{host}",
                self.name
            )
        })?;
        Ok(MeshPlace::Serves { host, port, token })
    }
}

/// What is asked for.
#[derive(Debug, Clone)]
pub struct MeshSpec {
    pub hosts: Vec<MeshHost>,
    pub plan: MeshPlan,
    /// The most loads at the same time through one router, or through those that no trace shows.
    pub concurrent: usize,
    /// The command that is narrows on the hosts; `None`: theirs, where it is of this version, else this program.
    pub remote_command: Option<String>,
    /// Programs for hosts whose CPU is another than that of this one.
    pub programs: Vec<PathBuf>,
    /// An earlier mesh of these hosts: what it measured is not measured again.
    pub resumes: Option<Box<MeshRecord>>,
}

/// The most hosts: each is an ssh process and three threads of this one.
pub const HOSTS_MAX: usize = 200;

/// The hosts of a file: one in each line, with its group behind it; or an inventory of Ansible (INI): groups as sections, `ansible_host`,
/// `ansible_user` and `ansible_port` of each host. `serve://host` is a host that runs `narrows serve`. `#` and `;` start a comment.
/// Errors: the file cannot be read.
pub fn listed(file: &Path) -> Result<Vec<MeshHost>, String> {
    let text = narrows_sys::files::read_text(file).map_err(|error| format!("cannot read the hosts: {error}"))?;
    hosts_of(&text)
}

fn hosts_of(text: &str) -> Result<Vec<MeshHost>, String> {
    // A section of variables or of other groups names no host.
    let mut section: Option<&str> = Some("");
    let mut hosts: Vec<(String, MeshHost)> = Vec::new();
    for line in text.lines() {
        let line = line.split(['#', ';']).next().unwrap_or_default().trim();
        if let Some(name) = line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
            section = (!name.contains(':')).then_some(name);
            continue;
        }
        let (Some(section), mut words) = (section, line.split_whitespace()) else { continue };
        let Some(name) = words.next() else { continue };
        if name.contains('[') && !name.contains("://") {
            return Err(format!("cannot read the hosts: {name}: ranges are not supported, list the hosts"));
        }
        let alias = name.to_owned();
        let (variables, others): (Vec<_>, Vec<_>) = words.partition(|word| word.contains('='));
        let of = |key: &str| {
            let values = variables.iter().filter_map(|word| word.strip_prefix(key)?.strip_prefix('='));
            values.map(|value| value.trim_matches(['\'', '"'])).next_back()
        };
        let name = if let Some(serves) = name.strip_prefix("serve://") {
            serves.to_owned()
        } else if name.contains("://") {
            name.to_owned()
        } else {
            let user = of("ansible_user").map_or_else(String::new, |user| format!("{user}@"));
            let port = of("ansible_port").map_or_else(String::new, |port| format!(":{port}"));
            let address = of("ansible_host").unwrap_or(name);
            let address = if address.contains(':') { format!("[{address}]") } else { address.to_owned() };
            format!("ssh://{user}{address}{port}")
        };
        // In a section all that follows are variables.
        let group = others.first().filter(|_| section.is_empty()).copied().unwrap_or(section).to_owned();
        // An inventory lists a host in each of its groups: the first counts, and the address where it is given.
        match hosts.iter_mut().find(|(known, _)| *known == alias && !section.is_empty()) {
            Some((_, known)) => {
                if known.group.is_empty() {
                    known.group = group;
                }
                if of("ansible_host").is_some() {
                    known.name = name;
                }
            }
            None => hosts.push((alias, MeshHost { name, group })),
        }
    }
    Ok(hosts.into_iter().map(|(_, host)| host).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<(String, String)> {
        hosts_of(text).expect("hosts").into_iter().map(|host| (host.name, host.group)).collect()
    }

    #[test]
    fn a_file_has_hosts_with_groups_or_is_an_inventory_of_ansible() {
        let pair = |name: &str, group: &str| (name.to_owned(), group.to_owned());
        assert_eq!(
            of("# all\nssh://a rack1\nb  rack2 # new\nserve://c:6000\n\n"),
            [pair("ssh://a", "rack1"), pair("ssh://b", "rack2"), pair("c:6000", "")]
        );
        let inventory = "mail.example\n[web]\na ansible_host=192.0.2.1 ansible_user=root ansible_port=2222\nb\n\
            [web:vars]\nhttp_port=80\n[all:children]\nweb\n[db]\nb\nc ansible_host='c.example' ; remark\n[mail]\nmail.example\n";
        assert_eq!(
            of(inventory),
            [
                pair("ssh://mail.example", "mail"),
                pair("ssh://root@192.0.2.1:2222", "web"),
                pair("ssh://b", "web"),
                pair("ssh://c.example", "db"),
            ]
        );
        let again = "a ansible_host=2001:db8::1 ansible_port=22\n[web]\na\nb ansible_ssh_common_args='-J bastion'\n";
        assert_eq!(of(again), [pair("ssh://[2001:db8::1]:22", "web"), pair("ssh://b", "web")]);
        assert!(hosts_of("[web]\nweb[01:20]\n").is_err_and(|why| why.contains("ranges")));
    }
}
