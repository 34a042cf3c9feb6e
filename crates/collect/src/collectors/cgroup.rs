//! The CPU quota and the memory limit of the control group that this process is in, and how often they held it back.
//! Source: kernel `Documentation/admin-guide/cgroup-v2.rst`, `Documentation/scheduler/sched-bwc.rst`.

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
    ],
    class: Class::Both,
    can_run: always,
    collect,
};

fn collect(context: &Context<'_>, sink: &mut Sink<'_>) -> Result<(), Missing> {
    let groups = context.host.read("/proc/self/cgroup")?;
    if let Err(why) = memory(context, sink, &groups) {
        for key in [keys::CGROUP_MEMORY_LIMIT, keys::CGROUP_MEMORY_SOCK, keys::CGROUP_MEMORY_EVENTS] {
            sink.absent(key, &why);
        }
    }
    let mut lowest: Option<(f64, Group)> = None;
    for group in candidates(&groups) {
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

/// The lowest memory limit of the group and its parents (version 2), the memory of its sockets, and how often it was reached.
fn memory(context: &Context<'_>, sink: &mut Sink<'_>, groups: &str) -> Result<(), Missing> {
    let limit = |group: &Group| {
        let limit = |name| context.host.number::<u64>(&format!("{}/memory.{name}", group.directory)).ok();
        [limit("high"), limit("max")].into_iter().flatten().min()
    };
    let found = candidates(groups).into_iter().filter(|group| !group.first);
    let lowest = found.filter_map(|group| Some((limit(&group)?, group.directory))).min_by_key(|(bytes, _)| *bytes);
    let (bytes, directory) =
        lowest.ok_or_else(|| Missing::because("no control group of this process has a memory limit"))?;
    sink.fact(keys::CGROUP_MEMORY_LIMIT, bytes, &directory);
    for (key, name, sum) in [
        (keys::CGROUP_MEMORY_SOCK, "stat", &["sock"] as &[&str]),
        // What the kernel did about it: reclaimed (`high`, `max`), or throttled the sockets (Linux 6.19).
        (keys::CGROUP_MEMORY_EVENTS, "events", &["high", "max", "sock_throttled"]),
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
    /// For cgroup v1, with a file each for quota and period.
    first: bool,
}

impl Group {
    fn quota_file(&self) -> String {
        format!("{}/{}", self.directory, if self.first { "cpu.cfs_quota_us" } else { "cpu.max" })
    }
}

/// The groups of the process with all their parents, for both versions: a parent's quota applies to its children.
fn candidates(groups: &str) -> Vec<Group> {
    let mut found = Vec::new();
    for (_, line) in parse::lines(groups) {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let (root, first) = if controllers.is_empty() {
            ("/sys/fs/cgroup".to_owned(), false)
        } else if controllers.split(',').any(|controller| controller == "cpu") {
            (format!("/sys/fs/cgroup/{controllers}"), true)
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
#[allow(clippy::cast_precision_loss)]
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
        let directories = |groups: &str| candidates(groups).into_iter().map(|g| g.directory).collect::<Vec<_>>();
        assert_eq!(directories("0::/a/b\n"), ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"]);
        assert_eq!(directories("4:memory:/x\n2:cpu,cpuacct:/\n"), ["/sys/fs/cgroup/cpu,cpuacct"]);
        assert_eq!(directories("0::/../../x\nnonsense\n"), [""; 0]);
    }

    #[test]
    fn events_of_memory_are_summed_whichever_a_kernel_has() {
        let text = "low 0\nhigh 12\nmax 3\noom 0\noom_kill 0\n";
        assert_eq!(total("memory.events", text, &["high", "max", "sock_throttled"]), Ok(15));
        assert!(total("memory.events", "low 0\n", &["high"]).expect_err("none").to_string().contains("has no high"));
        assert!(total("memory.events", "high many\n", &["high"]).is_err());
    }
}
