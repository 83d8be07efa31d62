use super::*;
use crate::frame::records::RunOutcome;
use RequirementVerdict::{Fail, Pass, Undecided};

fn quantity(value: f64, interval: Option<[f64; 2]>) -> MeasuredFigure {
    MeasuredFigure::new("write", FigureKind::Quantity, value, interval)
}

fn exact(value: f64) -> MeasuredFigure {
    MeasuredFigure::new("", FigureKind::Exact, value, None)
}

fn required(limit: Limit, figures: Vec<MeasuredFigure>) -> RequiredFigures {
    RequiredFigures { line: 3, requirement: "value >= 5 GB/s".into(), unit: "GB/s".into(), limit, figures }
}

fn verdict(limit: Limit, figure: MeasuredFigure) -> RequirementVerdict {
    judge_line(&required(limit, vec![figure])).verdict
}

/// The whole interval decides, its ends included.
#[test]
fn the_interval_is_compared_with_the_limit() {
    let least = |low, high| verdict(Limit::AtLeast(5.0), quantity(5.5, Some([low, high])));
    assert_eq!(least(5.0, 6.0), Pass, "the limit itself satisfies it");
    assert_eq!(least(4.999, 6.0), Undecided);
    assert_eq!(least(4.0, 5.0), Undecided, "the upper end satisfies it");
    assert_eq!(least(4.0, 4.999), Fail);
    let most = |low, high| verdict(Limit::AtMost(5.0), quantity(5.5, Some([low, high])));
    assert_eq!([most(4.0, 5.0), most(4.0, 5.1), most(5.0, 6.0), most(5.1, 6.0)], [Pass, Undecided, Undecided, Fail]);
    // Reports show no interval that is wider than a factor of two, so it proves nothing.
    assert_eq!([least(6.0, 12.0), least(6.0, 12.1), least(1.0, 2.1)], [Pass, Undecided, Undecided]);
}

#[test]
fn without_a_figure_or_its_interval_nothing_is_decided() {
    let limit = Limit::AtLeast(5.0);
    assert_eq!(verdict(limit, quantity(9.0, None)), Undecided);
    assert_eq!(verdict(limit, quantity(f64::NAN, Some([6.0, 7.0]))), Undecided);
    assert_eq!(verdict(limit, MeasuredFigure::absent("", FigureKind::Exact, "none")), Undecided);
    assert_eq!(verdict(limit, quantity(6.0, Some([6.0, 6.5])).blocked_by(Some("not valid".into()))), Undecided);
    assert_eq!(verdict(limit, quantity(6.0, Some([6.0, 6.5])).blocked_by(None)), Pass);
    assert_eq!([verdict(limit, exact(5.0)), verdict(limit, exact(4.9))], [Pass, Fail]);
    let spread = |value| MeasuredFigure::new("", FigureKind::HalfWidth { of: Some(1.0) }, value, None);
    assert_eq!([5.0, 5.1].map(|percent| verdict(Limit::AtMost(5.0), spread(percent))), [Pass, Fail]);
}

#[test]
fn a_run_in_doubt_decides_nothing_but_wrong_data_fails() {
    for doubt in [
        Doubt::Shared { other_process_share: 0.2, steal_share: 0.0 },
        Doubt::Cut { outcome: RunOutcome::Interrupted },
        Doubt::StorageDrift { access: "read".into(), ratio: 0.5 },
        Doubt::TooShort { factor: 3.0 },
    ] {
        let with = |figure: MeasuredFigure| MeasuredFigure { doubts: vec![doubt.clone()], ..figure };
        let of = |figure| verdict(Limit::AtLeast(5.0), with(figure));
        assert_eq!(of(quantity(9.0, Some([8.0, 10.0]))), Undecided, "{doubt:?}");
        assert_eq!(of(quantity(1.0, Some([0.9, 1.1]))), Undecided, "{doubt:?}");
        assert_eq!(of(exact(0.0).settled(Pass, "all correct")), Undecided);
        assert_eq!(of(exact(3.0).settled(Fail, "wrong data")), Fail);
    }
}

#[test]
fn the_worst_figure_is_that_of_the_requirement() {
    let [good, open, bad] = [[6.0, 7.0], [4.0, 6.0], [1.0, 1.1]].map(|ends| quantity(ends[0], Some(ends)));
    let of = |figures: &[&MeasuredFigure]| {
        judge_line(&required(Limit::AtLeast(5.0), figures.iter().map(|f| (*f).clone()).collect())).verdict
    };
    assert_eq!(
        [of(&[&good, &good]), of(&[&good, &open]), of(&[&open, &bad]), of(&[])],
        [Pass, Undecided, Fail, Undecided]
    );
    let lines = [vec![good.clone()], vec![bad], vec![open]].map(|figures| required(Limit::AtLeast(5.0), figures));
    let acceptance = Acceptance::of(&lines).unwrap();
    assert_eq!((acceptance.verdict, [Pass, Fail, Undecided].map(|v| acceptance.count(v))), (Fail, [1, 1, 1]));
    assert_eq!(Acceptance::of(&lines[..1]).unwrap().verdict, Pass);
    assert_eq!(Acceptance::of(&[]), None);
}

