//! Values with references in `${…}`, as the configuration file has them: `template.rs` reads them, `eval.rs` gives their value,
//! `typing.rs` sees before anything runs whether they can fit. What stands in `${…}` is [`crate::expression`]'s.
mod eval;
mod template;
mod typing;

pub use eval::{EvalError, Evaluated, Scope};
pub use template::Template;
pub use typing::TypeScope;
