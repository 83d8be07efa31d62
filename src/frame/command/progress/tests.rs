//! Fixtures for the tests of all reporters.

use super::stage::{Stage, StageTracker};
use super::{PlannedPart, ProgressMonitor};
use crate::frame::run::{ProgressReport, TransferVolume};

pub(super) fn moved(who: &str, bytes: u64) -> TransferVolume {
    TransferVolume { who: who.into(), bytes, seconds: 1.0 }
}

pub(super) fn standing(stage: &str) -> ProgressReport {
    ProgressReport {
        what: "what".into(),
        stage: stage.into(),
        done_seconds: 15.0,
        all_seconds: 60.0,
        next_seconds: 5.0,
        ranks: 2,
        transferred: Vec::new(),
    }
}

/// Bytes moved before a stage is complete belong to it.
#[test]
fn parts_of_a_stage_are_combined() {
    let mut stages = StageTracker::default();
    let part = |stage: &str, last: Option<TransferVolume>| ProgressReport {
        transferred: last.into_iter().collect(),
        ..standing(stage)
    };
    assert_eq!(stages.part(&part("a", None), 1.0), None);
    assert_eq!(stages.part(&part("a", Some(moved("posix", 10))), 2.0), None);
    assert_eq!(stages.part(&part("a", Some(moved("mmap", 7))), 3.0), None);
    let over = stages.part(&part("b", Some(moved("posix", 30))), 5.0).unwrap();
    let posix = TransferVolume { who: "posix".into(), bytes: 40, seconds: 2.0 };
    assert_eq!(over, Stage { name: "a".into(), took_seconds: 4.0, moved: vec![posix, moved("mmap", 7)] });
    assert_eq!(stages.part(&part("c", None), 6.0).unwrap().moved, []);
}

/// 20 of 60 s are done in 20 s. The interrupted part counts with its time, at most as planned.
#[test]
fn an_interrupted_run_counts_the_completed_share() {
    let part = PlannedPart { done_seconds: 20.0, next_seconds: 10.0, all_seconds: 60.0, begin_seconds: 20.0 };
    let share = |elapsed_seconds| (100.0 * part.share_if_interrupted(elapsed_seconds)).round();
    assert_eq!([20.0, 25.0, 30.0].map(share), [33.0, 42.0, 50.0]);
    assert!(part.share_if_interrupted(200.0) < 0.6, "{}", part.share_if_interrupted(200.0));
    assert_eq!(PlannedPart::default().share_if_interrupted(0.0), 0.0);
    let mut progress = ProgressMonitor::silent();
    progress.part(&standing("a"));
    assert_eq!(progress.share_at_end(true, 1.0), 1.0);
    assert!(progress.share_at_end(false, 1.0) < 0.3);
    // Clean-up afterwards does not change the share.
    progress.measured(false, Vec::new());
    assert_eq!(Some(progress.share_at_end(false, 100.0)), progress.measured_share);
}
