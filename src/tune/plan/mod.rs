//! Arithmetic of a search: keys and values to try, and files for programs that shall use a setting.

pub mod apply;
pub mod script;
pub mod space;
