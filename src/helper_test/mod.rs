//! `quartermaster helper test`: runs the site's helper once, exactly as the daemon would, and shows what it got, what it wrote, and
//! what would be sent to the server. Nothing is sent.
mod certificate;
mod command;
mod outcome;
mod provided;
mod redact;
mod report;
mod sample;

#[cfg(test)]
mod tests;

pub use command::{Args, run};
pub use redact::redact;
