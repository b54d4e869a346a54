//! The built binary as a person, a script and a service manager meet it: exit codes, closed streams, names.
#![cfg(test)]

mod checks;
mod running;
#[cfg(test)]
mod schemas;
mod site;
mod streams;
