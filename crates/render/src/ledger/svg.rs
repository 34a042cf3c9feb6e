//! The packet ledger as a picture: delivered and lost packets to scale on top; below it the lost part,
//! stage by stage.

use super::rows::{Dropped, balances, dropped, missing, names, silent};
use crate::figures::{float, grouped, grouped_signed, ratio, success, tick};
use crate::svg::{Anchor, Canvas, Font, Panel, Scale, Stroke, palette};
use crate::words::{clean, ends};
use narrows_model::Ledger;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 40.0;
const ROW: f64 = 40.0;

/// The picture of one flow's ledger.
pub fn waterfall(ledger: &Ledger) -> String {
    let rows = dropped(ledger);
    let unexplained = !balances(ledger);
    let (silent, blind) = silent(ledger);
    let notes = usize::from(!silent.is_empty()) + usize::from(!blind.is_empty());
    let lines = rows.len() + usize::from(unexplained && ledger.unexplained > 0);
    let waterfall = if lines > 0 { float(lines as u64) * ROW + 92.0 } else { 0.0 };
    let height = 142.0 + waterfall + float(notes as u64) * 18.0;
    let unit = clean(&ledger.unit);
    let way = format!("{} ({})", ledger.flow.direction(), ends(ledger.flow));
    let title = format!("Packet ledger ({unit}), {way}");
    let subtitle = format!(
        "{} offered, {} delivered ({}); unexplained {} ± {}",
        grouped(ledger.offered),
        grouped(ledger.delivered),
        success(float(ledger.delivered) / float(ledger.offered.max(1))),
        grouped_signed(ledger.unexplained),
        grouped(ledger.uncertainty)
    );
    let mut canvas = Canvas::titled(WIDTH, height, &title, &subtitle);
    let missing = missing(ledger);
    whole(&mut canvas, ledger, missing);
    if lines > 0 {
        stages(&mut canvas, ledger, &rows, missing, float(lines as u64) * ROW);
    }
    let mut y = height - 16.0 - float(notes.saturating_sub(1) as u64) * 18.0;
    let room = WIDTH - 48.0;
    for (lead, stages) in [("No drops: ", &silent), ("Not counted: ", &blind)] {
        if !stages.is_empty() {
            canvas.text((24.0, y), &Font::SMALL.fit(&format!("{lead}{}", names(stages)), room), Font::SMALL);
            y += 18.0;
        }
    }
    canvas.finish()
}

/// All offered packets as one bar.
fn whole(canvas: &mut Canvas, ledger: &Ledger, missing: u64) {
    let wide = WIDTH - LEFT - RIGHT;
    let (top, high) = (86.0, 30.0);
    let total = float(ledger.offered.max(ledger.delivered.saturating_add(missing)).max(1));
    let arrived = wide * float(ledger.delivered) / total;
    canvas.text((LEFT - 14.0, top + 20.0), "all offered", Font::LABEL.anchored(Anchor::End));
    canvas.rect([LEFT, top, arrived, high], palette::GREEN, &format!("delivered {}", grouped(ledger.delivered)));
    if missing > 0 {
        // Thick enough to be seen.
        let gone = (wide * float(missing) / total).max(2.0);
        canvas.rect(
            [LEFT + wide - gone, top, gone, high],
            palette::VERMILION,
            &format!("missing {}", grouped(missing)),
        );
        if ledger.delivered > 0 {
            // The two lines that enlarge the lost part into the waterfall below.
            let guide = Stroke { color: palette::AXIS, width: 1.0, dash: "3 3" };
            canvas.line([LEFT + wide - gone, top + high, LEFT, top + high + 52.0], guide);
            canvas.line([LEFT + wide, top + high, LEFT + wide, top + high + 52.0], guide);
        }
    }
    let inside = Font::LABEL.bold().color(palette::PAPER);
    let text = format!("delivered {}", grouped(ledger.delivered));
    if arrived > Font::LABEL.bold().width(&text) + 20.0 {
        canvas.text((LEFT + 10.0, top + 20.0), &text, inside);
    }
}

fn stages(canvas: &mut Canvas, ledger: &Ledger, rows: &[Dropped<'_>], missing: u64, high: f64) {
    let xs = Scale::Linear(0.0, float(missing.max(1)));
    let panel = Panel { left: LEFT, top: 168.0, wide: WIDTH - LEFT - RIGHT, high, xs, ys: Scale::Linear(0.0, 1.0) };
    let ticks = xs.ticks(7.0);
    let whole: Vec<f64> = ticks.into_iter().filter(|tick| tick.fract() == 0.0).collect();
    panel.axis_x(canvas, &whole, &format!("{} missing", clean(&ledger.unit)), tick);
    let mut y = panel.top;
    let mut end = panel.left;
    for row in rows {
        let stage = row.stage;
        let (from, to) = (panel.x(float(row.before)), panel.x(float(row.before.saturating_add(stage.dropped))));
        let error = if stage.uncertainty > 0 { format!(" ± {}", grouped(stage.uncertainty)) } else { String::new() };
        let about = if stage.counted { "" } else { "about " };
        let label = format!(
            "{about}{}{error}, {}",
            grouped(stage.dropped),
            ratio(float(stage.dropped) / float(ledger.offered.max(1)))
        );
        one(
            canvas,
            &panel,
            [y, from, to, end],
            [&clean(&stage.id), stage.at.word(), &label, &clean(&stage.source)],
            palette::VERMILION,
        );
        (y, end) = (y + ROW, to);
    }
    if let Ok(unexplained @ 1..) = u64::try_from(ledger.unexplained)
        && !balances(ledger)
    {
        let to = (end + panel.wide * float(unexplained) / float(missing.max(1))).min(panel.right());
        let label = format!("{} ± {}", grouped(unexplained), grouped(ledger.uncertainty));
        let words = ["unexplained", "", label.as_str(), "no counter accounts for them"];
        one(canvas, &panel, [y, end, to, end], words, palette::PURPLE);
    }
}

/// One row: its name and place, its bar, its count, and a thin line down from the bar before it.
fn one(
    canvas: &mut Canvas,
    panel: &Panel,
    [y, from, to, end]: [f64; 4],
    [name, at, label, source]: [&str; 4],
    color: &'static str,
) {
    let wide = (to - from).max(2.0);
    canvas.text((LEFT - 14.0, y + 18.0), name, Font::LABEL.bold().anchored(Anchor::End));
    canvas.text((LEFT - 14.0, y + 32.0), at, Font::SMALL.anchored(Anchor::End));
    if y > panel.top {
        canvas.line([end, y - 8.0, end, y + 8.0], Stroke::new(palette::AXIS, 1.0));
    }
    canvas.rect([from, y + 8.0, wide, ROW - 16.0], color, &format!("{name}: {label} ({source})"));
    panel.bar_label(canvas, [from, wide, y + ROW / 2.0 + 4.0], label, 10.0);
}
