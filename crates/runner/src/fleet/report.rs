//! What a controller answers who asks how its fleet is.

use super::command::now_ms;
use narrows_fleet::control::Control;
use narrows_fleet::plan::Fleet;
use narrows_fleet::truth::{Point, Truth};
use narrows_model::run::fleet::{
    AgentState, FleetHistory, FleetHost, FleetIncident, FleetPoint, FleetSeries, FleetStatus, FleetTests,
    HISTORY_SCHEMA, STATUS_SCHEMA,
};

/// What the tests of a path found.
pub(super) fn history(
    fleet: &Fleet,
    [from, to]: [String; 2],
    since_unix_ms: u64,
    found: Vec<((usize, usize), Vec<Point>)>,
) -> FleetHistory {
    let point = |it: Point| FleetPoint {
        at_unix_ms: it.due_ms,
        tests: it.tests,
        failed: it.failed,
        figures: it.figures,
        sent: it.packets[0],
        lost: it.packets[1],
    };
    let series = |((mesh, test), points): ((usize, usize), Vec<Point>)| FleetSeries {
        mesh: fleet.meshes[mesh].name.clone(),
        test: fleet.meshes[mesh].tests[test].word(),
        kind: fleet.meshes[mesh].tests[test].kind.word().to_owned(),
        points: points.into_iter().map(point).collect(),
    };
    let (schema, tests) = (HISTORY_SCHEMA.to_owned(), found.into_iter().map(series).collect());
    FleetHistory { schema, from, to, since_unix_ms, until_unix_ms: now_ms(), tests }
}

/// How a fleet is. The troubles: the store's, and that of alerts.
pub(super) fn status<T: Truth>(
    control: &mut Control<'_, T>,
    fleet: &Fleet,
    [trouble, alerts_trouble]: [Option<String>; 2],
) -> FleetStatus {
    let at = now_ms();
    let incident = |it: &narrows_fleet::incident::Incident| FleetIncident {
        number: it.number,
        element: it.element.clone(),
        says: it.says.clone(),
        since_unix_ms: it.since_ms,
        acknowledged: it.acknowledged.clone(),
        diagnosis: it.verdict.clone(),
    };
    let incidents = control.judge().open().into_iter().map(incident).collect();
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
    });
    let tests = control.counts().map(|((mesh, test), counts)| FleetTests {
        mesh: fleet.meshes[mesh].name.clone(),
        test: fleet.meshes[mesh].tests[test].word(),
        done: counts.done,
        failed: counts.failed,
        missed: counts.missed,
    });
    FleetStatus {
        schema: STATUS_SCHEMA.to_owned(),
        name: fleet.name.clone(),
        at_unix_ms: at,
        paused_until_unix_ms: control.paused(at),
        incidents,
        hosts: hosts.collect(),
        tests: tests.collect(),
        mesh: narrows_views::mesh::report(&control.record(at)),
        trouble,
        alerts_trouble,
    }
}
