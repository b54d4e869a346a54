//! What is wrong with a file of steps, all of it at once.

use std::path::Path;

use quartermaster_actors::expression::ExpressionError;

/// One thing that is wrong, or only odd.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// The line, counted from 1.
    pub line: usize,
    /// What it is. No value is repeated.
    pub what: String,
}

/// What was found. Warnings do not keep anything from running.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    errors: Vec<Fault>,
    warnings: Vec<Fault>,
}

impl Faults {
    /// Something is wrong on this line.
    pub fn error(&mut self, line: usize, what: impl Into<String>) {
        let fault = Fault { line, what: what.into() };
        if !self.errors.contains(&fault) {
            self.errors.push(fault);
        }
    }

    /// An expression is not understood, or comes to nothing.
    pub fn expression(&mut self, error: ExpressionError) {
        self.error(error.line, error.what);
    }

    /// Something is odd on this line.
    pub fn warning(&mut self, line: usize, what: impl Into<String>) {
        self.warnings.push(Fault { line, what: what.into() });
    }

    /// What is wrong, by line.
    pub fn errors(&self) -> Vec<Fault> {
        let mut errors = self.errors.clone();
        errors.sort();
        errors
    }

    /// What is odd, by line.
    pub fn warnings(&self) -> Vec<Fault> {
        let mut warnings = self.warnings.clone();
        warnings.sort();
        warnings
    }

    /// Whether nothing is wrong.
    pub const fn is_right(&self) -> bool {
        self.errors.is_empty()
    }

    /// Every fault as `file:line: what`, errors first.
    pub fn to_text(&self, file: &Path) -> String {
        let file = file.display();
        let errors =
            self.errors().into_iter().map(|fault| format!("{file}:{}: {}\n", fault.line, fault.what));
        let warnings = self
            .warnings()
            .into_iter()
            .map(|fault| format!("{file}:{}: warning: {}\n", fault.line, fault.what));
        errors.chain(warnings).collect()
    }
}
