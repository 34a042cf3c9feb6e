//! What a controller answers who asks how its fleet is.

use super::command::{Later, now_ms};
use narrows_fleet::control::Control;
use narrows_fleet::plan::Fleet;
use narrows_fleet::truth::Truth;
use narrows_model::run::fleet::{
    AgentState, FleetHost, FleetIncident, FleetMute, FleetPaths, FleetStatus, FleetTests, STATUS_SCHEMA,
};

/// How a fleet is, and which paths are tested. What this means of a million paths takes seconds, for which no agent waits: the thread that
/// decides only copies what it knows. The troubles: the store's, and that of alerts.
pub(super) fn look<T: Truth>(
    control: &mut Control<'_, T>,
    fleet: &Fleet,
    with_paths: bool,
    [trouble, alerts_trouble]: [Option<String>; 2],
) -> Later {
    let at = now_ms();
    let incident = |it: &narrows_fleet::incident::Incident| FleetIncident {
        number: it.number,
        element: it.element.clone(),
        says: it.says.clone(),
        since_unix_ms: it.since_ms,
        acknowledged: it.acknowledged.clone(),
        diagnosis: it.verdict.clone(),
        reported: it.reported,
    };
    let incidents = control.judge().open().into_iter().map(incident).collect();
    let mute = |(element, until_unix_ms): &(String, u64)| FleetMute {
        element: element.clone(),
        until_unix_ms: *until_unix_ms,
    };
    let muted = control.judge().incidents().muted().iter().filter(|(_, until)| *until > at).map(mute).collect();
    let groups = fleet.hosts.values().map(|host| host.group.clone());
    let hosts = control.agents().zip(groups).enumerate().map(|(nth, (member, group))| FleetHost {
        name: member.name.to_owned(),
        group,
        state: match (member.version.is_some(), control.is_silent(nth, at)) {
            _ if member.drained => AgentState::Drained,
            (false, _) => AgentState::Never,
            (true, true) => AgentState::Silent,
            (true, false) => AgentState::Up,
        },
        address: member.from.map(|from| from.to_string()),
        version: member.version.map(str::to_owned),
        heard_unix_ms: member.version.map(|_| member.heard_ms),
        clock_behind_ms: member.behind_ms,
        clock_error_us: member.clock_error_us,
        loaded_unix_ms: member.last_ms[0],
        probed_unix_ms: member.last_ms[1],
    });
    let tests = control.counts().map(|((mesh, test), counts)| FleetTests {
        mesh: fleet.meshes[mesh].name.clone(),
        test: fleet.meshes[mesh].tests[test].word(),
        done: counts.done,
        failed: counts.failed,
        missed: counts.missed,
    });
    let (hosts, tests): (Vec<FleetHost>, Vec<FleetTests>) = (hosts.collect(), tests.collect());
    let (name, paused_until_unix_ms) = (fleet.name.clone(), control.paused(at));
    let (record, paths) = (control.record(at), if with_paths { control.paths() } else { FleetPaths::default() });
    Box::new(move || {
        let status = FleetStatus {
            schema: STATUS_SCHEMA.to_owned(),
            name,
            at_unix_ms: at,
            paused_until_unix_ms,
            incidents,
            hosts,
            tests,
            mesh: narrows_views::mesh::report(&record),
            trouble,
            alerts_trouble,
            muted,
        };
        (status, paths)
    })
}
