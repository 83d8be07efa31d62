//! What the tests of all tellers need.

use super::stage::{Stage, Stages};
use super::{Part, Progress};
use crate::frame::run::{Moved, Standing};

pub(super) fn moved(who: &str, bytes: u64) -> Moved {
    Moved { who: who.into(), bytes, seconds: 1.0 }
}

pub(super) fn standing(stage: &str) -> Standing {
    Standing {
        what: "what".into(),
        stage: stage.into(),
        done_seconds: 15.0,
        all_seconds: 60.0,
        next_seconds: 5.0,
        ranks: 2,
        last: Vec::new(),
    }
}

/// What is moved before a stage is over belongs to it.
#[test]
fn parts_of_a_stage_are_taken_together() {
    let mut stages = Stages::default();
    let part = |stage: &str, last: Option<Moved>| Standing { last: last.into_iter().collect(), ..standing(stage) };
    assert_eq!(stages.part(&part("a", None), 1.0), None);
    assert_eq!(stages.part(&part("a", Some(moved("posix", 10))), 2.0), None);
    assert_eq!(stages.part(&part("a", Some(moved("mmap", 7))), 3.0), None);
    let over = stages.part(&part("b", Some(moved("posix", 30))), 5.0).unwrap();
    let posix = Moved { who: "posix".into(), bytes: 40, seconds: 2.0 };
    assert_eq!(over, Stage { name: "a".into(), took_seconds: 4.0, moved: vec![posix, moved("mmap", 7)] });
    assert_eq!(stages.part(&part("c", None), 6.0).unwrap().moved, []);
}

/// 20 of 60 s are done in 20 s. Of the part that is cut the time counts that it took, but no more than planned.
#[test]
fn a_run_that_is_cut_has_done_what_it_has() {
    let part = Part { done_seconds: 20.0, next_seconds: 10.0, all_seconds: 60.0, begin_seconds: 20.0 };
    let share = |elapsed_seconds| (100.0 * part.share_if_cut(elapsed_seconds)).round();
    assert_eq!([20.0, 25.0, 30.0].map(share), [33.0, 42.0, 50.0]);
    assert!(part.share_if_cut(200.0) < 0.6, "{}", part.share_if_cut(200.0));
    assert_eq!(Part::default().share_if_cut(0.0), 0.0);
    let mut progress = Progress::silent();
    progress.part(&standing("a"));
    assert_eq!(progress.share_at_end(true, 1.0), 1.0);
    assert!(progress.share_at_end(false, 1.0) < 0.3);
    // What is cleaned up afterwards changes nothing.
    progress.measured(false, Vec::new());
    assert_eq!(Some(progress.share_at_end(false, 100.0)), progress.measured_share);
}
