//! Hosts that are in no file: their agents join a fleet, with the token of a group, and leave it when they are gone.

use crate::plan::{Fleet, HOSTS_MAX, Host, Join, Joined};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// A host whose address its service names no more has left after so long without a word: before it is reported as silent.
const GONE_MS: u64 = 30_000;
/// Where no service says so.
const FORGOTTEN_MS: u64 = 24 * 3_600_000;
/// Those who join within this time are taken in together, …
const TOGETHER_MS: u64 = 2_000;
/// … and others so long later: a fleet begins anew with each change of its hosts.
const APART_MS: u64 = 30_000;
/// Of a name, as of one in the DNS (RFC 1035, section 2.3.4).
const NAME_MAX: usize = 253;

/// An answer with so many addresses may be a part of all: the resolver of musl, which the static program has, takes no more (MAXADDRS in its
/// `lookup.h`), each time others.
const CUT: usize = 48;

/// The addresses of a service.
#[derive(Debug, Default)]
struct Named {
    addresses: BTreeSet<IpAddr>,
    /// It may have others, too.
    is_partial: bool,
}

/// The hosts that joined a fleet.
#[derive(Debug, Default)]
pub struct Members {
    joins: Vec<Join>,
    /// Those of the file: their names are taken.
    listed: BTreeSet<String>,
    of: BTreeMap<String, Joined>,
    /// What the service of a group names, where it answered.
    named: BTreeMap<String, Named>,
    /// What changed and is in no fleet yet, in a sentence by host; and since when.
    news: BTreeMap<String, String>,
    since_ms: u64,
    /// When the last ones were taken in.
    taken_ms: Option<u64>,
}

impl Members {
    /// Those of a file that may join; who joined and may not any more has left.
    pub fn apply(&mut self, file: &Fleet) {
        // What a service names says nothing of another one.
        self.named.retain(|group, _| {
            let service = |joins: &[Join]| joins.iter().find(|it| it.group == *group).and_then(|it| it.service.clone());
            service(&self.joins).is_some_and(|name| service(&file.joins) == Some(name))
        });
        self.joins.clone_from(&file.joins);
        self.listed = file.hosts.keys().cloned().collect();
        let (joins, listed) = (&self.joins, &self.listed);
        self.of.retain(|name, it| !listed.contains(name) && joins.iter().any(|join| join.group == it.group));
    }

    /// Those that an earlier controller kept, instead of what was known here.
    pub fn restore(&mut self, file: &Fleet, kept: BTreeMap<String, Joined>) {
        (self.of, self.news) = (kept, BTreeMap::new());
        self.apply(file);
    }

    /// The fleet of the file, with these hosts.
    pub fn fleet(&self, file: &Fleet) -> Fleet {
        let host = |it: &Joined| Host { group: it.group.clone(), address: String::new(), member: Some(it.clone()) };
        let mut whole = file.clone();
        whole.hosts.extend(self.of.iter().map(|(name, it)| (name.clone(), host(it))));
        whole
    }

    /// Takes a host in, whose agent showed the token of a group. Whether the fleet has it already; else it will, in a moment.
    /// Errors: why it cannot join.
    pub fn join(&mut self, group: &str, name: &str, now_ms: u64) -> Result<bool, String> {
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(is_of_name) {
            return Err("the name of a host that joins has letters, digits, `.`, `-` and `_`".to_owned());
        }
        let join = self.joins.iter().find(|it| it.group == group);
        let join = join.ok_or_else(|| format!("no host joins the group {group} any more"))?;
        match self.of.get(name) {
            Some(it) if it.group == group => return Ok(!self.news.contains_key(name)),
            None if !self.listed.contains(name) => {}
            _ => return Err(format!("another host of this fleet has the name {name}")),
        }
        if self.of.values().filter(|it| it.group == group).count() >= join.most {
            return Err(format!("{} hosts joined the group {group}, and no more may (`most` in the file)", join.most));
        }
        if self.of.len() + self.listed.len() >= HOSTS_MAX {
            return Err(format!("this fleet has {HOSTS_MAX} hosts, and no fleet has more"));
        }
        self.of.insert(name.to_owned(), Joined { group: group.to_owned(), address: None });
        self.changed(name, format!("{name} joined (group {group})"), now_ms);
        Ok(false)
    }

    fn changed(&mut self, name: &str, says: String, now_ms: u64) {
        if self.news.is_empty() {
            self.since_ms = now_ms;
        }
        self.news.insert(name.to_owned(), says);
    }

    /// Where others load a host that says so itself: only where the service of its group names that address, so that nobody has packets sent to
    /// somebody else.
    pub fn address(&self, group: &str, says: Option<IpAddr>) -> Option<IpAddr> {
        says.filter(|address| self.named.get(group).is_some_and(|named| named.addresses.contains(address)))
    }

