//! The hosts of a mesh, as the user names them, and what is asked for.

use crate::DEFAULT_PORT;
use crate::remote::{SshServer, TargetSpec};
use crate::trusted;
use narrows_model::run::mesh::{MeshPlan, MeshRecord};
use narrows_wire::Token;
use std::collections::BTreeMap;
use std::net::{Ipv6Addr, SocketAddrV6};
use std::path::{Path, PathBuf};

/// A host as the user names it.
#[derive(Debug, Clone)]
pub struct MeshHost {
    /// `ssh://[user@]host[:port]`; or `host[:port]` of `narrows serve`, whose token is stored.
    pub name: String,
    /// What an inventory calls it; `None`: the same.
    pub alias: Option<String>,
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
    /// What it is called in a report.
    pub fn called(&self) -> String {
        let schemes = ["ssh://", "serve://"];
        let bare = schemes.iter().find_map(|scheme| self.name.strip_prefix(scheme)).unwrap_or(&self.name);
        self.alias.as_deref().unwrap_or(bare).to_owned()
    }

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
/// `ansible_user` and `ansible_port` of each host, of its first group (`[group:vars]`) or of all (`[all:vars]`). `serve://host` is a host that
/// runs `narrows serve`. `#` and `;` start a comment.
/// Errors: the file cannot be read, or is something else.
pub fn listed(file: &Path) -> Result<Vec<MeshHost>, String> {
    let text = narrows_sys::files::read_text(file).map_err(|error| format!("cannot read the hosts: {error}"))?;
    hosts_of(&text).map_err(|why| format!("cannot read the hosts of {}: {why}", file.display()))
}

/// A host of a file.
struct Line<'a> {
    alias: &'a str,
    group: &'a str,
    variables: BTreeMap<&'a str, &'a str>,
}

fn variable(word: &str) -> Option<(&str, &str)> {
    let (key, value) = word.split_once('=')?;
    Some((key.trim(), value.trim().trim_matches(['\'', '"'])))
}

