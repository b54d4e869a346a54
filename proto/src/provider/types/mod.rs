//! Type expressions: read, printed canonically, and values converted to them.

mod any;
mod convert;
mod default;
mod expression;
mod parser;

pub use any::AnyEncoding;
pub(super) use any::{unwrap_any, wrap_any};
pub use convert::validate;
pub(super) use convert::validate_at;
pub(super) use default::read_default;
pub use expression::{Field, Type};
pub use parser::{MAX_TYPE_DEPTH, TypeError};
pub(super) use parser::{is_name_part, is_name_start};