    /// The services that are to be looked up, with their groups.
    pub fn services(&self) -> Vec<(String, String)> {
        self.joins.iter().filter_map(|it| Some((it.group.clone(), it.service.clone()?))).collect()
    }

    /// What a service names; `None`: it does not answer, which says nothing of its hosts.
    pub fn named(&mut self, group: &str, addresses: Option<BTreeSet<IpAddr>>) {
        match addresses {
            Some(addresses) => {
                let named = self.named.entry(group.to_owned()).or_default();
                named.is_partial = addresses.len() >= CUT;
                if !named.is_partial || named.addresses.len() > HOSTS_MAX {
                    named.addresses.clear();
                }
                named.addresses.extend(addresses);
            }
            // What it named stays where its hosts are, and nobody leaves by it.
            None => self.named.get_mut(group).into_iter().for_each(|named| named.is_partial = true),
        }
    }

    /// Lets those go that are gone. `heard`: for how long each was silent, and where its agent came from last.
    pub fn leave(&mut self, heard: &[(&str, u64, Option<IpAddr>)], now_ms: u64) {
        // An address may be that of another host by now.
        let there: BTreeSet<IpAddr> =
            heard.iter().filter(|(_, silent_ms, _)| *silent_ms < GONE_MS).filter_map(|(.., from)| *from).collect();
        for (name, silent_ms, from) in heard.iter().copied() {
            let Some(member) = self.of.get(name) else { continue };
            let is_gone = match self.named.get(&member.group) {
                Some(Named { addresses, is_partial: false }) => {
                    let is_named = |it: IpAddr| addresses.contains(&it) && !there.contains(&it);
                    silent_ms >= GONE_MS && !from.or(member.address).is_some_and(is_named)
                }
                _ => silent_ms >= FORGOTTEN_MS,
            };
            if is_gone {
                self.of.remove(name);
                self.changed(name, format!("{name} is gone, and left the fleet"), now_ms);
            }
        }
    }

