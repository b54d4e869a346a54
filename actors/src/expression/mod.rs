//! Expressions that refer to what is only known later: `${server.identity}` in a step of the configuration file,
//! `action.record_create.www.record_id` in a file of steps.
//!
//! Both are HCL and mean the same: [`read`](Expression::read) takes them from a parsed file, [`text`](Expression::text) from one
//! string. What an expression comes to is [`Partial`] as long as something in it is not known, so that types can be checked before
//! anything has run. Pure.
mod evaluate;
mod partial;
mod read;
mod tree;

#[cfg(test)]
mod tests;

pub use evaluate::{Evaluated, Found, Scope};
pub use partial::{Partial, kind_of};
pub use read::Lines;
pub use tree::{Access, Expression, ExpressionError, Reference};