fn hosts_of(text: &str) -> Result<Vec<MeshHost>, String> {
    let (mut section, mut lines) = ("", Vec::<Line<'_>>::new());
    let mut of_groups: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
    for line in text.lines() {
        let line = line.split(['#', ';']).next().unwrap_or_default().trim();
        let bracketed = line.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        if let Some(name) = bracketed.filter(|name| name.parse::<Ipv6Addr>().is_err()) {
            section = name;
            continue;
        }
        if let Some(group) = section.strip_suffix(":vars") {
            of_groups.entry(group).or_default().extend(variable(line));
            continue;
        }
        let mut words = line.split_whitespace();
        // A section of other groups names no host.
        let Some(alias) = words.next().filter(|_| !section.contains(':')) else { continue };
        if alias.ends_with(':') || ["---", "-", "{"].contains(&alias) {
            return Err("it looks like YAML or JSON; write it as INI, or a host in each line".to_owned());
        }
        if alias.contains('[') && !alias.contains("://") && !is_address(alias) {
            return Err(format!("{alias}: ranges are not supported, list the hosts"));
        }
        let (variables, others): (Vec<_>, Vec<_>) = words.partition(|word| word.contains('='));
        let variables: BTreeMap<_, _> = variables.into_iter().filter_map(variable).collect();
        // In a section all that follows are variables.
        let group = others.first().filter(|_| section.is_empty()).copied().unwrap_or(section);
        // An inventory lists a host in each of its groups: the first counts, and all of its variables.
        match lines.iter_mut().find(|known| known.alias == alias && !section.is_empty()) {
            Some(known) => {
                if known.group.is_empty() {
                    known.group = group;
                }
                known.variables.extend(variables);
            }
            None => lines.push(Line { alias, group, variables }),
        }
    }
    Ok(lines.into_iter().map(|line| host_of(&line, &of_groups)).collect())
}

/// Whether a word with brackets is an address of IPv6, with a port or without.
fn is_address(word: &str) -> bool {
    let bare = word.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    bare.is_some_and(|it| it.parse::<Ipv6Addr>().is_ok()) || word.parse::<SocketAddrV6>().is_ok()
}

fn host_of(line: &Line<'_>, of_groups: &BTreeMap<&str, BTreeMap<&str, &str>>) -> MeshHost {
    let Line { alias, group, variables } = line;
    let group = (*group).to_owned();
    let plain = |name: &str| MeshHost { name: name.to_owned(), alias: None, group: group.clone() };
    if let Some(serves) = alias.strip_prefix("serve://") {
        return plain(serves);
    }
    if alias.contains("://") {
        return plain(alias);
    }
    let of_group = |name: &str, key: &str| of_groups.get(name)?.get(key).copied();
    let of = |key: &str| {
        let own = variables.get(key).copied();
        own.or_else(|| of_group(group.as_str(), key)).or_else(|| of_group("all", key))
    };
    let named = of("ansible_host");
    let address = named.unwrap_or(alias);
    // A zone may follow the address of a link.
    let is_v6 = address.split('%').next().is_some_and(|it| it.parse::<Ipv6Addr>().is_ok());
    let address = if is_v6 { format!("[{address}]") } else { address.to_owned() };
    // What the word itself says comes first.
    let (has_user, has_port) = (address.contains('@'), !address.ends_with(']') && address.contains(':'));
    let user = of("ansible_user").filter(|_| !has_user).map_or_else(String::new, |user| format!("{user}@"));
    let port = of("ansible_port").filter(|_| !has_port).map_or_else(String::new, |port| format!(":{port}"));
    MeshHost { name: format!("ssh://{user}{address}{port}"), alias: named.map(|_| (*alias).to_owned()), group }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<(String, String)> {
        let of = |host: MeshHost| (host.alias.map_or(String::new(), |it| it + " ") + &host.name, host.group);
        hosts_of(text).expect("hosts").into_iter().map(of).collect()
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
                pair("a ssh://root@192.0.2.1:2222", "web"),
                pair("ssh://b", "web"),
                pair("c ssh://c.example", "db"),
            ]
        );
        let again = "a ansible_host=2001:db8::1 ansible_port=22\n[web]\na\nb ansible_ssh_common_args='-J bastion'\n";
        assert_eq!(of(again), [pair("a ssh://[2001:db8::1]:22", "web"), pair("ssh://b", "web")]);
        let variables = "[web]\na\nb ansible_user=root\n[all:vars]\nansible_user = deploy\nansible_port=22\n[web:vars]\nansible_port=2222\n";
        assert_eq!(of(variables), [pair("ssh://deploy@a:2222", "web"), pair("ssh://root@b:2222", "web")]);
        let addresses = "[2001:db8::1]\n[2001:db8::2]:22\n2001:db8::3\nb:2222\nroot@c:2222\n";
        let named = ["[2001:db8::1]", "[2001:db8::2]:22", "[2001:db8::3]", "b:2222", "root@c:2222"];
        assert_eq!(of(addresses), named.map(|it| pair(&format!("ssh://{it}"), "")));
        let own =
            "fe80::1%eth0 ansible_port=22\n[web]\nb:2222\nroot@c\n[all:vars]\nansible_port=22\nansible_user=deploy\n";
        let named = ["deploy@[fe80::1%eth0]:22", "deploy@b:2222", "root@c:22"];
        assert_eq!(of(own).into_iter().map(|it| it.0).collect::<Vec<_>>(), named.map(|it| format!("ssh://{it}")));
        assert!(hosts_of("[web]\nweb[01:20]\n").is_err_and(|why| why.contains("ranges")));
        for other in ["all:\n  hosts:\n    a:\n", "---\nall:\n", "- a\n- b\n", "{ \"all\": {} }\n"] {
            assert!(hosts_of(other).is_err_and(|why| why.contains("YAML")), "{other}");
        }
    }
}