/// Student's t of two degrees of freedom is 4.303.
#[test]
fn several_runs_have_the_interval_of_their_scatter() {
    let runs = |values: &[f64]| -> Vec<Vec<RequiredFigures>> {
        // An interval within a run that would decide it.
        let line = |v: &f64| vec![required(Limit::AtLeast(5.0), vec![quantity(*v, Some([0.99 * v, 1.01 * v]))])];
        values.iter().map(line).collect()
    };
    let of = |values: &[f64]| Acceptance::of(&combine(&runs(values))).unwrap();
    let three = of(&[6.0, 6.06, 5.94]);
    let figure = &three.requirements[0].figures[0];
    let [low, high] = figure.interval.unwrap();
    assert_eq!((three.verdict, three.requirements[0].figures.len()), (Pass, 1));
    assert!((figure.value.unwrap() - 6.0).abs() < 0.01 && (high / low).ln() > 0.045 && (high / low).ln() < 0.055);
    assert_eq!([of(&[6.0, 7.0, 4.0]).verdict, of(&[3.0, 3.01, 3.02]).verdict], [Undecided, Fail]);
    let two = of(&[6.0, 6.0]);
    assert_eq!(two.verdict, Undecided);
    assert!(two.requirements[0].figures[0].note.as_deref().unwrap().contains("2 runs have no interval, 3 are needed"));
    // One run stands for itself.
    assert_eq!(of(&[6.0]).verdict, Pass);
}

#[test]
fn exact_figures_stand_for_each_run_and_spreads_for_all() {
    let time = |seconds: f64| vec![required(Limit::AtLeast(900.0), vec![exact(seconds)])];
    let all = Acceptance::of(&combine(&[time(900.0), time(60.0), time(900.0)])).unwrap();
    let figures = &all.requirements[0].figures;
    assert_eq!(figures.iter().map(|f| f.verdict).collect::<Vec<_>>(), [Pass, Fail, Pass]);
    assert_eq!((all.verdict, figures[1].subject.as_str()), (Fail, "run 2"));

    let kind = |of| FigureKind::HalfWidth { of };
    let spread =
        |of| vec![required(Limit::AtMost(5.0), vec![MeasuredFigure::absent("", kind(Some(of)), "no repetitions")])];
    let all = combine(&[spread(100.0), spread(101.0), spread(99.0)]);
    // 4.303 * 0.01 / sqrt(3) = 2.5 %.
    assert!((all[0].figures[0].value.unwrap() - 2.5).abs() < 0.05, "{all:?}");
    assert_eq!(Acceptance::of(&all).unwrap().verdict, Pass);
    let unknown = vec![required(Limit::AtMost(5.0), vec![MeasuredFigure::absent("", kind(None), "not measured")])];
    let all = combine(&[spread(100.0), unknown, spread(99.0)]);
    assert_eq!(all[0].figures[0].note.as_deref(), Some("run 2: not measured"));
    assert_eq!(Acceptance::of(&all).unwrap().verdict, Undecided);
}

#[test]
fn a_doubtful_or_invalid_run_among_several_leaves_all_open() {
    let run = |change: fn(MeasuredFigure) -> MeasuredFigure| {
        vec![required(Limit::AtLeast(5.0), vec![change(quantity(6.0, Some([5.9, 6.1])))])]
    };
    let of = |change| Acceptance::of(&combine(&[run(|f| f), run(change), run(|f| f)])).unwrap();
    assert_eq!(of(|f| f).verdict, Pass);
    let shared = |f| MeasuredFigure { doubts: vec![Doubt::Shared { other_process_share: 0.2, steal_share: 0.0 }], ..f };
    assert_eq!(of(shared).verdict, Undecided);
    // The scatter of the runs replaces what is uncertain within one.
    assert_eq!(of(|f| MeasuredFigure { doubts: vec![Doubt::TooShort { factor: 3.0 }], ..f }).verdict, Pass);
    let invalid = of(|f| f.blocked_by(Some("not valid: too short".into())));
    assert_eq!(invalid.requirements[0].figures[0].note.as_deref(), Some("run 2: not valid: too short"));
    assert_eq!(invalid.verdict, Undecided);
}
