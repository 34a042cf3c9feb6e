//! The sweep: its report, tables, CSV and picture.

use crate::samples;

use narrows_model::run::measure::{EndCpu, HostCpu};
use narrows_model::run::sweep::*;
use narrows_model::*;
use narrows_render::{Style, sweep};
use narrows_views as views;
use samples::same::reads_back;
use samples::udp::run_view;

const SIZES: [u32; 12] = [100, 500, 1000, 1500, 2000, 3000, 4000, 5000, 6000, 7000, 8500, 8900];
/// Sending, receiving and lossless, Gbit/s: the table that this one is to better.
const GBITS: [[f64; 3]; 12] = [
    [0.260, 0.260, 0.260],
    [1.18, 1.12, 1.00],
    [2.34, 2.21, 2.00],
    [3.29, 3.17, 3.00],
    [4.19, 4.10, 4.00],
    [5.87, 5.00, 4.80],
    [7.21, 6.00, 5.90],
    [7.90, 7.86, 7.80],
    [8.96, 8.81, 8.00],
    [9.90, 9.70, 9.33],
    [9.90, 9.90, 9.90],
    [9.90, 9.90, 9.90],
];

fn cpu(user: f64, system: f64, softirq: f64) -> Option<EndCpu> {
    let host = HostCpu { cores: 2, user, system, softirq, steal: 0.0, idle: 2.0 - user - system - softirq };
    Some(EndCpu { busiest: None, busy_cores: None, data_threads_cores: None, host: Some(host) })
}

fn point(cell: SweepCell) -> SweepPoint {
    let at = SIZES.iter().position(|size| *size == cell.size_bytes).expect("a size");
    let [sent, got, lossless] = GBITS[at];
    let bits = f64::from(cell.size_bytes) * 8.0;
    // The repetitions are some per cent apart, TCP is slower down than up, UDP is not.
    let wobble = 1.0 + f64::from(cell.repetition) * 0.004;
    let udp = cell.protocol == SweepProtocol::Udp;
    let figures = |flow: Flow| {
        let slower = if !udp && flow == Flow::Down { 0.8 } else { 1.0 };
        let [sent, got, lossless] =
            [sent, got, lossless].map(|gbits| gbits * 1e9 * wobble * slower * if udp { 1.0 } else { 0.75 });
        let (sent, got) = if udp { (sent, got) } else { (got, got) };
        SweepFigures {
            flow,
            sending_bps: Some(sent),
            sending_pps: Some(sent / bits),
            receiving_bps: Some(got),
            receiving_pps: udp.then_some(got / bits),
            unsent: udp.then_some(at as u64 * 37_000),
            lost: udp.then_some(((sent - got) / bits) as u64),
            loss: udp.then_some((sent - got) / sent),
            delay_growth_us: None,
            lossless: udp.then(|| Lossless {
                lower_bps: Some(lossless),
                lower_pps: Some(lossless / bits),
                upper_bps: Some(lossless * 1.005),
                upper_pps: Some(lossless * 1.005 / bits),
                remark: (cell.size_bytes == 8900).then(|| "at the calibrated maximum of the tester".to_owned()),
            }),
            segmentation_offload: udp.then_some(cell.size_bytes < 1_000),
            sender: cpu(0.147 - 0.001 * at as f64, 0.379 + 0.01 * at as f64, 0.05),
            receiver: cpu(0.133, 0.535 - 0.008 * at as f64, 0.31),
        }
    };
    let outcome = if cell.size_bytes == 8500 && !udp {
        SweepOutcome::CannotRun("the server refused the connection".into())
    } else {
        SweepOutcome::Measured(cell.direction.flows().iter().map(|flow| figures(*flow)).collect())
    };
    SweepPoint { cell, at_us: 0, took_us: if udp { 31_000_000 } else { 10_500_000 }, outcome }
}

fn record(repetitions: u32, directions: Vec<Direction>) -> SweepRecord {
    let plan = SweepPlan { sizes: SIZES.to_vec(), repetitions, directions, ..SweepPlan::default() };
    let points = plan.cells().map(point).collect();
    SweepRecord { plan, points, ending: Ending::Complete }
}

fn up_and_down() -> SweepReport {
    views::sweep::build(&record(3, vec![Direction::Up, Direction::Down]), run_view())
}

#[test]
fn rows_are_medians_in_the_plans_order() {
    let report = up_and_down();
    assert_eq!((report.rows.len(), report.planned, report.done), (48, 144, 144));
    let row = &report.rows[1];
    assert_eq!((row.protocol, row.flow, row.size_bytes), (SweepProtocol::Udp, Flow::Up, 500));
    let got = row.receiving_bps.expect("it was measured");
    assert!((got.median - 1.12e9 * 1.004).abs() < 1.0 && got.n == 3, "{got:?}");
    assert_eq!(row.unsent, Some(3 * 37_000));
    let refused = report.rows.iter().find(|row| row.protocol == SweepProtocol::Tcp && row.size_bytes == 8500);
    let refused = refused.expect("it is in the table");
    assert_eq!(refused.receiving_bps, None);
    assert_eq!(refused.remarks, ["the server refused the connection"]);
}

