//! A comparison as a picture: the values of each side, and how far each side is from the first.

use super::words::{figure, share};
use crate::svg::Canvas;
use crate::svg::rows::{self, Dots, Estimate, Place, estimates};
use crate::words::clean;
use narrows_model::run::compare::{CompareReport, CompareVerdict, ComparedFigure};

const WIDTH: f64 = 1080.0;
const LEFT: f64 = 200.0;
const HEAD: f64 = 84.0;
/// Room for the verdict beside its row.
const RIGHT: f64 = 190.0;

pub fn picture(report: &CompareReport) -> String {
    let high = |of: &ComparedFigure| 2.0 * rows::AROUND + rows::ROW * (of.samples.len() + of.comparisons.len()) as f64;
    let below = format!(
        "box: quartiles, line: median, dots from the first run above to the last below; {} % intervals, grey: same within {} %",
        report.level * 100.0,
        report.margin * 100.0
    );
    let high = HEAD + report.figures.iter().map(high).sum::<f64>();
    let mut canvas = Canvas::titled(WIDTH, high, "Samples and differences", &below);
    let mut top = HEAD;
    for of in &report.figures {
        top = one(&mut canvas, report, of, top);
    }
    canvas.finish()
}

fn one(canvas: &mut Canvas, report: &CompareReport, of: &ComparedFigure, top: f64) -> f64 {
    let dots: Vec<Dots<'_>> = of
        .samples
        .iter()
        .zip(&report.sides)
        .map(|(sample, side)| Dots {
            name: format!("{}  {}", side.label, clean(&side.name)),
            values: &sample.values,
            five: sample.five_numbers,
        })
        .collect();
    let place = Place { left: LEFT, top, wide: WIDTH - LEFT - RIGHT };
    let top = rows::dots(canvas, place, &clean(&of.name), &dots, |it| figure(of.unit, it));
    let relative = of.comparisons.iter().all(|it| it.ratio.is_some());
    let lines: Vec<Estimate> = of
        .comparisons
        .iter()
        .map(|it| Estimate {
            name: format!("{} against {}", it.side, report.sides.first().map_or("", |side| &side.label)),
            value: Some(if relative { it.ratio.unwrap_or(0.0) } else { it.ranks.difference }),
            interval: if relative { it.ratio_interval } else { it.ranks.interval },
            says: match it.verdict {
                CompareVerdict::Different => "different",
                CompareVerdict::Same => "the same",
                CompareVerdict::CannotTell => "cannot tell",
            }
            .to_owned(),
        })
        .collect();
    let place = Place { top, ..place };
    let same = relative.then_some(report.margin);
    estimates(canvas, place, "difference", &lines, same, |it| match it {
        _ if it.abs() < 1e-12 => "0".to_owned(),
        _ if relative => share(it),
        _ => figure(of.unit, it),
    })
}

#[cfg(test)]
mod tests {
    use crate::compare::tests;

    #[test]
    fn a_picture_has_each_value_and_each_difference() {
        let report = tests::report();
        let svg = super::picture(&report);
        let values: usize = report.figures.iter().flat_map(|it| &it.samples).map(|it| it.values.len()).sum();
        assert!(svg.matches("<circle").count() + svg.matches("<polygon").count() >= values, "{svg}");
        assert!(svg.contains("B against A") && svg.ends_with("</svg>\n"), "{svg}");
    }
}
