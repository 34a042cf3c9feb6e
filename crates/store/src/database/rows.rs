//! What is read of a row, of which another program may have made any part too large.

use super::sql::{self, Cells, Value};
use crate::{LARGEST, body, filter};
use narrows_model::run::history::{Headline, StoredRun};

/// The columns of [`run_of`]. What others wrote may be of any length.
pub(super) const RUN: &str = "substr(id, 1, 4096), started_unix_us, substr(who, 1, 4096), substr(client, 1, 4096), substr(server, 1, 4096), \
                   substr(server_name, 1, 4096), substr(family, 1, 4096), substr(command, 1, 4096), substr(plan, 1, 4096), \
                   substr(verdict, 1, 4096), substr(made_by, 1, 4096), raw_bytes, stored_bytes";

/// The columns of [`figure_of`].
pub(super) const FIGURE: &str = "substr(name, 1, 256), value, substr(unit, 1, 256)";

/// Selects what a run is, and the columns of [`body_of`], of a run by its id. A body of more than [`LARGEST`] is left out.
pub(super) fn content() -> String {
    format!(
        "SELECT substr(kind, 1, 256), codec, substr(sha256, 1, 33), CASE WHEN length(body) <= {LARGEST} THEN body END
        FROM runs LEFT JOIN bodies ON run = number WHERE id = ?"
    )
}

pub(super) fn run_of(row: &mut Cells) -> sql::Result<StoredRun> {
    Ok(StoredRun {
        id: row.text()?,
        started_unix_us: row.integer()?.unsigned_abs(),
        who: row.text()?,
        client: row.text()?,
        server: row.text()?,
        server_name: row.text()?,
        family: row.text()?,
        command: row.text()?,
        plan: row.text()?,
        verdict: row.text()?,
        made_by: row.text()?,
        raw_bytes: row.integer()?.unsigned_abs(),
        stored_bytes: row.integer()?.unsigned_abs(),
        tags: Vec::new(),
        figures: Vec::new(),
    })
}

/// Name, value and unit; `None` where another program stored no number.
pub(super) fn figure_of(row: &mut Cells) -> sql::Result<Option<Headline>> {
    let figure = Headline { name: row.text()?, value: row.real()?, unit: filter::unit(&row.text()?) };
    Ok(Some(figure).filter(|figure| figure.value.is_finite()))
}

/// A body; `None` where the run has none, or one that is too large.
pub(super) fn body_of(row: &mut Cells) -> sql::Result<Option<body::Body>> {
    if row.0.contains(&Value::Null) {
        return Ok(None);
    }
    Ok(Some(body::Body { codec: row.integer()?, sha256: row.blob()?, bytes: row.blob()? }))
}
