//! The CPU quota of the control group that this process is in, and how often it was throttled.
//! Source: kernel `Documentation/admin-guide/cgroup-v2.rst`, `Documentation/scheduler/sched-bwc.rst`.

use crate::collector::{Class, Collector, Context, Sink, always};
use crate::{Missing, parse};
use narrows_model::keys;

pub(super) const COLLECTOR: Collector = Collector {
    id: "cgroup",
    about: "CPU quota of the control group and throttling by it",
    provides: &[
        keys::CGROUP_CPU_QUOTA,
        keys::CGROUP_CPU_PERIODS,
        keys::CGROUP_CPU_THROTTLED,
        keys::CGROUP_CPU_THROTTLED_US,
    ],
    class: Class::Both,
    can_run: always,
    collect,
};

fn collect(context: &Context<'_>, sink: &mut Sink<'_>) -> Result<(), Missing> {
    let groups = context.host.read("/proc/self/cgroup")?;
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
}
