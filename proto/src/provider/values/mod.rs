//! JSON values as providers exchange them: numbers keep their digits, strings are wiped when they go.

mod number;
mod parse;
mod path;
mod value;
mod write;

pub use number::{Number, NumberError};
pub use parse::SyntaxError;
pub(super) use parse::{Parsed, parse};
pub use path::{Complaint, Path, Segment};
pub use value::{Members, Value};
pub(super) use write::{Part, measure, quoted, write};
