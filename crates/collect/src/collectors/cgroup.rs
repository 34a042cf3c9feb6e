//! The CPU quota and the memory limit of the control group that this process is in, and how often they held it back.
//! Source: kernel `Documentation/admin-guide/cgroup-v2.rst`, `Documentation/scheduler/sched-bwc.rst`,
//! `Documentation/admin-guide/cgroup-v1/memory.rst`, 2.7 and 3.

use crate::collector::{Class, Collector, Context, Sink, always};
use crate::{Missing, parse};
use narrows_model::keys;

pub(super) const COLLECTOR: Collector = Collector {
    id: "cgroup",
    about: "CPU quota and memory limit of the control group, and how often they were reached",
    provides: &[
        keys::CGROUP_CPU_QUOTA,
        keys::CGROUP_CPU_PERIODS,
        keys::CGROUP_CPU_THROTTLED,
        keys::CGROUP_CPU_THROTTLED_US,
        keys::CGROUP_MEMORY_LIMIT,
        keys::CGROUP_MEMORY_SOCK,
        keys::CGROUP_MEMORY_EVENTS,
        keys::CGROUP_MEMORY_SCANNED,
        keys::CGROUP_MEMORY_RECLAIMED,
    ],
    class: Class::Both,
    can_run: always,
    collect,
};

fn collect(context: &Context<'_>, sink: &mut Sink<'_>) -> Result<(), Missing> {
    let groups = &context.host.read("/proc/self/cgroup")?;
    let root = &root(context);
    if let Err(why) = memory(context, sink, groups, root) {
        for key in COLLECTOR.provides.iter().filter(|key| key.name.starts_with("cgroup.memory.")) {
            sink.absent(key.name, &why);
        }
    }
    let mut lowest: Option<(f64, Group)> = None;
    for group in candidates(groups, "cpu", root) {
        if let Some(cores) = quota(context, &group)
            && lowest.as_ref().is_none_or(|(least, _)| cores < *least)
        {
            lowest = Some((cores, group));
        }
    }
    let Some((cores, group)) = lowest else {
        return Err(Missing::because("no control group of this process has a CPU quota"));
    };
    sink.fact(keys::CGROUP_CPU_QUOTA, cores, group.quota_file());
    let path = format!("{}/cpu.stat", group.directory);
    let stat = context.host.read(&path)?;
    for (name, value) in parse::key_values(&path, &stat) {
        match name {
            "nr_periods" => sink.put(keys::CGROUP_CPU_PERIODS, value, &path),
            "nr_throttled" => sink.put(keys::CGROUP_CPU_THROTTLED, value, &path),
            "throttled_usec" => sink.put(keys::CGROUP_CPU_THROTTLED_US, value, &path),
            "throttled_time" => sink.put(keys::CGROUP_CPU_THROTTLED_US, value.map(|ns| ns / 1000), &path),
            _ => {}
        }
    }
    Ok(())
}

const ROOT: &str = "/sys/fs/cgroup";

