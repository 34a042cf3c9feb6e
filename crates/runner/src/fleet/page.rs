//! What the page shows of a fleet, and what its readers ask of the controller.

use super::command::Command;
use super::keys::Keys;
use super::requests::Door;
use crate::server::refusal::Refused;
use crate::trust::same_secret;
use crate::web::gate::{Find, Gate, Known, Visitor};
use crate::web::site::Site;
use crate::web::source::{Ask, Now, Soon, Source};
use crate::web::{PageSpec, router};
use axum::Router;
use narrows_model::run::fleet::{FleetSeries, FleetSettings};
use narrows_model::run::grid::GridMetric;
use narrows_render::{fleet_settings, web};
use narrows_views::grid;
use narrows_wire::api::Reason;
use narrows_wire::token::Secret;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The requests of a page.
/// Errors: the header of the proxy has no valid name.
pub(super) fn page(keys: &Keys, name: &str, door: Arc<Door>, spec: &PageSpec) -> Result<Router, String> {
    let (users, readers) = (keys.identity.token.secret.clone(), keys.of_reader());
    let find: Find = Box::new(move |shown: &Secret| {
        // Both are compared always, so that the time does not tell which it is.
        let (is_user, is_reader) = (same_secret(shown, &users), same_secret(shown, &readers));
        let name = if is_user { "users" } else { "reader" };
        (is_user || is_reader).then(|| Known { name: name.to_owned(), may_change: is_user })
    });
    let source = OfFleet { name: name.to_owned(), door, turn: Semaphore::new(1) };
    let gate = Gate::new(&format!("fleet {name}"), find, spec.proxy.clone())?;
    Ok(router(Arc::new(Site::new(gate, Box::new(source), spec))))
}

struct OfFleet {
    name: String,
    door: Arc<Door>,
    /// One answer at a time: agents wait while the controller makes it.
    turn: Semaphore,
}

impl Source for OfFleet {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn tokens(&self) -> &'static str {
        "The token of its users, in the file that the controller names at its start, lets you acknowledge, mute and pause; that of a reader \
         shows the page and changes nothing."
    }

    fn now(&self) -> Soon<'_, Now> {
        Box::pin(async {
            let (status, paths) = self.door.looked(true).await?;
            // Of a large fleet this takes a moment, for which agents do not wait.
            crate::server::request::blocking(move || Now {
                front: web::of_fleet(&status),
                grids: GridMetric::ALL.map(|metric| grid::of_mesh(&status.mesh, metric, Some(&paths))).into(),
                status: Some(status),
            })
            .await
        })
    }

    fn series(&self, from: String, to: String, hours: u64) -> Soon<'_, Option<FleetSeries>> {
        Box::pin(async move {
            let _turn = self.turn.acquire().await.map_err(Refused::failed)?;
            let found =
                self.door.executed(Command::Series { from, to, last_ms: hours.saturating_mul(3_600_000) }).await?;
            serde_json::from_value(found).map(Some).map_err(Refused::failed)
        })
    }

    fn settings(&self, host: String) -> Soon<'_, Option<String>> {
        Box::pin(async move {
            let _turn = self.turn.acquire().await.map_err(Refused::failed)?;
            // A controller that stands by knows none, and shows the rest of the host all the same.
            let found = match self.door.executed(Command::Settings { host: host.clone() }).await {
                Ok(found) => serde_json::from_value::<Option<FleetSettings>>(found).map_err(Refused::failed)?,
                Err(refused) => return Ok(Some(fleet_settings::page(&host, Err(refused.sentence())))),
            };
            Ok(found.map(|it| fleet_settings::page(&host, Ok(&it))))
        })
    }

    fn note_entry(&self, from: Option<IpAddr>, entry: Result<&str, (Reason, &str)>) {
        self.door.audit.note_entry(from, entry);
    }

    fn act(&self, by: Visitor, ask: Ask) -> Soon<'_, String> {
        Box::pin(async move {
            let command = match ask {
                Ask::Acknowledge { incident, who } => Command::Acknowledge { incident, who },
                Ask::Mute { element, for_ms } => Command::Mute { element, for_ms },
                Ask::Pause { for_ms } => Command::Pause { for_ms },
                Ask::Test { from, to, .. } => Command::Run { mesh: None, between: Some([from, to]) },
                Ask::Stop { .. } | Ask::Undo { .. } => {
                    return Err(Refused::new(Reason::NotAllowed, "that is of a host's own page"));
                }
            };
            let done = self.door.asked(&by.known.name, by.from, command).await?;
            Ok(done.as_str().unwrap_or_default().to_owned())
        })
    }
}
