//! What the tests of all tellers need.

use super::stage::{Stage, Stages};
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