/// Where the groups are. A process that `ip netns exec` started has a `/sys` without them (ip-netns(8)): root sees those of the nearest
/// process above it that has some.
fn root(context: &Context<'_>) -> String {
    const ABOVE: usize = 8;
    let parent = |process: &str| {
        let status = context.host.read(&format!("/proc/{process}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
        Some(line.trim().to_owned()).filter(|parent| parent != "0")
    };
    let empty = |root: &str| context.host.list(root).is_ok_and(|names| names.is_empty());
    let above = std::iter::successors(parent("self"), |process| parent(process)).take(ABOVE);
    let mut roots = above.map(|process| format!("/proc/{process}/root{ROOT}"));
    let has_some = |root: &String| context.host.list(root).is_ok_and(|names| !names.is_empty());
    Some(ROOT.to_owned()).filter(|root| !empty(root)).or_else(|| roots.find(has_some)).unwrap_or_else(|| ROOT.to_owned())
}

/// The lowest memory limit of the group and its parents, the memory of its sockets, and how often it was reached. Version 1 limits the
/// memory of TCP sockets by itself, and charges none where that limit is not set (`mm/memcontrol-v1.c`, `memcg_update_tcp_max`).
fn memory(context: &Context<'_>, sink: &mut Sink<'_>, groups: &str, root: &str) -> Result<(), Missing> {
    /// From this value on there is no limit: version 1 then writes the largest number of whole pages.
    const NONE: u64 = 1 << 62;
    let number = |group: &Group, name: &str| context.host.number::<u64>(&format!("{}/memory.{name}", group.directory));
    let limit = |group: &Group| {
        let files: &[&str] = if group.first { &["kmem.tcp.limit_in_bytes"] } else { &["high", "max"] };
        files.iter().filter_map(|name| number(group, name).ok()).filter(|bytes| *bytes < NONE).min()
    };
    let found = candidates(groups, "memory", root).into_iter();
    let (bytes, group) = found
        .filter_map(|group| Some((limit(&group)?, group)))
        .min_by_key(|(bytes, _)| *bytes)
        .ok_or_else(|| Missing::because("no control group of this process has a limit of the memory of its sockets"))?;
    let directory = &group.directory;
    sink.fact(keys::CGROUP_MEMORY_LIMIT, bytes, directory);
    if group.first {
        for (key, name) in
            [(keys::CGROUP_MEMORY_SOCK, "kmem.tcp.usage_in_bytes"), (keys::CGROUP_MEMORY_EVENTS, "kmem.tcp.failcnt")]
        {
            sink.put(key, number(&group, name), format!("{directory}/memory.{name}"));
        }
        return Ok(());
    }
    for (key, name, sum) in [
        (keys::CGROUP_MEMORY_SOCK, "stat", &["sock"] as &[&str]),
        // What the kernel did about it: reclaimed (`high`, `max`), or throttled the sockets (Linux 6.19).
        (keys::CGROUP_MEMORY_EVENTS, "events", &["high", "max", "sock_throttled"]),
        (keys::CGROUP_MEMORY_SCANNED, "stat", &["pgscan"]),
        (keys::CGROUP_MEMORY_RECLAIMED, "stat", &["pgsteal"]),
    ] {
        let path = format!("{directory}/memory.{name}");
        let total = context.host.read(&path).and_then(|text| total(&path, &text, sum));
        sink.put(key, total, path);
    }
    Ok(())
}

/// The sum of some items of a file; those that the kernel does not have count as none, but one is needed.
fn total(path: &str, text: &str, names: &[&str]) -> Result<i64, Missing> {
    let items = parse::key_values(path, text).filter(|(name, _)| names.contains(name));
    let numbers = items.map(|(_, value)| value).collect::<Result<Vec<i64>, Missing>>()?;
    let missing = || Missing::because(format!("{path} has no {}", names.join(", ")));
    numbers.into_iter().reduce(i64::saturating_add).ok_or_else(missing)
}

struct Group {
    directory: String,
    /// For cgroup v1, with a file each for quota and period, and limits of TCP memory.
    first: bool,
}

impl Group {
    fn quota_file(&self) -> String {
        format!("{}/{}", self.directory, if self.first { "cpu.cfs_quota_us" } else { "cpu.max" })
    }
}

/// The groups of a controller that the process is in, with all their parents, for both versions: a parent's limit applies to its children.
fn candidates(groups: &str, controller: &str, root: &str) -> Vec<Group> {
    let mut found = Vec::new();
    for (_, line) in parse::lines(groups) {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let (root, first) = if controllers.is_empty() {
            (root.to_owned(), false)
        } else if controllers.split(',').any(|one| one == controller) {
            (format!("{root}/{controllers}"), true)
        } else {
            continue;
        };
        let mut path = path.trim_end_matches('/');
        if path.contains("..") {
            continue; // a group outside of this process's view
        }
        for _ in 0..32 {
            found.push(Group { directory: format!("{root}{path}"), first });
            match path.rsplit_once('/') {
                Some((parent, _)) => path = parent,
                None => break,
            }
        }
    }
    found
}

/// In cores; none without a limit.
fn quota(context: &Context<'_>, group: &Group) -> Option<f64> {
    let text = context.host.word(&group.quota_file()).ok()?;
    let (quota, period) = if group.first {
        let period = context.host.number::<i64>(&format!("{}/cpu.cfs_period_us", group.directory)).ok()?;
        (text.parse::<i64>().ok()?, period)
    } else {
        let (quota, period) = text.split_once(' ')?;
        (quota.parse::<i64>().ok()?, period.trim().parse::<i64>().ok()?)
    };
    (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_and_its_parents_are_read_in_both_versions() {
        let of = |groups: &str, one| candidates(groups, one, ROOT).into_iter().map(|g| g.directory).collect::<Vec<_>>();
        let directories = |groups: &str| of(groups, "cpu");
        assert_eq!(directories("0::/a/b\n"), ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"]);
        assert_eq!(directories("4:memory:/x\n2:cpu,cpuacct:/\n"), ["/sys/fs/cgroup/cpu,cpuacct"]);
        let memory = of("4:memory:/x\n2:cpu,cpuacct:/\n", "memory");
        assert_eq!(memory, ["/sys/fs/cgroup/memory/x", "/sys/fs/cgroup/memory"]);
        assert_eq!(directories("0::/../../x\nnonsense\n"), [""; 0]);
    }

    #[test]
    fn events_of_memory_are_summed_whichever_a_kernel_has() {
        let text = "low 0\nhigh 12\nmax 3\noom 0\noom_kill 0\n";
        assert_eq!(total("memory.events", text, &["high", "max", "sock_throttled"]), Ok(15));
        assert!(total("memory.events", "low 0\n", &["high"]).expect_err("none").to_string().contains("has no high"));
        assert!(total("memory.events", "high many\n", &["high"]).is_err());
    }

    #[test]
    fn groups_that_a_network_namespace_hides_are_those_of_the_process_above() {
        let capture = tempfile::tempdir().expect("a directory");
        let write = |path: &str, text: &str| {
            let path = capture.path().join(path);
            narrows_sys::files::make_directory(path.parent().expect("a folder")).expect("made");
            narrows_sys::files::write_whole(&path, text.as_bytes(), 0o600).expect("written");
        };
        write(
            "meta.json",
            r#"{"format": "narrows.capture/1", "taken_unix_us": 0, "directories": {"/sys/fs/cgroup": [], "/proc/8/root/sys/fs/cgroup": []}}"#,
        );
        write("files/proc/self/cgroup", "1:cpu:/box\n");
        write("files/proc/self/status", "Name:\tnarrows\nPPid:\t8\n");
        write("files/proc/8/status", "Name:\tsh\nPPid:\t7\n");
        write("files/proc/7/status", "Name:\tsh\nPPid:\t0\n");
        write("files/proc/7/root/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "50000\n");
        write("files/proc/7/root/sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n");
        let host = crate::Recorded::open(capture.path()).expect("a capture");
        assert_eq!(crate::counters(&host, None).number(keys::CGROUP_CPU_QUOTA), Some(0.5));
    }

    #[test]
    fn version_1_limits_the_memory_of_tcp_sockets_alone() {
        let capture = tempfile::tempdir().expect("a directory");
        let write = |path: &str, text: &str| {
            let path = capture.path().join(path);
            narrows_sys::files::make_directory(path.parent().expect("a folder")).expect("made");
            narrows_sys::files::write_whole(&path, text.as_bytes(), 0o600).expect("written");
        };
        write("meta.json", r#"{"format": "narrows.capture/1", "taken_unix_us": 0}"#);
        write("files/proc/self/cgroup", "4:memory:/box/inner\n");
        for (file, number) in [
            ("memory.limit_in_bytes", "1000000"),
            ("inner/memory.kmem.tcp.limit_in_bytes", "9223372036854771712"),
            ("memory.kmem.tcp.limit_in_bytes", "4194304"),
            ("memory.kmem.tcp.usage_in_bytes", "4190208"),
            ("memory.kmem.tcp.failcnt", "42"),
        ] {
            write(&format!("files/sys/fs/cgroup/memory/box/{file}"), &format!("{number}\n"));
        }
        let host = crate::Recorded::open(capture.path()).expect("a capture");
        let read = crate::counters(&host, None);
        let keys = [keys::CGROUP_MEMORY_LIMIT, keys::CGROUP_MEMORY_SOCK, keys::CGROUP_MEMORY_EVENTS];
        assert_eq!(keys.map(|key| read.number(key)), [4_194_304.0, 4_190_208.0, 42.0].map(Some));
    }
}
