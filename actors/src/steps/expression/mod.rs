//! Values with references in `${…}`, read by the same parser as scenario files: `template.rs` reads them, `eval.rs` gives their
//! value, `typing.rs` sees before anything runs whether they can fit.
mod eval;
mod template;
mod typing;

pub use eval::{EvalError, Evaluated, Scope};
pub use template::{Access, Reference, Template, TemplateError};
pub use typing::{TypeScope, fits};