#[test]
fn datagrams_that_left_in_batches_are_no_packets_and_the_report_says_so() {
    let report = up_and_down();
    let of = |protocol| report.rows.iter().filter(move |row| row.protocol == protocol);
    assert!(of(SweepProtocol::Udp).all(|row| row.segmentation_offload == Some(row.size_bytes < 1_000)));
    assert!(of(SweepProtocol::Tcp).all(|row| row.segmentation_offload.is_none()));
    let text = sweep::text(&report, Style::default());
    let sizes: Vec<String> = SIZES.iter().filter(|size| **size < 1_000).map(ToString::to_string).collect();
    let said = format!("UDP segmentation offload at {} B: ", sizes.join(", "));
    assert_eq!(text.matches(&said).count(), 2, "once for each direction: {text}");
}

#[test]
fn both_directions_are_compared() {
    let report = up_and_down();
    let of = |protocol, figure: &str| -> Vec<&Symmetry> {
        report.symmetry.iter().filter(|it| it.protocol == protocol && it.figure == figure).collect()
    };
    assert_eq!(of(SweepProtocol::Udp, "receiving").len(), 12);
    assert!(of(SweepProtocol::Udp, "lossless").iter().all(|it| !it.differs && (it.ratio - 1.0).abs() < 1e-9));
    let tcp = of(SweepProtocol::Tcp, "receiving");
    assert_eq!(tcp.len(), 11, "what cannot run is not compared");
    assert!(tcp.iter().all(|it| it.differs && (it.ratio - 0.8).abs() < 1e-6 && it.interval.is_some()));
    let single = views::sweep::build(&record(1, vec![Direction::Both]), run_view());
    let tcp: Vec<_> = single.symmetry.iter().filter(|it| it.protocol == SweepProtocol::Tcp).collect();
    assert!(tcp.iter().all(|it| it.at_once && it.differs && it.interval.is_none()));
    assert!(views::sweep::build(&record(1, vec![Direction::Up]), run_view()).symmetry.is_empty());
}

#[test]
fn table_of_both_directions() {
    insta::assert_snapshot!(sweep::text(&up_and_down(), Style { width: 116, ..Style::default() }));
}

#[test]
fn table_at_eighty_columns_of_an_interrupted_sweep() {
    let mut record = record(1, vec![Direction::Both]);
    record.points.truncate(7);
    record.plan.protocols = vec![SweepProtocol::Udp];
    let mut run = run_view();
    run.ending = Ending::Interrupted;
    let text = sweep::text(&views::sweep::build(&record, run), Style { width: 80, ..Style::default() });
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!(text);
    let text = sweep::text(&up_and_down(), Style { width: 60, ..Style::default() });
    assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
}

#[test]
fn comma_separated() {
    let text = sweep::csv::table(&up_and_down());
    let width = text.lines().next().map(|line| line.split(',').count());
    assert!(text.lines().all(|line| Some(line.split(',').count()) == width), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn as_json_it_reads_back() {
    reads_back(&up_and_down());
    reads_back(&record(2, vec![Direction::Up]));
}

#[test]
fn picture() {
    insta::assert_snapshot!("sweep.svg", sweep::svg::picture(&up_and_down()));
}

#[test]
fn what_a_sender_without_a_brake_sent_has_a_scale_of_its_own() {
    let mut record = record(1, vec![Direction::Up, Direction::Down]);
    let height = |record: &SweepRecord| {
        let picture = sweep::svg::picture(&views::sweep::build(record, run_view()));
        let lossless: Vec<String> =
            picture.lines().filter(|line| line.contains("without loss")).map(str::to_owned).collect();
        (lossless, picture)
    };
    let (paced, picture) = height(&record);
    assert!(!picture.contains("Sent, bit/s"));
    for point in &mut record.points {
        if let (SweepProtocol::Udp, SweepOutcome::Measured(flows)) = (point.cell.protocol, &mut point.outcome) {
            for flow in flows {
                (flow.sending_bps, flow.sending_pps) =
                    (flow.sending_bps.map(|it| it * 20.0), flow.sending_pps.map(|it| it * 20.0));
            }
        }
    }
    let (unpaced, picture) = height(&record);
    assert!(picture.contains("Sent, bit/s") && picture.contains("sent (lower plot)"));
    // The marks of what arrived are where they were before, not pressed to the axis.
    assert!(!paced.is_empty() && paced == unpaced);
    insta::assert_snapshot!("sweep-apart.svg", picture);
}

#[test]
fn picture_of_one_size_and_of_nothing() {
    let mut one = record(1, vec![Direction::Up]);
    one.plan.sizes = vec![1500];
    one.points.retain(|point| point.cell.size_bytes == 1500);
    assert!(sweep::svg::picture(&views::sweep::build(&one, run_view())).ends_with("</svg>\n"));
    one.points.clear();
    let nothing = views::sweep::build(&one, run_view());
    assert!(sweep::svg::picture(&nothing).contains("0 of 2 points"));
    assert!(nothing.rows.is_empty());
}

#[test]
fn progress_says_what_is_left() {
    let mut record = record(1, vec![Direction::Up]);
    record.points.truncate(2);
    assert_eq!(
        sweep::progress::line(&record, Style::default()),
        "[ 2/24] UDP up 500 B  1.12 Gbit/s 280 kpps, lost 5.1 %, lossless 1.00 Gbit/s  12 min left\n"
    );
    record.points.clear();
    assert_eq!(sweep::progress::line(&record, Style::default()), "");
}
