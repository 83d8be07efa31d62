//! Classes of functions in results.

use beff_trace::{AccessForm, Direction, Function, Role};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Class of functions. Calls that complete requests count for the calls that started them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallClass {
    /// Blocking, independent.
    Read,
    /// Non-blocking, independent.
    ReadNonblocking,
    /// Blocking, collective.
    ReadCollective,
    /// Non-blocking, collective.
    ReadCollectiveNonblocking,
    /// Split collective.
    ReadSplit,
    /// Blocking, independent.
    Write,
    /// Non-blocking, independent.
    WriteNonblocking,
    /// Blocking, collective.
    WriteCollective,
    /// Non-blocking, collective.
    WriteCollectiveNonblocking,
    /// Split collective.
    WriteSplit,
    /// MPI_File_open.
    Open,
    /// MPI_File_close.
    Close,
    /// MPI_File_sync.
    Sync,
    /// All others, and completion calls that completed no request.
    Other,
}

impl CallClass {
    /// All classes, in the order of tables.
    pub const ALL: [Self; 14] = [
        Self::Read,
        Self::ReadNonblocking,
        Self::ReadCollective,
        Self::ReadCollectiveNonblocking,
        Self::ReadSplit,
        Self::Write,
        Self::WriteNonblocking,
        Self::WriteCollective,
        Self::WriteCollectiveNonblocking,
        Self::WriteSplit,
        Self::Open,
        Self::Close,
        Self::Sync,
        Self::Other,
    ];

    /// The class of a function.
    #[must_use]
    pub fn of(function: Function) -> Self {
        match function.role() {
            Role::Data { direction, form, collective, .. } => data_class(direction, form, collective),
            _ => match function {
                Function::Open => Self::Open,
                Function::Close => Self::Close,
                Function::Sync => Self::Sync,
                _ => Self::Other,
            },
        }
    }

    /// The name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::ReadNonblocking => "read, nonblocking",
            Self::ReadCollective => "read, collective",
            Self::ReadCollectiveNonblocking => "read, coll. nonblocking",
            Self::ReadSplit => "read, split collective",
            Self::Write => "write",
            Self::WriteNonblocking => "write, nonblocking",
            Self::WriteCollective => "write, collective",
            Self::WriteCollectiveNonblocking => "write, coll. nonblocking",
            Self::WriteSplit => "write, split collective",
            Self::Open => "open",
            Self::Close => "close",
            Self::Sync => "sync",
            Self::Other => "other calls",
        }
    }

    /// True if its calls read data.
    #[must_use]
    pub fn is_read(self) -> bool {
        self < Self::Write
    }

    /// True if its calls write data.
    #[must_use]
    pub fn is_write(self) -> bool {
        self >= Self::Write && self < Self::Open
    }
}

fn data_class(direction: Direction, form: AccessForm, collective: bool) -> CallClass {
    use CallClass as C;
    let [blocking, nonblocking, together, together_nonblocking, split] = match direction {
        Direction::Read => [C::Read, C::ReadNonblocking, C::ReadCollective, C::ReadCollectiveNonblocking, C::ReadSplit],
        Direction::Write => {
            [C::Write, C::WriteNonblocking, C::WriteCollective, C::WriteCollectiveNonblocking, C::WriteSplit]
        }
    };
    match (form, collective) {
        (AccessForm::Blocking, false) => blocking,
        (AccessForm::Nonblocking, false) => nonblocking,
        (AccessForm::Blocking, true) => together,
        (AccessForm::Nonblocking, true) => together_nonblocking,
        (AccessForm::Begin | AccessForm::End, _) => split,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_of_classes_are_those_of_their_functions() {
        for function in Function::all() {
            let class = CallClass::of(function);
            assert_eq!(class.is_read(), function.direction() == Some(Direction::Read), "{function:?}");
            assert_eq!(class.is_write(), function.direction() == Some(Direction::Write), "{function:?}");
            assert!(CallClass::ALL.contains(&class));
        }
        assert_eq!(CallClass::of(Function::IreadAtAll), CallClass::ReadCollectiveNonblocking);
        assert_eq!(CallClass::of(Function::WriteOrderedEnd), CallClass::WriteSplit);
        assert_eq!(CallClass::of(Function::Waitall), CallClass::Other);
    }
}
