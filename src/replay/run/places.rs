//! Where the calls of a rank touch its files.

use beff_trace::layout::Layouts;
use beff_trace::places::{Access, Placed, Tracker};
use beff_trace::{Call, Function};

/// Where the data of a call lies in its file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Places {
    pub access: Option<Access>,
    /// Why nobody knows, if it moves data.
    pub unknown: Option<&'static str>,
}

/// Follows the pointers and views of one rank.
pub(super) struct Finder<'a>(Tracker<'a>);

impl<'a> Finder<'a> {
    /// Before the first call.
    pub fn new(layouts: &'a Layouts) -> Self {
        Self(Tracker::new(layouts))
    }

    /// Where the next call moves its data.
    pub fn take(&mut self, call: &Call) -> Places {
        let placed = self.0.place(call);
        for completion in &call.completions {
            self.0.completed(completion);
        }
        if call.function == Function::RequestFree {
            call.requests.iter().for_each(|request| {
                self.0.forget(*request);
            });
        }
        match placed {
            Placed::Data(access) | Placed::Ends(access) => Places { access: Some(access), unknown: None },
            Placed::Unknown { reason, .. } => Places { access: None, unknown: Some(reason) },
            Placed::Nothing => Places::default(),
        }
    }
}