    /// What changed, in a sentence for each host, once there is a fleet to be made of it.
    pub fn news(&mut self, now_ms: u64) -> Vec<String> {
        // By a clock that was set back it is never too early.
        let is_soon = |at_ms: u64, apart_ms| now_ms.abs_diff(at_ms) < apart_ms;
        let waits = is_soon(self.since_ms, TOGETHER_MS) || self.taken_ms.is_some_and(|at_ms| is_soon(at_ms, APART_MS));
        if waits || self.news.is_empty() {
            return Vec::new();
        }
        self.taken_ms = Some(now_ms);
        std::mem::take(&mut self.news).into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "name = 's'\nhosts.a = {}\n[[join]]\ngroup = 'pods'\nservice = 'pods.svc'\nmost = 2\n[[join]]\ngroup = 'nodes'\n\
        [[mesh]]\nname = 'all'\nhosts = ['a', '@pods', '@nodes']\n[[mesh.test]]\nkind = 'probe'\nevery = '1m'\n";

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn members() -> (Fleet, Members) {
        let file = Fleet::read(FILE).expect("a fleet");
        let mut members = Members::default();
        members.restore(&file, BTreeMap::new());
        (file, members)
    }

    #[test]
    fn who_shows_the_token_of_a_group_is_in_the_fleet_a_moment_later() {
        let (file, mut members) = members();
        assert_eq!(members.join("pods", "p1", 5_000), Ok(false));
        assert_eq!(members.join("pods", "p1", 5_500), Ok(false));
        assert!(members.news(6_000).is_empty());
        assert_eq!(members.join("nodes", "n1", 6_500), Ok(false));
        assert_eq!(members.news(7_000), ["n1 joined (group nodes)", "p1 joined (group pods)"]);
        assert_eq!(members.join("pods", "p1", 7_500), Ok(true));
        // A fleet does not begin anew all the time.
        assert_eq!(members.join("pods", "p2", 8_000), Ok(false));
        assert!(members.news(36_000).is_empty());
        assert_eq!(members.join("pods", "p2", 36_000), Ok(false));
        assert_eq!(members.news(37_000), ["p2 joined (group pods)"]);
        let whole = members.fleet(&file);
        assert_eq!(whole.hosts.keys().collect::<Vec<_>>(), ["a", "n1", "p1", "p2"]);
        assert_eq!(whole.pairs(&whole.meshes[0]).len(), 6);
        // In the file as it is, there is no pair yet.
        assert!(file.pairs(&file.meshes[0]).is_empty());
    }

    #[test]
    fn nobody_takes_the_name_of_another_host_and_no_more_join_than_may() {
        let (_, mut members) = members();
        for (name, says) in [("a", "another host"), ("", "letters"), ("a/b", "letters"), (&*"x".repeat(254), "letters")]
        {
            assert!(members.join("pods", name, 0).expect_err(name).contains(says), "{name}");
        }
        assert!(members.join("racks", "r1", 0).expect_err("no such group").contains("no host joins"));
        assert_eq!(members.join("nodes", "n1", 0), Ok(false));
        assert!(members.join("pods", "n1", 0).expect_err("of another group").contains("another host"));
        assert_eq!([members.join("pods", "p1", 0), members.join("pods", "p2", 0)], [Ok(false), Ok(false)]);
        assert!(members.join("pods", "p3", 0).expect_err("two may").contains("2 hosts joined"));
    }

    #[test]
    fn an_address_counts_only_where_the_service_names_it() {
        let (_, mut members) = members();
        assert_eq!(members.address("pods", Some(address(7))), None);
        members.named("pods", Some(BTreeSet::from([address(7)])));
        assert_eq!(members.address("pods", Some(address(7))), Some(address(7)));
        assert_eq!(members.address("pods", Some(address(8))), None);
        assert_eq!(members.address("nodes", Some(address(7))), None);
    }

    #[test]
    fn what_a_part_of_an_answer_does_not_name_is_not_gone() {
        let (_, mut members) = members();
        members.join("pods", "p1", 0).expect("joined");
        assert_eq!(members.news(2_000).len(), 1);
        members.named("pods", Some((1..=48).map(address).collect()));
        members.named("pods", Some((101..=148).map(address).collect()));
        members.leave(&[("p1", 40_000, Some(address(200)))], 60_000);
        assert!(members.news(70_000).is_empty());
        assert_eq!(members.address("pods", Some(address(7))), Some(address(7)));
        members.named("pods", Some(BTreeSet::from([address(1)])));
        assert_eq!(members.address("pods", Some(address(7))), None);
        members.leave(&[("p1", 40_000, Some(address(200)))], 80_000);
        assert_eq!(members.news(90_000).len(), 1);
    }

    #[test]
    fn who_is_silent_and_not_named_any_more_has_left() {
        let (file, mut members) = members();
        for (group, name) in [("pods", "p1"), ("pods", "p2"), ("nodes", "n1")] {
            members.join(group, name, 0).expect("joined");
        }
        assert_eq!(members.news(2_000).len(), 3);
        let silent = |name: &'static str, ms: u64, last: u8| (name, ms, Some(address(last)));
        let all = [silent("p1", 40_000, 1), silent("p2", 40_000, 2), silent("n1", 40_000, 3)];
        // The service did not answer: nobody is gone.
        members.leave(&all, 50_000);
        assert!(members.news(60_000).is_empty());
        members.named("pods", Some(BTreeSet::from([address(2)])));
        members.leave(&[silent("p1", 29_000, 1), ("a", 99_000_000, None)], 60_000);
        assert!(members.news(70_000).is_empty());
        // It does not answer any more: nobody is gone, and what it named is where its hosts are.
        members.named("pods", None);
        members.leave(&all, 70_000);
        assert!(members.news(80_000).is_empty() && members.address("pods", Some(address(2))).is_some());
        members.named("pods", Some(BTreeSet::from([address(2)])));
        members.leave(&all, 80_000);
        assert_eq!(members.news(90_000), ["p1 is gone, and left the fleet"]);
        members.leave(&[silent("n1", 25 * 3_600_000, 3)], 100_000);
        assert_eq!(members.news(130_000), ["n1 is gone, and left the fleet"]);
        assert_eq!(members.fleet(&file).hosts.keys().collect::<Vec<_>>(), ["a", "p2"]);
        // Another one has its address.
        members.join("pods", "p3", 200_000).expect("joined");
        assert_eq!(members.news(202_000).len(), 1);
        members.leave(&[silent("p2", 40_000, 2), silent("p3", 1_000, 2)], 210_000);
        assert_eq!(members.news(240_000), ["p2 is gone, and left the fleet"]);
    }

    #[test]
    fn a_group_that_is_in_the_file_no_more_has_no_members() {
        let (file, mut members) = members();
        members.join("pods", "p1", 0).expect("joined");
        members.join("nodes", "a2", 0).expect("joined");
        let kept = members.of.clone();
        let less = FILE.replace("group = 'pods'", "group = 'racks'").replace("'@pods'", "'@racks'");
        let less = Fleet::read(&less.replace("hosts.a = {}", "hosts.a = {}\nhosts.b = {}")).expect("a fleet");
        members.restore(&less, kept);
        assert_eq!(members.fleet(&file).hosts.keys().collect::<Vec<_>>(), ["a", "a2"]);
        assert_eq!(members.services(), [("racks".to_owned(), "pods.svc".to_owned())]);
    }
}
